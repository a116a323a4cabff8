// SPDX-License-Identifier: GPL-2.0-only
/*
 * floq: a FIFO that drops at random above a threshold but exempts the first
 * packets of connections.
 *
 * A reconstruction of M. Yanev's FLOQ, of which only slides and an abstract
 * were available. Written from the description in docs/qdiscs/floq.md.
 *
 * A packet belongs to a connection in its setup, to other responsive traffic
 * (TCP, QUIC, SCTP, DCCP), or to unresponsive traffic. Above the threshold, an
 * arrival is dropped with a probability that rises with the backlog, with the
 * weight of its class and with the share of the class in the traffic.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "sojourn.h"
#include "sch_floq.h"

/* The size that gain refers to. */
#define FLOQ_MTU	1514
/* Places for each value of the hash. */
#define FLOQ_WAYS	4
/* The two highest bits of the first byte of a QUIC long header (RFC 8999). */
#define FLOQ_QUIC_LONG	0xC0

enum floq_phase {
	FLOQ_FREE,
	FLOQ_IN_SETUP,
	FLOQ_ESTABLISHED,
};

enum floq_opening {
	/* Nothing of the kind. */
	FLOQ_CONTINUES,
	/* A connection opens; it may have begun to before. */
	FLOQ_PROCEEDS,
	/* A connection opens, if need be again. */
	FLOQ_BEGINS,
};

/* A place for a connection. */
struct floq_connection {
	/* The hash of its five-tuple. */
	u32 tag;
	/* Packets with data since the setup began. */
	u32 packets;
	/* When the last SYN or long header of the setup came. */
	u64 opened;
	/* When its last packet came. */
	u64 seen;
	enum floq_phase phase;
};

/* What a packet says of its connection. */
struct floq_sign {
	enum floq_opening opening;
	bool data;
	bool last;
};

struct floq_sched {
	u64 values[FLOQ_PARAMS];
	u64 threshold;
	u64 probability;
	u64 gain;
	u64 weights[FLOQ_CLASSES];
	/* The part of responsive traffic in the bytes of established traffic. */
	u64 responsive_share;
	struct sojourn_rng rng;
	u64 perturbation;
	struct sk_buff_head packets;
	/* How many of them belong to setups. */
	u32 waiting_setups;
	u32 sets;
	struct floq_connection *connections;
	u64 stats[FLOQ_STATS];
};

struct floq_skb_cb {
	enum floq_class class;
};

static unsigned long long seed;

static struct floq_skb_cb *floq_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct floq_skb_cb));
	return (struct floq_skb_cb *)qdisc_skb_cb(skb)->data;
}

/* The same for both directions of a connection. */
static u32 floq_tag(const struct floq_sched *q, const struct sojourn_flow *flow)
{
	u32 a = flow->ports >> 16, b = flow->ports & 0xFFFF;
	struct sojourn_flow undirected = {
		.source = min(flow->source, flow->destination),
		.destination = max(flow->source, flow->destination),
		.ports = min(a, b) << 16 | max(a, b),
		.protocol = flow->protocol,
	};

	return sojourn_digest(&undirected, q->perturbation);
}

static bool floq_is(const struct floq_connection *it, u32 tag)
{
	return it->phase != FLOQ_FREE && it->tag == tag;
}

/* The place of a connection that is remembered. */
static struct floq_connection *floq_find(struct floq_sched *q, u32 tag, u64 now)
{
	struct floq_connection *ways = &q->connections[tag % q->sets * FLOQ_WAYS];
	int i;

	for (i = 0; i < FLOQ_WAYS; i++) {
		if (!floq_is(&ways[i], tag))
			continue;
		/* Where connections may resume, none is forgotten while it has a place. */
		if (q->values[FLOQ_RESUME] != SOJOURN_UNSET ||
		    sojourn_since(now, ways[i].seen) <= q->values[FLOQ_EXPIRY])
			return &ways[i];
	}
	return NULL;
}

/* The place of a connection; if it has none, that of the one idle longest. */
static struct floq_connection *floq_place(struct floq_sched *q, u32 tag, u64 now)
{
	struct floq_connection *ways = &q->connections[tag % q->sets * FLOQ_WAYS];
	struct floq_connection *it = floq_find(q, tag, now);
	int i;

	if (it)
		return it;
	it = ways;
	for (i = 0; i < FLOQ_WAYS; i++) {
		if (floq_is(&ways[i], tag)) {
			it = &ways[i];
			break;
		}
		if (it->phase == FLOQ_FREE)
			continue;
		if (ways[i].phase == FLOQ_FREE || ways[i].seen < it->seen)
			it = &ways[i];
	}
	memset(it, 0, sizeof(*it));
	it->tag = tag;
	return it;
}

static void floq_open(struct floq_connection *it, u64 now)
{
	it->phase = FLOQ_IN_SETUP;
	it->packets = 0;
	it->opened = now;
}

/* A packet of a connection has come. */
static enum floq_class floq_follow(const struct floq_sched *q,
				   struct floq_connection *it,
				   const struct floq_sign *sign, u64 now)
{
	bool late = sojourn_since(now, it->opened) > q->values[FLOQ_SETUP_TIME];
	bool rested = q->values[FLOQ_RESUME] != SOJOURN_UNSET &&
		      sojourn_since(now, it->seen) > q->values[FLOQ_RESUME];
	bool within;

	if (it->phase == FLOQ_IN_SETUP && late)
		it->phase = FLOQ_ESTABLISHED;
	it->seen = now;
	if (it->phase == FLOQ_IN_SETUP) {
		if (sign->opening != FLOQ_CONTINUES)
			it->opened = now;
	} else if (sign->opening == FLOQ_BEGINS) {
		floq_open(it, now);
	} else if (it->phase == FLOQ_FREE) {
		if (sign->opening == FLOQ_PROCEEDS)
			floq_open(it, now);
		else
			it->phase = FLOQ_ESTABLISHED;
	} else if ((sign->opening == FLOQ_PROCEEDS && late) || rested) {
		floq_open(it, now);
	}
	if (it->phase == FLOQ_ESTABLISHED)
		return FLOQ_RESPONSIVE;
	it->packets += sign->data;
	within = it->packets <= q->values[FLOQ_SETUP_PACKETS];
	if (sign->last || !within)
		it->phase = FLOQ_ESTABLISHED;
	return within ? FLOQ_SETUP : FLOQ_RESPONSIVE;
}

static enum floq_class floq_classify_tcp(struct floq_sched *q,
					 const struct sk_buff *skb,
					 const struct sojourn_flow *flow, u64 now)
{
	struct floq_sign sign = { .opening = FLOQ_CONTINUES };
	const struct tcphdr *tcp = NULL;
	struct tcphdr buffer;

	if (flow->offset)
		tcp = skb_header_pointer(skb, flow->offset, sizeof(buffer), &buffer);
	if (tcp) {
		if (tcp->syn)
			sign.opening = FLOQ_BEGINS;
		sign.data = skb->len > flow->offset + tcp->doff * 4;
		sign.last = tcp->fin || tcp->rst;
	}
	return floq_follow(q, floq_place(q, floq_tag(q, flow), now), &sign, now);
}

static enum floq_class floq_classify_udp(struct floq_sched *q,
					 const struct sk_buff *skb,
					 const struct sojourn_flow *flow, u64 now)
{
	struct floq_sign sign = { .opening = FLOQ_CONTINUES, .data = true };
	struct floq_connection *it;
	const u8 *first = NULL;
	u8 buffer;

	if (!q->values[FLOQ_QUIC])
		return FLOQ_UNRESPONSIVE;
	if (flow->offset)
		first = skb_header_pointer(skb, flow->offset + sizeof(struct udphdr),
					   sizeof(buffer), &buffer);
	if (first && (*first & FLOQ_QUIC_LONG) == FLOQ_QUIC_LONG) {
		sign.opening = FLOQ_PROCEEDS;
		it = floq_place(q, floq_tag(q, flow), now);
	} else {
		it = floq_find(q, floq_tag(q, flow), now);
	}
	return it ? floq_follow(q, it, &sign, now) : FLOQ_UNRESPONSIVE;
}

static enum floq_class floq_classify(struct floq_sched *q,
				     const struct sk_buff *skb, u64 now)
{
	struct sojourn_flow flow;

	sojourn_dissect(skb, &flow);
	switch (flow.protocol) {
	case IPPROTO_TCP:
		return floq_classify_tcp(q, skb, &flow, now);
	case IPPROTO_UDP:
		return floq_classify_udp(q, skb, &flow, now);
	case IPPROTO_SCTP:
	case IPPROTO_DCCP:
		return FLOQ_RESPONSIVE;
	default:
		return FLOQ_UNRESPONSIVE;
	}
}

/* Learns the shares of the classes. */
static void floq_learn(struct floq_sched *q, enum floq_class class, u32 bytes)
{
	u64 gain = min(div_u64(q->gain * bytes, FLOQ_MTU), SOJOURN_Q30_ONE);

	if (class == FLOQ_RESPONSIVE)
		q->responsive_share +=
			sojourn_q30_mul(gain, SOJOURN_Q30_ONE - q->responsive_share);
	else if (class == FLOQ_UNRESPONSIVE)
		q->responsive_share -= sojourn_q30_mul(gain, q->responsive_share);
}

/* The probability of a signal to an arrival that finds @backlog packets. */
static u64 floq_probability(const struct floq_sched *q, enum floq_class class,
			    u32 backlog)
{
	u64 x = div64_u64((u64)backlog << SOJOURN_Q30_SHIFT, q->values[FLOQ_LIMIT]);
	u64 share = SOJOURN_Q30_ONE;
	u64 p;

	if (x <= q->threshold)
		return 0;
	if (class == FLOQ_RESPONSIVE)
		share = q->responsive_share;
	else if (class == FLOQ_UNRESPONSIVE)
		share -= q->responsive_share;
	x = div64_u64((x - q->threshold) << SOJOURN_Q30_SHIFT,
		      SOJOURN_Q30_ONE - q->threshold);
	p = sojourn_q30_mul(q->probability,
			    sojourn_q30_power(x, q->values[FLOQ_GAMMA]));
	p = sojourn_q30_mul(p, sojourn_q30_power(share, q->values[FLOQ_EXPONENT]));
	return min(sojourn_q30_mul(p, q->weights[class]), SOJOURN_Q30_ONE);
}

static void floq_append(struct sk_buff *skb, struct Qdisc *sch,
			enum floq_class class)
{
	struct floq_sched *q = qdisc_priv(sch);

	floq_cb(skb)->class = class;
	q->waiting_setups += class == FLOQ_SETUP;
	sojourn_append(skb, sch, &q->packets);
}

static void floq_unlink(struct sk_buff *skb, struct Qdisc *sch)
{
	struct floq_sched *q = qdisc_priv(sch);

	q->waiting_setups -= floq_cb(skb)->class == FLOQ_SETUP;
	sojourn_unlink(skb, sch, &q->packets);
}

/* Drops the youngest packet that belongs to no setup. Returns its size. */
static unsigned int floq_push_out(struct Qdisc *sch, struct sk_buff **to_free)
{
	struct floq_sched *q = qdisc_priv(sch);
	struct sk_buff *victim;
	unsigned int bytes;

	if (q->waiting_setups == skb_queue_len(&q->packets))
		return 0;
	/* Ends with the setup packets behind the victim. */
	skb_queue_reverse_walk(&q->packets, victim)
		if (floq_cb(victim)->class != FLOQ_SETUP)
			break;
	bytes = qdisc_pkt_len(victim);
	q->stats[FLOQ_STAT_PUSHED_OUT]++;
	q->stats[FLOQ_STAT_OVERLIMIT + floq_cb(victim)->class]++;
	floq_unlink(victim, sch);
	qdisc_drop(victim, sch, to_free);
	return bytes;
}

static int floq_enqueue_packet(struct sk_buff *skb, struct Qdisc *sch,
			       struct sk_buff **to_free)
{
	struct floq_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	enum floq_class class = floq_classify(q, skb, now);
	unsigned int pushed_out;
	u64 p;

	floq_learn(q, class, qdisc_pkt_len(skb));
	q->stats[FLOQ_STAT_PACKETS + class]++;
	if (sch->q.qlen >= q->values[FLOQ_LIMIT]) {
		if (q->values[FLOQ_PUSHOUT] && class == FLOQ_SETUP) {
			pushed_out = floq_push_out(sch, to_free);
			if (pushed_out) {
				floq_append(skb, sch, class);
				qdisc_tree_reduce_backlog(sch, 1, pushed_out);
				return NET_XMIT_SUCCESS;
			}
		}
		q->stats[FLOQ_STAT_OVERLIMIT + class]++;
		return qdisc_drop(skb, sch, to_free);
	}
	p = floq_probability(q, class, sch->q.qlen);
	if (p && sojourn_chance(&q->rng, p)) {
		if (!q->values[FLOQ_ECN] || class != FLOQ_RESPONSIVE ||
		    p >= SOJOURN_Q30_ONE || !INET_ECN_set_ce(skb)) {
			q->stats[FLOQ_STAT_EARLY + class]++;
			return qdisc_drop(skb, sch, to_free);
		}
		q->stats[FLOQ_STAT_MARKED]++;
	}
	floq_append(skb, sch, class);
	return NET_XMIT_SUCCESS;
}

static int floq_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	return sojourn_enqueue(skb, sch, to_free, floq_enqueue_packet);
}

static struct sk_buff *floq_take(struct Qdisc *sch)
{
	struct floq_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = skb_peek(&q->packets);

	if (skb)
		floq_unlink(skb, sch);
	return skb;
}

static struct sk_buff *floq_dequeue(struct Qdisc *sch)
{
	struct sk_buff *skb = floq_take(sch);

	if (skb)
		qdisc_bstats_update(sch, skb);
	return skb;
}

static void floq_reset(struct Qdisc *sch)
{
	struct floq_sched *q = qdisc_priv(sch);

	__skb_queue_purge(&q->packets);
	q->waiting_setups = 0;
	q->responsive_share = SOJOURN_Q30_ONE / 2;
	if (q->connections)
		memset(q->connections, 0,
		       array3_size(q->sets, FLOQ_WAYS, sizeof(*q->connections)));
}

static const struct nla_policy floq_policy[SOJOURN_ATTR_FIRST + FLOQ_PARAMS] = {
	[SOJOURN_ATTR_FIRST ... SOJOURN_ATTR_FIRST + FLOQ_PARAMS - 1] = {
		.type = NLA_U64
	},
};

static int floq_set(struct Qdisc *sch, struct nlattr *opt, bool live,
		    struct netlink_ext_ack *extack)
{
	struct floq_sched *q = qdisc_priv(sch);
	u64 values[FLOQ_PARAMS];
	int err;

	memcpy(values, q->values, sizeof(values));
	err = sojourn_parse_params(floq_params, FLOQ_PARAMS, values, opt,
				   floq_policy, live, extack);
	if (err)
		return err;
	sch_tree_lock(sch);
	memcpy(q->values, values, sizeof(values));
	q->threshold = sojourn_q30(values[FLOQ_THRESHOLD]);
	q->probability = sojourn_q30(values[FLOQ_PROBABILITY]);
	q->gain = sojourn_q30(values[FLOQ_GAIN]);
	q->weights[FLOQ_SETUP] = sojourn_q30(values[FLOQ_SETUP_WEIGHT]);
	q->weights[FLOQ_RESPONSIVE] = sojourn_q30(values[FLOQ_RESPONSIVE_WEIGHT]);
	q->weights[FLOQ_UNRESPONSIVE] = sojourn_q30(values[FLOQ_UNRESPONSIVE_WEIGHT]);
	sojourn_shrink(sch, values[FLOQ_LIMIT], floq_take);
	sch_tree_unlock(sch);
	return 0;
}

static int floq_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	return floq_set(sch, opt, true, extack);
}

static int floq_init(struct Qdisc *sch, struct nlattr *opt,
		     struct netlink_ext_ack *extack)
{
	struct floq_sched *q = qdisc_priv(sch);
	int err;

	__skb_queue_head_init(&q->packets);
	q->responsive_share = SOJOURN_Q30_ONE / 2;
	sojourn_rng_init(&q->rng, READ_ONCE(seed));
	q->perturbation = sojourn_random(&q->rng);
	sojourn_default_params(floq_params, FLOQ_PARAMS, q->values);
	err = floq_set(sch, opt, false, extack);
	if (err)
		return err;
	q->sets = DIV_ROUND_UP((u32)q->values[FLOQ_CONNECTIONS], FLOQ_WAYS);
	q->connections = kvcalloc(q->sets * FLOQ_WAYS, sizeof(*q->connections),
				  GFP_KERNEL);
	return q->connections ? 0 : -ENOMEM;
}

static void floq_destroy(struct Qdisc *sch)
{
	struct floq_sched *q = qdisc_priv(sch);

	kvfree(q->connections);
}

static int floq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct floq_sched *q = qdisc_priv(sch);

	return sojourn_dump_params(skb, FLOQ_PARAMS, q->values);
}

static int floq_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct floq_sched *q = qdisc_priv(sch);
	u64 stats[FLOQ_STATS];

	sch_tree_lock(sch);
	memcpy(stats, q->stats, sizeof(stats));
	stats[FLOQ_STAT_SHARE] =
		(q->responsive_share * SOJOURN_MILLION) >> SOJOURN_Q30_SHIFT;
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, stats, sizeof(stats));
}

static struct Qdisc_ops floq_qdisc_ops __read_mostly = {
	.id = "floq",
	.priv_size = sizeof(struct floq_sched),
	.enqueue = floq_enqueue,
	.dequeue = floq_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = floq_init,
	.reset = floq_reset,
	.destroy = floq_destroy,
	.change = floq_change,
	.dump = floq_dump,
	.dump_stats = floq_dump_stats,
	.owner = THIS_MODULE,
};

static int __init floq_module_init(void)
{
	return register_qdisc(&floq_qdisc_ops);
}

static void __exit floq_module_exit(void)
{
	unregister_qdisc(&floq_qdisc_ops);
}

module_param(seed, ullong, 0644);
MODULE_PARM_DESC(seed, "Seed of the random numbers and hashes of new queues; 0: unpredictable");
module_param_named(limit, floq_params[FLOQ_LIMIT].value, ullong, 0644);
MODULE_PARM_DESC(limit, "Maximum number of packets in the buffer (packets)");
module_param_named(threshold, floq_params[FLOQ_THRESHOLD].value, ullong, 0644);
MODULE_PARM_DESC(threshold, "Fraction of the limit above which arrivals are signalled (millionths)");
module_param_named(gamma, floq_params[FLOQ_GAMMA].value, ullong, 0644);
MODULE_PARM_DESC(gamma, "Exponent of the ramp from threshold to limit");
module_param_named(probability, floq_params[FLOQ_PROBABILITY].value, ullong, 0644);
MODULE_PARM_DESC(probability, "Probability of a signal when the buffer is full, before weight and share are applied (millionths)");
module_param_named(setup_weight, floq_params[FLOQ_SETUP_WEIGHT].value, ullong, 0644);
MODULE_PARM_DESC(setup_weight, "Weight of packets during connection setup (millionths)");
module_param_named(responsive_weight, floq_params[FLOQ_RESPONSIVE_WEIGHT].value, ullong, 0644);
MODULE_PARM_DESC(responsive_weight, "Weight of other responsive traffic (millionths)");
module_param_named(unresponsive_weight, floq_params[FLOQ_UNRESPONSIVE_WEIGHT].value, ullong, 0644);
MODULE_PARM_DESC(unresponsive_weight, "Weight of unresponsive traffic (millionths)");
module_param_named(exponent, floq_params[FLOQ_EXPONENT].value, ullong, 0644);
MODULE_PARM_DESC(exponent, "Exponent of the class's share of the traffic");
module_param_named(gain, floq_params[FLOQ_GAIN].value, ullong, 0644);
MODULE_PARM_DESC(gain, "Weight of 1514 bytes in the moving average of the shares (millionths)");
module_param_named(setup_packets, floq_params[FLOQ_SETUP_PACKETS].value, ullong, 0644);
MODULE_PARM_DESC(setup_packets, "Number of data packets that count as connection setup");
module_param_named(setup_time, floq_params[FLOQ_SETUP_TIME].value, ullong, 0644);
MODULE_PARM_DESC(setup_time, "Maximum duration of connection setup, from the last SYN (ns)");
module_param_named(connections, floq_params[FLOQ_CONNECTIONS].value, ullong, 0644);
MODULE_PARM_DESC(connections, "Size of the connection table, rounded up to a multiple of 4");
module_param_named(expiry, floq_params[FLOQ_EXPIRY].value, ullong, 0644);
MODULE_PARM_DESC(expiry, "Idle time after which a connection is removed from the table (ns)");
module_param_named(resume, floq_params[FLOQ_RESUME].value, ullong, 0644);
MODULE_PARM_DESC(resume, "Idle time after which a connection counts as being set up again (ns)");
module_param_named(quic, floq_params[FLOQ_QUIC].value, ullong, 0644);
MODULE_PARM_DESC(quic, "Treat QUIC as responsive traffic with connection setup (0 or 1)");
module_param_named(pushout, floq_params[FLOQ_PUSHOUT].value, ullong, 0644);
MODULE_PARM_DESC(pushout, "When the buffer is full, replace the youngest other packet with an arriving setup packet (0 or 1)");
module_param_named(ecn, floq_params[FLOQ_ECN].value, ullong, 0644);
MODULE_PARM_DESC(ecn, "Mark ECN-capable packets of responsive traffic (0 or 1)");

#ifdef MODULE_ALIAS_NET_SCH
MODULE_ALIAS_NET_SCH("floq");
#endif

module_init(floq_module_init);
module_exit(floq_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("floq: random early drop that exempts connections being set up");
