/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When CoDel signals: RFC 8289 section 5, for the queues that decide by other
 * tests which packets may be signalled. Times in ns; square roots in Q16.
 */
#ifndef SOJOURN_CODEL_H
#define SOJOURN_CODEL_H

#include "sojourn.h"

#define SOJOURN_ROOT_SHIFT	16

struct sojourn_codel {
	u64 interval;
	bool ecn;
	/* When the next signal is due, or was due when the last state ended. */
	u64 drop_next;
	/* Signals since this state began, and the number with which it began. */
	u32 count;
	u32 lastcount;
	bool dropping;
	/* Packets that left the queue without its parent: to be reported. */
	u32 gone_packets;
	u32 gone_bytes;
	u64 marks;
	u64 drops;
};

/* Takes the oldest packet and says whether it may be signalled. */
typedef struct sk_buff *(*sojourn_pop_fn)(struct Qdisc *sch, u64 now, bool *ok);

static inline void sojourn_codel_reset(struct sojourn_codel *codel)
{
	codel->drop_next = 0;
	codel->count = 0;
	codel->lastcount = 0;
	codel->dropping = false;
}

/* The time from this signal to the next: interval / sqrt(count). */
static inline u64 sojourn_codel_gap(const struct sojourn_codel *codel)
{
	u64 root = int_sqrt64((u64)codel->count << (2 * SOJOURN_ROOT_SHIFT));

	return sojourn_mul_div(codel->interval, 1 << SOJOURN_ROOT_SHIFT, root);
}

/* Drops a packet that was taken out of the queue. */
static inline void sojourn_codel_drop(struct sojourn_codel *codel,
				      struct Qdisc *sch, struct sk_buff *skb)
{
	codel->gone_packets++;
	codel->gone_bytes += qdisc_pkt_len(skb);
	codel->drops++;
	qdisc_qstats_drop(sch);
	kfree_skb(skb);
}

/* Tells the parents of what a dequeue dropped. */
static inline void sojourn_codel_report(struct sojourn_codel *codel,
					struct Qdisc *sch)
{
	if (!codel->gone_packets)
		return;
	qdisc_tree_reduce_backlog(sch, codel->gone_packets, codel->gone_bytes);
	codel->gone_packets = 0;
	codel->gone_bytes = 0;
}

/*
 * Looks at the packet that @take would take. What that dropped is reported when
 * the packet is part of the queue again: parents forget an empty queue.
 */
static inline struct sk_buff *sojourn_codel_peek(struct sojourn_codel *codel,
						 struct Qdisc *sch,
						 sojourn_take_fn take)
{
	struct sk_buff *skb = skb_peek(&sch->gso_skb);

	if (skb)
		return skb;
	skb = take(sch);
	if (skb)
		sojourn_put_back(skb, sch);
	sojourn_codel_report(codel, sch);
	return skb;
}

static inline bool sojourn_codel_mark(struct sojourn_codel *codel,
				      struct sk_buff *skb)
{
	if (!codel->ecn || !INET_ECN_set_ce(skb))
		return false;
	codel->marks++;
	return true;
}

/* Begins to signal, at the rate that last held the queue if that was recent. */
static inline void sojourn_codel_start(struct sojourn_codel *codel, u64 now)
{
	u32 delta = codel->count - codel->lastcount;
	bool recent = codel->lastcount &&
		      now < codel->drop_next + 16 * codel->interval;

	codel->count = delta > 1 && recent ? delta : 1;
	codel->lastcount = codel->count;
	codel->dropping = true;
	codel->drop_next = now + sojourn_codel_gap(codel);
}

static inline struct sk_buff *sojourn_codel_dequeue(struct sojourn_codel *codel,
						    struct Qdisc *sch, u64 now,
						    sojourn_pop_fn pop)
{
	struct sk_buff *skb;
	bool ok;

	skb = pop(sch, now, &ok);
	if (!skb || !ok) {
		codel->dropping = false;
		return skb;
	}
	if (!codel->dropping) {
		sojourn_codel_start(codel, now);
		if (sojourn_codel_mark(codel, skb))
			return skb;
		sojourn_codel_drop(codel, sch, skb);
		skb = pop(sch, now, &ok);
		codel->dropping = skb;
		return skb;
	}
	/* Each turn removes a packet, so the loop ends with the queue. */
	while (codel->dropping && codel->drop_next <= now) {
		codel->count++;
		if (sojourn_codel_mark(codel, skb)) {
			codel->drop_next += sojourn_codel_gap(codel);
			break;
		}
		sojourn_codel_drop(codel, sch, skb);
		skb = pop(sch, now, &ok);
		if (skb && ok)
			codel->drop_next += sojourn_codel_gap(codel);
		else
			codel->dropping = false;
	}
	return skb;
}

#endif
