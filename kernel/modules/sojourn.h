/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the queueing disciplines of Sojourn share: random numbers, hashing of
 * flows, integer arithmetic, parameters, and the split of GSO packets.
 *
 * Random numbers, hashes and arithmetic are the same as in the models of
 * profile "kernel", so that a model with the same seed does the same.
 */
#ifndef SOJOURN_H
#define SOJOURN_H

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/version.h>
#include <net/flow_dissector.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif

#include "sojourn_params.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define timer_delete_sync	del_timer_sync
#endif

/* xoshiro256++ 1.0 (Blackman and Vigna 2021), seeded by SplitMix64. */
struct sojourn_rng {
	u64 state[4];
};

static inline u64 sojourn_mix(u64 x)
{
	x += 0x9E3779B97F4A7C15ULL;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
	return x ^ (x >> 31);
}

/* A seed of 0 stands for one that nobody can predict. */
static inline void sojourn_rng_init(struct sojourn_rng *rng, u64 seed)
{
	int i;

	if (!seed)
		seed = get_random_u64();
	for (i = 0; i < 4; i++) {
		rng->state[i] = sojourn_mix(seed);
		seed += 0x9E3779B97F4A7C15ULL;
	}
}

static inline u64 sojourn_random(struct sojourn_rng *rng)
{
	u64 *s = rng->state;
	u64 result = rol64(s[0] + s[3], 23) + s[0];
	u64 t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rol64(s[3], 45);
	return result;
}

/* Probabilities and shares: 1 is 2^30. */
#define SOJOURN_Q30_SHIFT	30
#define SOJOURN_Q30_ONE		(1ULL << SOJOURN_Q30_SHIFT)

static inline u64 sojourn_q30(u64 millionths)
{
	return div_u64((millionths << SOJOURN_Q30_SHIFT) + SOJOURN_MILLION / 2,
		       SOJOURN_MILLION);
}

static inline u64 sojourn_q30_mul(u64 a, u64 b)
{
	return (a * b) >> SOJOURN_Q30_SHIFT;
}

static inline u64 sojourn_q30_power(u64 base, u64 exponent)
{
	u64 product = SOJOURN_Q30_ONE;

	while (exponent--)
		product = sojourn_q30_mul(product, base);
	return product;
}

/* True with a probability of @q30. */
static inline bool sojourn_chance(struct sojourn_rng *rng, u64 q30)
{
	return (sojourn_random(rng) >> (64 - SOJOURN_Q30_SHIFT)) < q30;
}

/* a * b / c, rounded down; U64_MAX if it is larger than that. */
static inline u64 sojourn_mul_div(u64 a, u64 b, u64 c)
{
	u64 high = mul_u64_u64_shr(a, b, 64);
	u64 low = a * b;
	u64 quotient = 0;
	int i;

	if (high >= c)
		return U64_MAX;
	if (!high)
		return div64_u64(low, c);
	for (i = 0; i < 64; i++) {
		bool carry = high >> 63;

		high = high << 1 | low >> 63;
		low <<= 1;
		quotient <<= 1;
		if (carry || high >= c) {
			high -= c;
			quotient |= 1;
		}
	}
	return quotient;
}

static inline u64 sojourn_scale(u64 n, u64 millionths)
{
	return sojourn_mul_div(n, millionths, SOJOURN_MILLION);
}

static inline u64 sojourn_later(u64 now, u64 by)
{
	return now + by < now ? U64_MAX : now + by;
}

static inline u64 sojourn_since(u64 now, u64 earlier)
{
	return now > earlier ? now - earlier : 0;
}

/* The five-tuple; an IPv6 address is folded into 64 bits. */
struct sojourn_flow {
	u64 source;
	u64 destination;
	u32 ports;
	u8 protocol;
	/* Where the transport header begins; 0: there is none, as in a fragment. */
	int offset;
};

static inline u64 sojourn_fold(const struct in6_addr *address)
{
	u64 high = (u64)be32_to_cpu(address->s6_addr32[0]) << 32 |
		   be32_to_cpu(address->s6_addr32[1]);
	u64 low = (u64)be32_to_cpu(address->s6_addr32[2]) << 32 |
		  be32_to_cpu(address->s6_addr32[3]);

	return rol64(high, 32) ^ low;
}

static inline void sojourn_dissect(const struct sk_buff *skb,
				   struct sojourn_flow *flow)
{
	struct flow_keys keys;

	memset(flow, 0, sizeof(*flow));
	if (!skb_flow_dissect_flow_keys(skb, &keys, FLOW_DISSECTOR_F_STOP_AT_ENCAP))
		return;
	if (!(keys.control.flags & FLOW_DIS_IS_FRAGMENT))
		flow->offset = keys.control.thoff;
	flow->protocol = keys.basic.ip_proto;
	flow->ports = (u32)be16_to_cpu(keys.ports.src) << 16 |
		      be16_to_cpu(keys.ports.dst);
	switch (keys.control.addr_type) {
	case FLOW_DISSECTOR_KEY_IPV4_ADDRS:
		flow->source = be32_to_cpu(keys.addrs.v4addrs.src);
		flow->destination = be32_to_cpu(keys.addrs.v4addrs.dst);
		break;
	case FLOW_DISSECTOR_KEY_IPV6_ADDRS:
		flow->source = sojourn_fold(&keys.addrs.v6addrs.src);
		flow->destination = sojourn_fold(&keys.addrs.v6addrs.dst);
		break;
	}
}

static inline u32 sojourn_digest(const struct sojourn_flow *flow,
				 u64 perturbation)
{
	u64 a = sojourn_mix(flow->source ^ perturbation);
	u64 b = sojourn_mix(flow->destination ^ a);
	u64 rest = (u64)flow->ports << 8 | flow->protocol;

	return sojourn_mix(rest ^ b) >> 32;
}

static inline int sojourn_check_param(const struct sojourn_param *param,
				      u64 value,
				      struct netlink_ext_ack *extack)
{
	if (value == SOJOURN_UNSET && param->unset)
		return 0;
	if (value >= param->least && value <= param->most)
		return 0;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	NL_SET_ERR_MSG_FMT_MOD(extack, "%s must be from %llu to %llu, not %llu",
			       param->name, param->least, param->most,
			       (unsigned long long)value);
#else
	NL_SET_ERR_MSG_MOD(extack, "a parameter is out of range");
#endif
	return -ERANGE;
}

/*
 * Writes what @opt gives into @values and checks all of them. A @live queue
 * keeps the parameters that are fixed.
 */
static inline int sojourn_parse_params(const struct sojourn_param *params,
				       unsigned int count, u64 *values,
				       const struct nlattr *opt,
				       const struct nla_policy *policy,
				       bool live,
				       struct netlink_ext_ack *extack)
{
	const struct nlattr *attr;
	unsigned int i;
	int rest, err;

	if (opt) {
		err = nla_validate_nested(opt, SOJOURN_ATTR_FIRST + count - 1,
					  policy, extack);
		if (err)
			return err;
		nla_for_each_nested(attr, opt, rest) {
			if (nla_type(attr) < SOJOURN_ATTR_FIRST)
				continue;
			i = nla_type(attr) - SOJOURN_ATTR_FIRST;
			if (live && params[i].fixed &&
			    values[i] != nla_get_u64(attr)) {
				NL_SET_ERR_MSG_ATTR(extack, attr,
						    "this parameter cannot change: delete and add the qdisc");
				return -EBUSY;
			}
			values[i] = nla_get_u64(attr);
		}
	}
	for (i = 0; i < count; i++) {
		err = sojourn_check_param(&params[i], values[i], extack);
		if (err)
			return err;
	}
	return 0;
}

/* The parameters of the module are where a new queue begins. */
static inline void sojourn_default_params(const struct sojourn_param *params,
					  unsigned int count, u64 *values)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		values[i] = READ_ONCE(params[i].value);
}

static inline int sojourn_dump_params(struct sk_buff *skb, unsigned int count,
				      const u64 *values)
{
	struct nlattr *opts = nla_nest_start(skb, TCA_OPTIONS);
	unsigned int i;

	if (!opts)
		return -EMSGSIZE;
	for (i = 0; i < count; i++) {
		u64 value = READ_ONCE(values[i]);

		if (value == SOJOURN_UNSET)
			continue;
		if (nla_put_u64_64bit(skb, SOJOURN_ATTR_FIRST + i, value,
				      SOJOURN_ATTR_PAD)) {
			nla_nest_cancel(skb, opts);
			return -EMSGSIZE;
		}
	}
	return nla_nest_end(skb, opts);
}

typedef int (*sojourn_enqueue_fn)(struct sk_buff *skb, struct Qdisc *sch,
				  struct sk_buff **to_free);

/*
 * These queues count and drop packets, so a GSO packet is enqueued as the
 * packets that it will be on the wire.
 */
static inline int sojourn_enqueue_segments(struct sk_buff *skb,
					   struct Qdisc *sch,
					   struct sk_buff **to_free,
					   sojourn_enqueue_fn enqueue)
{
	netdev_features_t features = netif_skb_features(skb);
	unsigned int whole = qdisc_pkt_len(skb), bytes = 0, packets = 0;
	struct sk_buff *segment, *next;

	segment = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segment))
		return qdisc_drop(skb, sch, to_free);
	while (segment) {
		unsigned int size = segment->len;

		next = segment->next;
		skb_mark_not_on_list(segment);
		/* Without the overhead of "stab", which no module can compute. */
		qdisc_skb_cb(segment)->pkt_len = size;
		if (enqueue(segment, sch, to_free) == NET_XMIT_SUCCESS) {
			packets++;
			bytes += size;
		}
		segment = next;
	}
	consume_skb(skb);
	if (!packets)
		return NET_XMIT_DROP;
	/* The parent will count one packet of the size of the whole. */
	qdisc_tree_reduce_backlog(sch, 1 - packets, whole - bytes);
	return NET_XMIT_SUCCESS;
}

static inline int sojourn_enqueue(struct sk_buff *skb, struct Qdisc *sch,
				  struct sk_buff **to_free,
				  sojourn_enqueue_fn enqueue)
{
	if (skb_is_gso(skb))
		return sojourn_enqueue_segments(skb, sch, to_free, enqueue);
	return enqueue(skb, sch, to_free);
}

/* Bytes of a full packet. A device may say 0, with which nothing would be sent. */
static inline u32 sojourn_mtu(const struct Qdisc *sch)
{
	return max_t(u32, psched_mtu(qdisc_dev(sch)), ETH_ZLEN);
}

/* Puts back what was dequeued, for a parent that only looks at it. */
static inline void sojourn_put_back(struct sk_buff *skb, struct Qdisc *sch)
{
	__skb_queue_head(&sch->gso_skb, skb);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
}

/* Takes what was put back, by a peek or by a device that was busy. */
static inline struct sk_buff *sojourn_take_back(struct Qdisc *sch)
{
	struct sk_buff *skb = __skb_dequeue(&sch->gso_skb);

	if (skb) {
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
	}
	return skb;
}

/* Takes the next packet of a queue out of it. */
typedef struct sk_buff *(*sojourn_take_fn)(struct Qdisc *sch);

/* Drops packets above @limit in the order in which they would leave. */
static inline void sojourn_shrink(struct Qdisc *sch, u64 limit,
				  sojourn_take_fn take)
{
	unsigned int packets = 0, bytes = 0;
	struct sk_buff *skb;

	while (sch->q.qlen > limit) {
		skb = sojourn_take_back(sch);
		if (!skb)
			skb = take(sch);
		if (!skb)
			break;
		packets++;
		bytes += qdisc_pkt_len(skb);
		rtnl_qdisc_drop(skb, sch);
	}
	qdisc_tree_reduce_backlog(sch, packets, bytes);
}

/* Appends @skb to the list of a queue that holds its packets itself. */
static inline void sojourn_append(struct sk_buff *skb, struct Qdisc *sch,
				  struct sk_buff_head *list)
{
	__skb_queue_tail(list, skb);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
}

/* Takes @skb out of it. */
static inline void sojourn_unlink(struct sk_buff *skb, struct Qdisc *sch,
				  struct sk_buff_head *list)
{
	__skb_unlink(skb, list);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
}

#endif
