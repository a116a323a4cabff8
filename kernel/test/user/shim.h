/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the modules use of the kernel, for a program: enough to enqueue, peek at
 * and dequeue the packets of a trace and to change parameters. Nothing runs
 * concurrently, timers never fire, packets are never GSO, a parent is no more
 * than what it counts, and of netlink there are the values of parameters.
 */
#ifndef SHIM_H
#define SHIM_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef long long s64;
typedef u64 netdev_features_t;

#define U32_MAX UINT32_MAX
#define U64_MAX (~0ULL)
#define S32_MAX INT32_MAX
#define LINUX_VERSION_CODE 0
#define KERNEL_VERSION(a, b, c) 1
#define KBUILD_MODNAME "test"
#define __init
#define __exit
#define __read_mostly
#define THIS_MODULE NULL
#define GFP_KERNEL 0
#define ETH_ZLEN 60
#define module_init(f) int (*const shim_module_init)(void) = f;
#define module_exit(f) void (*const shim_module_exit)(void) = f;
#define module_param(name, type, mode)
#define module_param_named(name, value, type, mode)
#define MODULE_PARM_DESC(name, text)
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_ALIAS(text)

#define READ_ONCE(x) (x)
#define min(a, b) ({ __auto_type a_ = (a); __auto_type b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __auto_type a_ = (a); __auto_type b_ = (b); a_ > b_ ? a_ : b_; })
#define min_t(t, a, b) min((t)(a), (t)(b))
#define max_t(t, a, b) max((t)(a), (t)(b))
#define clamp(x, low, high) min(max(x, low), high)
#define abs(x) ({ s64 x_ = (x); (u64)(x_ < 0 ? -x_ : x_); })
#define DIV_ROUND_UP(a, b) (((a) + (b) - 1) / (b))
#define DIV_ROUND_UP_ULL DIV_ROUND_UP
#define DIV64_U64_ROUND_UP DIV_ROUND_UP
#define div_u64(a, b) ((u64)(a) / (u32)(b))
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define check_mul_overflow(a, b, d) __builtin_mul_overflow(a, b, d)
#define array_size(a, b) ((size_t)(a) * (b))
#define array3_size(a, b, c) ((size_t)(a) * (b) * (c))
#define be16_to_cpu ntohs
#define be32_to_cpu ntohl
#define s6_addr32 __in6_u.__u6_addr32

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return ((unsigned __int128)a * b) >> shift;
}

static inline u64 rol64(u64 x, unsigned int by)
{
	return x << by | x >> (64 - by);
}

static inline u32 int_sqrt64(u64 x)
{
	u64 low = 0, high = 1ULL << 32;

	while (high - low > 1) {
		u64 middle = (low + high) / 2;

		if (middle * middle <= x)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static inline u32 roundup_pow_of_two(u32 x)
{
	u32 power = 1;

	while (power < x)
		power *= 2;
	return power;
}

static inline u64 get_random_u64(void)
{
	return 4;
}

/* Slots are ended by the calls alone. */
struct timer_list {
	int unused;
};

#define timer_setup(timer, function, flags) ((void)(timer), (void)(function))
#define mod_timer(timer, when) ((void)(timer), (void)(when))
#define timer_pending(timer) false
#define del_timer_sync(timer) ((void)(timer))
#define jiffies 0
#define nsecs_to_jiffies(nanos) (nanos)
#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))
typedef int spinlock_t;
#define spin_lock(lock) ((void)(lock))
#define spin_unlock(lock) ((void)(lock))
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define qdisc_lock(sch) ((void)(sch), (spinlock_t *)NULL)
#define qdisc_root_sleeping(sch) (sch)

extern u64 shim_now;

static inline u64 ktime_get_ns(void)
{
	return shim_now;
}

static inline void *kvcalloc(size_t n, size_t size, int flags)
{
	return calloc(n, size);
}

static inline void kvfree(const void *p)
{
	free((void *)p);
}

#define DECLARE_BITMAP(name, bits) u64 name[(bits) / 64]
#define bitmap_zero(name, bits) memset(name, 0, (bits) / 8)

static inline bool __test_and_set_bit(u32 bit, u64 *map)
{
	bool old = map[bit / 64] >> bit % 64 & 1;

	map[bit / 64] |= 1ULL << bit % 64;
	return old;
}

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	entry->prev = list->prev;
	entry->next = list;
	list->prev->next = entry;
	list->prev = entry;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
}

static inline void list_move_tail(struct list_head *entry, struct list_head *list)
{
	list_del_init(entry);
	list_add_tail(entry, list);
}

#define list_first_entry_or_null(list, type, member) \
	(list_empty(list) ? NULL : \
	 (type *)((char *)(list)->next - offsetof(type, member)))

/* A packet; only the headers are there. */
struct sk_buff {
	struct sk_buff *next, *prev;
	u32 number;
	u32 len;
	u32 priority;
	u8 data[64];
	_Alignas(8) unsigned char cb[48];
};

struct qdisc_skb_cb {
	u32 pkt_len;
	_Alignas(8) unsigned char data[20];
};

static inline struct qdisc_skb_cb *qdisc_skb_cb(const struct sk_buff *skb)
{
	return (struct qdisc_skb_cb *)skb->cb;
}

#define qdisc_cb_private_validate(skb, size) ((void)0)

static inline unsigned int qdisc_pkt_len(const struct sk_buff *skb)
{
	return qdisc_skb_cb(skb)->pkt_len;
}

static inline bool skb_is_gso(const struct sk_buff *skb)
{
	return false;
}

#define netif_skb_features(skb) ((void)(skb), 0)
#define NETIF_F_GSO_MASK 0
#define skb_gso_segment(skb, features) ((void)(features), (struct sk_buff *)NULL)
#define IS_ERR_OR_NULL(p) (!(p))
#define skb_mark_not_on_list(skb) ((skb)->next = NULL)

/* What happened to a packet. */
void shim_dropped(struct sk_buff *skb);
void shim_marked(struct sk_buff *skb);

static inline void kfree_skb(struct sk_buff *skb)
{
	shim_dropped(skb);
	free(skb);
}

#define consume_skb free
#define rtnl_kfree_skbs(head, tail) kfree_skb(head)

struct sk_buff_head {
	struct sk_buff *next, *prev;
	u32 qlen;
};

static inline void __skb_queue_head_init(struct sk_buff_head *list)
{
	list->next = (struct sk_buff *)list;
	list->prev = (struct sk_buff *)list;
	list->qlen = 0;
}

static inline struct sk_buff *skb_peek(const struct sk_buff_head *list)
{
	return list->next == (struct sk_buff *)list ? NULL : list->next;
}

static inline struct sk_buff *skb_peek_tail(const struct sk_buff_head *list)
{
	return list->prev == (struct sk_buff *)list ? NULL : list->prev;
}

static inline u32 skb_queue_len(const struct sk_buff_head *list)
{
	return list->qlen;
}

static inline void __skb_queue_tail(struct sk_buff_head *list, struct sk_buff *skb)
{
	skb->prev = list->prev;
	skb->next = (struct sk_buff *)list;
	list->prev->next = skb;
	list->prev = skb;
	list->qlen++;
}

static inline void __skb_queue_head(struct sk_buff_head *list, struct sk_buff *skb)
{
	skb->prev = (struct sk_buff *)list;
	skb->next = list->next;
	list->next->prev = skb;
	list->next = skb;
	list->qlen++;
}

static inline void __skb_unlink(struct sk_buff *skb, struct sk_buff_head *list)
{
	skb->prev->next = skb->next;
	skb->next->prev = skb->prev;
	skb->next = NULL;
	skb->prev = NULL;
	list->qlen--;
}

static inline struct sk_buff *__skb_dequeue(struct sk_buff_head *list)
{
	struct sk_buff *skb = skb_peek(list);

	if (skb)
		__skb_unlink(skb, list);
	return skb;
}

static inline void __skb_queue_purge(struct sk_buff_head *list)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(list))) {
		__skb_unlink(skb, list);
		kfree_skb(skb);
	}
}

#define skb_queue_reverse_walk(list, skb) \
	for (skb = (list)->prev; skb != (struct sk_buff *)(list); skb = skb->prev)

static inline void *skb_header_pointer(const struct sk_buff *skb, u32 offset,
				       u32 size, void *buffer)
{
	if (offset + size > skb->len || offset + size > sizeof(skb->data))
		return NULL;
	return memcpy(buffer, skb->data + offset, size);
}

struct tcphdr {
	u8 ports_and_numbers[12];
	u8 reserved:4, doff:4;
	u8 fin:1, syn:1, rst:1, others:5;
	u8 rest[6];
};

struct udphdr {
	u8 bytes[8];
};

struct flow_keys {
	struct {
		u16 thoff, addr_type;
		u32 flags;
	} control;
	struct {
		u8 ip_proto;
	} basic;
	struct {
		u16 src, dst;
	} ports;
	union {
		struct {
			u32 src, dst;
		} v4addrs;
		struct {
			struct in6_addr src, dst;
		} v6addrs;
	} addrs;
};

enum {
	FLOW_DISSECTOR_KEY_IPV4_ADDRS = 1,
	FLOW_DISSECTOR_KEY_IPV6_ADDRS,
	FLOW_DISSECTOR_F_STOP_AT_ENCAP,
	FLOW_DIS_IS_FRAGMENT,
};

/* The packets of the test have Ethernet and IPv4 headers without options. */
static inline bool skb_flow_dissect_flow_keys(const struct sk_buff *skb,
					      struct flow_keys *keys, int flags)
{
	memset(keys, 0, sizeof(*keys));
	keys->control.thoff = 34;
	keys->control.addr_type = FLOW_DISSECTOR_KEY_IPV4_ADDRS;
	keys->basic.ip_proto = skb->data[23];
	memcpy(&keys->addrs.v4addrs, skb->data + 26, 8);
	memcpy(&keys->ports, skb->data + 34, 4);
	return true;
}

static inline int INET_ECN_set_ce(struct sk_buff *skb)
{
	if (!(skb->data[15] & 3))
		return 0;
	if ((skb->data[15] & 3) != 3)
		shim_marked(skb);
	skb->data[15] |= 3;
	return 1;
}

#define TC_PRIO_MAX 15
#define TC_PRIO_CONTROL 7
#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define TCA_OPTIONS 2

struct qdisc_skb_head {
	struct sk_buff *head, *tail;
	u32 qlen;
};

struct netlink_ext_ack;
/* A parameter and its value; what is nested is one of them. */
struct nlattr {
	int type;
	u64 value;
};
struct nla_policy {
	int type;
};
struct gnet_dump;

struct Qdisc_ops;
struct Qdisc {
	struct qdisc_skb_head q;
	struct {
		u32 backlog, drops;
	} qstats;
	struct sk_buff_head gso_skb;
	/* What the parent counts. */
	u32 parent_qlen, parent_backlog;
	_Alignas(64) unsigned char priv[4096];
};

struct Qdisc_ops {
	char id[16];
	int priv_size;
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
	struct sk_buff *(*peek)(struct Qdisc *sch);
	int (*init)(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *ack);
	void (*reset)(struct Qdisc *sch);
	void (*destroy)(struct Qdisc *sch);
	int (*change)(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *ack);
	int (*dump)(struct Qdisc *sch, struct sk_buff *skb);
	int (*dump_stats)(struct Qdisc *sch, struct gnet_dump *d);
	void *owner;
};

int register_qdisc(struct Qdisc_ops *ops);
#define unregister_qdisc(ops) ((void)(ops))
#define qdisc_priv(sch) ((void *)(sch)->priv)
#define qdisc_dev(sch) NULL
extern u32 shim_mtu;
#define psched_mtu(dev) shim_mtu
#define sch_tree_lock(sch) ((void)(sch))
#define sch_tree_unlock(sch) ((void)(sch))
#define qdisc_bstats_update(sch, skb) ((void)(skb))

static inline void qdisc_tree_reduce_backlog(struct Qdisc *sch, int n, int bytes)
{
	sch->parent_qlen -= n;
	sch->parent_backlog -= bytes;
}

static inline void qdisc_qstats_drop(struct Qdisc *sch)
{
	sch->qstats.drops++;
}

static inline void qdisc_qstats_backlog_inc(struct Qdisc *sch, const struct sk_buff *skb)
{
	sch->qstats.backlog += qdisc_pkt_len(skb);
}

static inline void qdisc_qstats_backlog_dec(struct Qdisc *sch, const struct sk_buff *skb)
{
	sch->qstats.backlog -= qdisc_pkt_len(skb);
}

static inline int qdisc_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	qdisc_qstats_drop(sch);
	kfree_skb(skb);
	return NET_XMIT_DROP;
}

#define rtnl_qdisc_drop(skb, sch) qdisc_drop(skb, sch, NULL)

static inline int qdisc_enqueue_tail(struct sk_buff *skb, struct Qdisc *sch)
{
	skb->next = NULL;
	if (sch->q.tail)
		sch->q.tail->next = skb;
	else
		sch->q.head = skb;
	sch->q.tail = skb;
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

static inline struct sk_buff *__qdisc_dequeue_head(struct qdisc_skb_head *q)
{
	struct sk_buff *skb = q->head;

	if (!skb)
		return NULL;
	q->head = skb->next;
	if (!q->head)
		q->tail = NULL;
	q->qlen--;
	return skb;
}

static inline struct sk_buff *qdisc_dequeue_head(struct Qdisc *sch)
{
	struct sk_buff *skb = __qdisc_dequeue_head(&sch->q);

	if (skb)
		qdisc_qstats_backlog_dec(sch, skb);
	return skb;
}

static inline struct sk_buff *qdisc_peek_head(struct Qdisc *sch)
{
	return sch->q.head;
}

static inline void qdisc_reset_queue(struct Qdisc *sch)
{
	struct sk_buff *skb;

	while ((skb = qdisc_dequeue_head(sch)))
		kfree_skb(skb);
}

/* The queue of the program. */
extern struct Qdisc_ops *shim_ops;

static inline struct sk_buff *qdisc_peek_dequeued(struct Qdisc *sch)
{
	struct sk_buff *skb = skb_peek(&sch->gso_skb);

	if (!skb) {
		skb = shim_ops->dequeue(sch);
		if (skb) {
			__skb_queue_head(&sch->gso_skb, skb);
			qdisc_qstats_backlog_inc(sch, skb);
			sch->q.qlen++;
		}
	}
	return skb;
}

#define NL_SET_ERR_MSG_MOD(ack, text) fprintf(stderr, "%s\n", text)
#define NL_SET_ERR_MSG_ATTR(ack, attr, text) fprintf(stderr, "%s\n", text)
#define NLA_U64 4
#define nla_validate_nested(opt, most, policy, ack) 0
#define nla_for_each_nested(attr, opt, rest) \
	for (attr = opt, rest = 1; rest; rest = 0)
#define nla_type(attr) ((attr)->type)
#define nla_get_u64(attr) ((attr)->value)
#define nla_nest_start(skb, type) ((struct nlattr *)(skb))
#define nla_put_u64_64bit(skb, type, value, pad) 0
#define nla_nest_cancel(skb, nest) ((void)(nest))
#define nla_nest_end(skb, nest) 0
#define gnet_stats_copy_app(d, stats, size) ((void)(stats), 0)
#define EMSGSIZE 90
#define EBUSY 16
#define ERANGE 34
#define EINVAL 22
#define ENOMEM 12

#endif
