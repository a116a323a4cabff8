// SPDX-License-Identifier: GPL-2.0-only
/*
 * predict: marks early enough that slow start ends when the link becomes full.
 *
 * A reconstruction of Predict by I. Jarvinen and M. Kojo, of which only slides
 * were available (ICCRG, IETF 97, 2016). Written from the description in
 * docs/qdiscs/predict.md.
 *
 * The load of a round-trip time R is the busy time of the link in the last R
 * and the time to send the backlog. At the end of each time slot, the growth of
 * the load is estimated for each candidate R. If the load that is predicted one
 * round trip ahead fills the link, the departures of one round trip are marked.
 *
 * The end of a slot affects later calls only, so slots are ended by the next
 * call. A timer ends those that have gathered if there is none, so that a packet
 * after a pause finds few.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/timer.h>

#include "sojourn.h"
#include "sojourn_codel.h"
#include "sch_predict.h"

#define PREDICT_BIT_NANOS	(8 * SOJOURN_S)
/* Ratios of loads: 1 is 2^24. */
#define PREDICT_Q24_SHIFT	24
/* Standard deviations: 1 is 2^16. */
#define PREDICT_Q16_SHIFT	16
/* Fewest packets in a load of which growth is estimated. */
#define PREDICT_LEAST	2
/* No two candidates are further apart: 2 s and 500 us. */
#define PREDICT_MOST_DOMINANCE	(4000 * SOJOURN_MILLION)
#define PREDICT_FLOW_BITS	1024
#define PREDICT_NEVER	U64_MAX
/* Slots from one call of the timer to the next, at least. */
#define PREDICT_TIMER_SLOTS	16

/* A round-trip time that the traffic might have. */
struct predict_candidate {
	u32 rtt;
	/* The same in slots. */
	u32 window;
	/* Slots with growth, less two for each without, and how many are enough. */
	u32 pass;
	u32 enough;
	u64 active_until;
};

/* What waited at the end of a slot. */
struct predict_waiting {
	u32 nanos;
	u32 slots;
};

/* An exponential growth as one candidate sees it. */
struct predict_growth {
	u64 load;
	/* By how much it grew in all rounds, in Q24. */
	u64 total;
	/* Ratio of the largest growth in a round to the smallest, in Q24. */
	u64 spread;
};

struct predict_sched {
	struct Qdisc *sch;
	struct timer_list timer;
	u64 values[PREDICT_PARAMS];
	u32 mtu;
	/* The time that a full packet takes on the link. */
	u64 packet;
	/* When the link has sent all that it was given. */
	u64 busy_until;
	/* Transmission time given to it that no slot accounts for yet. */
	u64 unaccounted;

	/* Of past slots: busy time since the beginning modulo 2^32, and backlog. */
	u32 *sums;
	struct predict_waiting *waiting;
	u32 mask;
	u32 reach;
	/* The sum before the first slot that is known. */
	u32 base;
	u64 first;
	/* The slot under way, and when it ends. */
	u64 next;
	u64 slot_ends;
	/* The last slot in which the link was used; PREDICT_NEVER: none is known. */
	u64 last_used;
	/* Unused slots after which the history does not matter. */
	u64 memory;

	struct predict_candidate *candidates;
	u32 count;
	u64 rearm;
	u64 tracking_until;
	u64 mark_until;
	/* The flows that the current signal has reached by a drop. */
	DECLARE_BITMAP(signalled, PREDICT_FLOW_BITS);

	struct sojourn_codel codel;
	u64 first_above;
	u64 signals;
	u64 signal_rtt;
	u64 overlimit;
};

struct predict_skb_cb {
	u64 arrived;
};

static struct predict_skb_cb *predict_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct predict_skb_cb));
	return (struct predict_skb_cb *)qdisc_skb_cb(skb)->data;
}

/* The time that @bytes take on the link, rounded up. */
static u64 predict_serialise(const struct predict_sched *q, u32 bytes)
{
	u64 bits = min_t(u64, bytes, S32_MAX) * PREDICT_BIT_NANOS;

	return DIV64_U64_ROUND_UP(bits, q->values[PREDICT_BANDWIDTH]);
}

/* The load of a candidate at the end of @slot. */
static u64 predict_load(const struct predict_sched *q,
			const struct predict_candidate *candidate, u64 slot)
{
	u32 at = slot & q->mask;
	u32 before = q->base;

	if (slot >= candidate->window && slot - candidate->window >= q->first)
		before = q->sums[(slot - candidate->window) & q->mask];
	return (u64)(q->sums[at] - before) + q->waiting[at].nanos;
}

static bool predict_knows(const struct predict_sched *q, u64 slot)
{
	return slot >= q->first && q->next - slot <= q->reach;
}

/* Moves @slot back by a round trip: what waited then took longer to return. */
static bool predict_round_before(const struct predict_sched *q,
				 const struct predict_candidate *candidate,
				 u64 *slot)
{
	u64 plain, back;
	int i;

	if (*slot < candidate->window)
		return false;
	plain = *slot - candidate->window;
	back = plain;
	for (i = 0; i < 2 && q->values[PREDICT_STRETCH]; i++) {
		u32 slots;

		if (!predict_knows(q, back))
			return false;
		slots = q->waiting[back & q->mask].slots;
		if (plain < slots)
			return false;
		back = plain - slots;
	}
	*slot = back;
	return predict_knows(q, back);
}

/* Whether a load is too small to have grown from one that says anything. */
static bool predict_is_little(const struct predict_sched *q, u64 load)
{
	return load * SOJOURN_MILLION <
	       q->values[PREDICT_GROWTH_MIN] * PREDICT_LEAST * q->packet;
}

/*
 * The difference of two loads, as counts of packets, in units of its standard
 * deviation by chance.
 */
static u64 predict_deviation(const struct predict_sched *q, u64 load, u64 earlier)
{
	u64 square;

	if (check_mul_overflow(load + earlier, q->packet, &square))
		square = U64_MAX;
	return div64_u64((load - earlier) << PREDICT_Q16_SHIFT, int_sqrt64(square));
}

/* The growth up to the last slot, if it is exponential, steady and no chance. */
static bool predict_growth(const struct predict_sched *q,
			   const struct predict_candidate *candidate,
			   struct predict_growth *growth)
{
	u64 slot = q->next - 1;
	u64 load = predict_load(q, candidate, slot);
	u64 least = U64_MAX, most = 0, deviations = 0;
	u64 round;

	growth->load = load;
	if (predict_is_little(q, load))
		return false;
	for (round = 0; round < q->values[PREDICT_ROUNDS]; round++) {
		u64 earlier, ratio;

		if (!predict_round_before(q, candidate, &slot))
			return false;
		earlier = predict_load(q, candidate, slot);
		if (earlier < PREDICT_LEAST * q->packet ||
		    load * SOJOURN_MILLION < q->values[PREDICT_GROWTH_MIN] * earlier ||
		    load * SOJOURN_MILLION > q->values[PREDICT_GROWTH_MAX] * earlier)
			return false;
		ratio = div64_u64(load << PREDICT_Q24_SHIFT, earlier);
		least = min(least, ratio);
		most = max(most, ratio);
		deviations += predict_deviation(q, load, earlier);
		load = earlier;
	}
	growth->total = div64_u64(growth->load << PREDICT_Q24_SHIFT, load);
	growth->spread = div64_u64(most << PREDICT_Q24_SHIFT, least);
	return growth->spread * SOJOURN_MILLION <=
	       q->values[PREDICT_CONSISTENCY] << PREDICT_Q24_SHIFT &&
	       deviations * SOJOURN_MILLION >=
	       q->values[PREDICT_SIGNIFICANCE] << PREDICT_Q16_SHIFT;
}

/*
 * Whether the load one round trip ahead is "full" or more: g L >= full R, where
 * g is the mean growth of a round but at most 2. Compared as powers of g.
 */
static bool predict_fills(const struct predict_sched *q,
			  const struct predict_growth *growth, u32 rtt)
{
	u64 full = sojourn_scale(rtt, q->values[PREDICT_FULL]);
	u64 needed = div64_u64(full << PREDICT_Q24_SHIFT, growth->load);
	u64 power = 1ULL << PREDICT_Q24_SHIFT;
	u64 most = 1ULL << (PREDICT_Q24_SHIFT + q->values[PREDICT_ROUNDS]);
	u64 round;

	if (needed > 2ULL << PREDICT_Q24_SHIFT)
		return false;
	for (round = 0; round < q->values[PREDICT_ROUNDS]; round++)
		power = (power * needed) >> PREDICT_Q24_SHIFT;
	return min(growth->total, most) >= power;
}

/* Passes over @slots slots in which nothing grew. */
static void predict_skip(struct predict_sched *q, u64 slots)
{
	u32 less = min_t(u64, slots, U32_MAX / 2) * 2;
	u32 i;

	for (i = 0; i < q->count; i++)
		q->candidates[i].pass -= min(q->candidates[i].pass, less);
}

/*
 * Looks at the load at @now, the end of the last slot. Returns the round-trip
 * time of the growth if a signal is due, else 0.
 */
static u32 predict_forecast(struct predict_sched *q, u64 now, u32 backlog)
{
	u64 dominance = min(q->values[PREDICT_DOMINANCE], PREDICT_MOST_DOMINANCE);
	struct predict_growth growth, best = { 0 };
	u32 top = 0, rtt = 0;
	u32 i;

	/* The longest window holds all the others. */
	if (predict_is_little(q, predict_load(q, &q->candidates[q->count - 1], q->next - 1))) {
		predict_skip(q, 1);
		return 0;
	}
	/* The longest first, for an active one decides which shorter ones count. */
	for (i = q->count; i--;) {
		struct predict_candidate *candidate = &q->candidates[i];
		bool grows = predict_growth(q, candidate, &growth);

		if (!grows)
			candidate->pass -= min(candidate->pass, 2U);
		else if (candidate->pass < U32_MAX)
			candidate->pass++;
		grows = grows && candidate->pass >= candidate->enough;
		if (grows) {
			u64 hold = div_u64(candidate->rtt * q->values[PREDICT_HOLD] +
					   SOJOURN_MILLION / 2, SOJOURN_MILLION);

			candidate->active_until = now + hold;
			q->tracking_until = max(q->tracking_until,
						candidate->active_until);
		}
		if (!top && candidate->active_until >= now)
			top = candidate->rtt;
		if (grows && top &&
		    candidate->rtt * dominance >= top * SOJOURN_MILLION &&
		    (!rtt || growth.spread <= best.spread)) {
			best = growth;
			rtt = candidate->rtt;
		}
	}
	if (!rtt || now < q->rearm || !predict_fills(q, &best, rtt))
		return 0;
	q->rearm = now + 2 * ((u64)rtt + backlog);
	q->tracking_until = max(q->tracking_until, q->rearm);
	return rtt;
}

/* Forgets what the link sent before @slot, which is under way. */
static void predict_forget(struct predict_sched *q, u64 slot)
{
	q->base = q->sums[(q->next - 1) & q->mask];
	q->first = slot;
	q->next = slot;
	q->last_used = PREDICT_NEVER;
}

static void predict_skip_to(struct predict_sched *q, u64 slot)
{
	predict_skip(q, slot - q->next);
	predict_forget(q, slot);
	q->unaccounted = sojourn_since(q->busy_until, slot * q->values[PREDICT_SLOT]);
}

/* Whether the past of an unused link can no longer be seen in any load. */
static bool predict_has_no_past(const struct Qdisc *sch,
				const struct predict_sched *q)
{
	return !sch->q.qlen &&
	       q->busy_until <= q->next * q->values[PREDICT_SLOT] &&
	       (q->last_used == PREDICT_NEVER ||
		q->next - q->last_used > q->memory);
}

static void predict_end_slot(struct Qdisc *sch, struct predict_sched *q)
{
	u64 length = q->values[PREDICT_SLOT];
	u64 end = (q->next + 1) * length;
	u64 left = sojourn_since(q->busy_until, end);
	/* A transmission that straddles the end is split there. */
	u32 busy = min(sojourn_since(q->unaccounted, left), length);
	u64 backlog = left + predict_serialise(q, sch->qstats.backlog);
	u32 at = q->next & q->mask;
	u32 rtt;

	backlog = min_t(u64, backlog, U32_MAX);
	q->unaccounted = left;
	if (busy || backlog)
		q->last_used = q->next;
	q->waiting[at].nanos = backlog;
	q->waiting[at].slots = div_u64(backlog, length);
	q->sums[at] = busy + (q->next == q->first ?
			      q->base : q->sums[(q->next - 1) & q->mask]);
	q->next++;
	rtt = predict_forecast(q, end, backlog);
	if (!rtt)
		return;
	q->mark_until = end + div_u64((rtt + backlog) * q->values[PREDICT_MARK] +
				      SOJOURN_MILLION / 2, SOJOURN_MILLION);
	q->signals++;
	q->signal_rtt = rtt;
	bitmap_zero(q->signalled, PREDICT_FLOW_BITS);
}

/* Ends the slots that are over at @now. */
static void predict_catch_up(struct Qdisc *sch, struct predict_sched *q, u64 now)
{
	u64 under_way;

	if (now < q->slot_ends)
		return;
	under_way = div64_u64(now, q->values[PREDICT_SLOT]);
	/* A link that stood still for longer than the history has taught nothing. */
	if (under_way - q->next > q->mask + 1ULL)
		predict_skip_to(q, under_way);
	while (q->next < under_way) {
		if (predict_has_no_past(sch, q)) {
			predict_skip_to(q, under_way);
			break;
		}
		predict_end_slot(sch, q);
	}
	q->slot_ends = (under_way + 1) * q->values[PREDICT_SLOT];
}

static void predict_set_timer(struct predict_sched *q)
{
	u64 nanos = PREDICT_TIMER_SLOTS * q->values[PREDICT_SLOT];

	mod_timer(&q->timer, jiffies + 1 + nsecs_to_jiffies(nanos));
}

static void predict_on_timer(struct timer_list *timer)
{
	struct predict_sched *q = container_of(timer, struct predict_sched, timer);
	spinlock_t *lock;

	rcu_read_lock();
	lock = qdisc_lock(qdisc_root_sleeping(q->sch));
	spin_lock(lock);
	predict_catch_up(q->sch, q, ktime_get_ns());
	if (!predict_has_no_past(q->sch, q))
		predict_set_timer(q);
	spin_unlock(lock);
	rcu_read_unlock();
}

/*
 * Signals to the sender of @skb. Returns false if the packet is to be dropped:
 * it cannot be marked, it may be dropped, and the signal has not reached its
 * flow yet.
 */
static bool predict_tell(struct predict_sched *q, struct sk_buff *skb,
			 bool may_drop)
{
	struct sojourn_flow flow;

	if (q->values[PREDICT_ECN] && INET_ECN_set_ce(skb)) {
		q->codel.marks++;
		return true;
	}
	if (q->values[PREDICT_NODROP] || !may_drop)
		return true;
	sojourn_dissect(skb, &flow);
	return __test_and_set_bit(sojourn_digest(&flow, 0) % PREDICT_FLOW_BITS,
				  q->signalled);
}

static int predict_enqueue_packet(struct sk_buff *skb, struct Qdisc *sch,
				  struct sk_buff **to_free)
{
	struct predict_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	predict_catch_up(sch, q, now);
	if (!timer_pending(&q->timer))
		predict_set_timer(q);
	if (sch->q.qlen >= q->values[PREDICT_LIMIT]) {
		q->overlimit++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (q->values[PREDICT_MARK_ARRIVAL] && now < q->mark_until &&
	    !predict_tell(q, skb, true)) {
		q->codel.drops++;
		return qdisc_drop(skb, sch, to_free);
	}
	predict_cb(skb)->arrived = now;
	return qdisc_enqueue_tail(skb, sch);
}

static int predict_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			   struct sk_buff **to_free)
{
	return sojourn_enqueue(skb, sch, to_free, predict_enqueue_packet);
}

static struct sk_buff *predict_take(struct Qdisc *sch)
{
	struct sk_buff *skb = __qdisc_dequeue_head(&sch->q);

	if (skb)
		qdisc_qstats_backlog_dec(sch, skb);
	return skb;
}

/* CoDel's test, for times without growth. */
static struct sk_buff *predict_pop(struct Qdisc *sch, u64 now, bool *ok)
{
	struct predict_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = predict_take(sch);

	*ok = false;
	if (!skb || now - predict_cb(skb)->arrived < q->values[PREDICT_TARGET] ||
	    sch->qstats.backlog <= q->mtu)
		q->first_above = 0;
	else if (!q->first_above)
		q->first_above = now + q->values[PREDICT_INTERVAL];
	else
		*ok = now >= q->first_above;
	return skb;
}

/*
 * The next packet, marked if a signal is under way. The last one is not dropped:
 * parents rely on it that a queue with packets gives one.
 */
static struct sk_buff *predict_tell_next(struct Qdisc *sch, u64 now)
{
	struct predict_sched *q = qdisc_priv(sch);
	struct sk_buff *skb;

	while ((skb = predict_take(sch))) {
		if (now >= q->mark_until || q->values[PREDICT_MARK_ARRIVAL] ||
		    predict_tell(q, skb, sch->q.qlen))
			break;
		sojourn_codel_drop(&q->codel, sch, skb);
	}
	return skb;
}

static struct sk_buff *predict_next(struct Qdisc *sch)
{
	struct predict_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct sk_buff *skb;
	u64 time;

	predict_catch_up(sch, q, now);
	if (q->values[PREDICT_FALLBACK] && now >= q->mark_until &&
	    now >= q->tracking_until)
		skb = sojourn_codel_dequeue(&q->codel, sch, now, predict_pop);
	else
		skb = predict_tell_next(sch, now);
	if (!skb)
		return NULL;
	time = predict_serialise(q, qdisc_pkt_len(skb));
	q->busy_until = max(q->busy_until, now) + time;
	q->unaccounted += time;
	qdisc_bstats_update(sch, skb);
	return skb;
}

static struct sk_buff *predict_dequeue(struct Qdisc *sch)
{
	struct predict_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = predict_next(sch);

	sojourn_codel_report(&q->codel, sch);
	return skb;
}

static struct sk_buff *predict_peek(struct Qdisc *sch)
{
	struct predict_sched *q = qdisc_priv(sch);

	return sojourn_codel_peek(&q->codel, sch, predict_next);
}

/* Lets the candidates begin anew. */
static void predict_restart(struct predict_sched *q)
{
	u32 i;

	q->packet = predict_serialise(q, q->mtu);
	for (i = 0; i < q->count; i++) {
		q->candidates[i].pass = 0;
		q->candidates[i].active_until = 0;
	}
}

/* Slots with growth after which a candidate may be chosen. */
static void predict_set_enough(struct predict_sched *q)
{
	u32 i;

	for (i = 0; i < q->count; i++) {
		struct predict_candidate *candidate = &q->candidates[i];
		u64 slots = candidate->window * q->values[PREDICT_PERSISTENCE];

		candidate->enough = max_t(u64, 2, DIV_ROUND_UP_ULL(slots, SOJOURN_MILLION));
	}
}

/* Whether the n-th power of a number from 1 to 2 is 2 or more, in Q30. */
static bool predict_reaches_two(u64 base, u64 n)
{
	u64 power = SOJOURN_Q30_ONE;

	while (n-- && power < 2 * SOJOURN_Q30_ONE)
		power = sojourn_q30_mul(power, base);
	return power >= 2 * SOJOURN_Q30_ONE;
}

/* The n-th root of 2 in Q30, rounded up. */
static u64 predict_root_of_two(u64 n)
{
	u64 low = SOJOURN_Q30_ONE, high = 2 * SOJOURN_Q30_ONE;

	while (high - low > 1) {
		u64 middle = (low + high) / 2;

		if (predict_reaches_two(middle, n))
			high = middle;
		else
			low = middle;
	}
	return high;
}

/*
 * The candidates from rtt_min to rtt_max, per_octave to each doubling. Returns
 * how many there are; writes them if there is a table.
 */
static u32 predict_list_candidates(const struct predict_sched *q,
				   struct predict_candidate *candidates)
{
	u64 ratio = predict_root_of_two(q->values[PREDICT_PER_OCTAVE]);
	u64 most = q->values[PREDICT_RTT_MAX];
	u64 slot = q->values[PREDICT_SLOT];
	u32 count = 0;
	u64 octave, n;

	for (octave = q->values[PREDICT_RTT_MIN]; octave <= most; octave *= 2) {
		/* In Q16, so that the products stay exact enough. */
		u64 rtt = octave << PREDICT_Q16_SHIFT;

		for (n = 0; n < q->values[PREDICT_PER_OCTAVE]; n++) {
			u64 nanos = (rtt + (1 << (PREDICT_Q16_SHIFT - 1))) >> PREDICT_Q16_SHIFT;

			rtt = mul_u64_u64_shr(rtt, ratio, SOJOURN_Q30_SHIFT);
			if (nanos > most)
				continue;
			if (candidates) {
				candidates[count].rtt = nanos;
				candidates[count].window =
					max_t(u64, 1, div64_u64(nanos + slot / 2, slot));
			}
			count++;
		}
	}
	return count;
}

static int predict_allocate(struct predict_sched *q)
{
	u32 longest, slots;

	q->count = predict_list_candidates(q, NULL);
	q->candidates = kvcalloc(q->count, sizeof(*q->candidates), GFP_KERNEL);
	if (!q->candidates)
		return -ENOMEM;
	predict_list_candidates(q, q->candidates);
	longest = q->candidates[q->count - 1].window;
	slots = ((u32)q->values[PREDICT_ROUNDS] + 2) * longest * 3 / 2;
	slots = roundup_pow_of_two(slots);
	q->mask = slots - 1;
	q->reach = slots - longest - 1;
	q->memory = 2 * longest + 2;
	q->sums = kvcalloc(slots, sizeof(*q->sums), GFP_KERNEL);
	q->waiting = kvcalloc(slots, sizeof(*q->waiting), GFP_KERNEL);
	return q->sums && q->waiting ? 0 : -ENOMEM;
}

static const struct nla_policy predict_policy[SOJOURN_ATTR_FIRST + PREDICT_PARAMS] = {
	[SOJOURN_ATTR_FIRST ... SOJOURN_ATTR_FIRST + PREDICT_PARAMS - 1] = {
		.type = NLA_U64
	},
};

static int predict_check(const u64 *values, struct netlink_ext_ack *extack)
{
	if (values[PREDICT_RTT_MIN] > values[PREDICT_RTT_MAX]) {
		NL_SET_ERR_MSG_MOD(extack, "rtt_min must not exceed rtt_max");
		return -EINVAL;
	}
	if (values[PREDICT_RTT_MIN] < values[PREDICT_SLOT]) {
		NL_SET_ERR_MSG_MOD(extack, "rtt_min must not be shorter than slot");
		return -EINVAL;
	}
	if (values[PREDICT_GROWTH_MIN] >= values[PREDICT_GROWTH_MAX]) {
		NL_SET_ERR_MSG_MOD(extack, "growth_min must be below growth_max");
		return -EINVAL;
	}
	return 0;
}

static int predict_set(struct Qdisc *sch, struct nlattr *opt, bool live,
		       struct netlink_ext_ack *extack)
{
	struct predict_sched *q = qdisc_priv(sch);
	u64 values[PREDICT_PARAMS];
	bool new_rate;
	int err;

	memcpy(values, q->values, sizeof(values));
	err = sojourn_parse_params(predict_params, PREDICT_PARAMS, values, opt,
				   predict_policy, live, extack);
	if (!err)
		err = predict_check(values, extack);
	if (err)
		return err;
	sch_tree_lock(sch);
	new_rate = live && q->values[PREDICT_BANDWIDTH] != values[PREDICT_BANDWIDTH];
	/* A load is a time at one rate, so the history of the old one is discarded. */
	if (new_rate) {
		u64 now = ktime_get_ns();

		predict_catch_up(sch, q, now);
		q->unaccounted = sojourn_since(q->busy_until, now);
		predict_forget(q, q->next);
	}
	if (live && q->values[PREDICT_FALLBACK] != values[PREDICT_FALLBACK]) {
		sojourn_codel_reset(&q->codel);
		q->first_above = 0;
	}
	memcpy(q->values, values, sizeof(values));
	if (new_rate)
		predict_restart(q);
	predict_set_enough(q);
	q->codel.interval = values[PREDICT_INTERVAL];
	q->codel.ecn = values[PREDICT_ECN];
	sojourn_shrink(sch, values[PREDICT_LIMIT], predict_take);
	sch_tree_unlock(sch);
	return 0;
}

static int predict_change(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	return predict_set(sch, opt, true, extack);
}

static int predict_init(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct predict_sched *q = qdisc_priv(sch);
	int err;

	q->sch = sch;
	timer_setup(&q->timer, predict_on_timer, 0);
	q->mtu = sojourn_mtu(sch);
	q->last_used = PREDICT_NEVER;
	sojourn_default_params(predict_params, PREDICT_PARAMS, q->values);
	err = predict_set(sch, opt, false, extack);
	if (err)
		return err;
	err = predict_allocate(q);
	if (err)
		return err;
	predict_restart(q);
	predict_set_enough(q);
	return 0;
}

static void predict_destroy(struct Qdisc *sch)
{
	struct predict_sched *q = qdisc_priv(sch);

	timer_delete_sync(&q->timer);
	kvfree(q->candidates);
	kvfree(q->sums);
	kvfree(q->waiting);
}

static void predict_reset(struct Qdisc *sch)
{
	struct predict_sched *q = qdisc_priv(sch);

	qdisc_reset_queue(sch);
	sojourn_codel_reset(&q->codel);
	q->first_above = 0;
	q->rearm = 0;
	q->tracking_until = 0;
	q->mark_until = 0;
	if (!q->sums || !q->waiting)
		return;
	predict_forget(q, q->next);
	predict_restart(q);
}

static int predict_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct predict_sched *q = qdisc_priv(sch);

	return sojourn_dump_params(skb, PREDICT_PARAMS, q->values);
}

static int predict_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct predict_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	u64 stats[PREDICT_STATS] = { 0 };
	u32 i;

	sch_tree_lock(sch);
	stats[PREDICT_STAT_SIGNALS] = q->signals;
	stats[PREDICT_STAT_SIGNAL_RTT] = q->signal_rtt;
	stats[PREDICT_STAT_MARKING] = now < q->mark_until;
	for (i = q->count; i-- && q->next > q->first;) {
		const struct predict_candidate *candidate = &q->candidates[i];

		if (candidate->active_until < now)
			continue;
		stats[PREDICT_STAT_ACTIVE_RTT] = candidate->rtt;
		stats[PREDICT_STAT_LOAD] =
			sojourn_mul_div(predict_load(q, candidate, q->next - 1),
					SOJOURN_MILLION, candidate->rtt);
		break;
	}
	stats[PREDICT_STAT_MARKS] = q->codel.marks;
	stats[PREDICT_STAT_DROPS] = q->codel.drops;
	stats[PREDICT_STAT_OVERLIMIT] = q->overlimit;
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, stats, sizeof(stats));
}

static struct Qdisc_ops predict_qdisc_ops __read_mostly = {
	.id = "predict",
	.priv_size = sizeof(struct predict_sched),
	.enqueue = predict_enqueue,
	.dequeue = predict_dequeue,
	.peek = predict_peek,
	.init = predict_init,
	.reset = predict_reset,
	.destroy = predict_destroy,
	.change = predict_change,
	.dump = predict_dump,
	.dump_stats = predict_dump_stats,
	.owner = THIS_MODULE,
};

static int __init predict_module_init(void)
{
	return register_qdisc(&predict_qdisc_ops);
}

static void __exit predict_module_exit(void)
{
	unregister_qdisc(&predict_qdisc_ops);
}

module_param_named(limit, predict_params[PREDICT_LIMIT].value, ullong, 0644);
MODULE_PARM_DESC(limit, "Maximum number of packets in the buffer (packets)");
module_param_named(bandwidth, predict_params[PREDICT_BANDWIDTH].value, ullong, 0644);
MODULE_PARM_DESC(bandwidth, "Link rate (bit/s)");
module_param_named(slot, predict_params[PREDICT_SLOT].value, ullong, 0644);
MODULE_PARM_DESC(slot, "Length of a time slot (ns)");
module_param_named(rtt_min, predict_params[PREDICT_RTT_MIN].value, ullong, 0644);
MODULE_PARM_DESC(rtt_min, "Shortest candidate round-trip time (ns)");
module_param_named(rtt_max, predict_params[PREDICT_RTT_MAX].value, ullong, 0644);
MODULE_PARM_DESC(rtt_max, "Longest candidate round-trip time (ns)");
module_param_named(per_octave, predict_params[PREDICT_PER_OCTAVE].value, ullong, 0644);
MODULE_PARM_DESC(per_octave, "Candidates per doubling of the round-trip time");
module_param_named(rounds, predict_params[PREDICT_ROUNDS].value, ullong, 0644);
MODULE_PARM_DESC(rounds, "Number of consecutive round trips over which growth is measured");
module_param_named(growth_min, predict_params[PREDICT_GROWTH_MIN].value, ullong, 0644);
MODULE_PARM_DESC(growth_min, "Smallest accepted growth factor per round trip (millionths)");
module_param_named(growth_max, predict_params[PREDICT_GROWTH_MAX].value, ullong, 0644);
MODULE_PARM_DESC(growth_max, "Largest accepted growth factor per round trip (millionths)");
module_param_named(consistency, predict_params[PREDICT_CONSISTENCY].value, ullong, 0644);
MODULE_PARM_DESC(consistency, "Largest accepted ratio of the largest growth factor to the smallest (millionths)");
module_param_named(significance, predict_params[PREDICT_SIGNIFICANCE].value, ullong, 0644);
MODULE_PARM_DESC(significance, "Number of standard deviations by which the growth must exceed random variation (millionths)");
module_param_named(persistence, predict_params[PREDICT_PERSISTENCE].value, ullong, 0644);
MODULE_PARM_DESC(persistence, "Number of round trips that growth must last before it counts (millionths)");
module_param_named(hold, predict_params[PREDICT_HOLD].value, ullong, 0644);
MODULE_PARM_DESC(hold, "Number of round trips for which a matching candidate stays active (millionths)");
module_param_named(dominance, predict_params[PREDICT_DOMINANCE].value, ullong, 0644);
MODULE_PARM_DESC(dominance, "Largest ratio of the longest active candidate to the chosen one (millionths)");
module_param_named(full, predict_params[PREDICT_FULL].value, ullong, 0644);
MODULE_PARM_DESC(full, "Predicted load at which a signal is sent; 1 is a full link without a queue (millionths)");
module_param_named(mark, predict_params[PREDICT_MARK].value, ullong, 0644);
MODULE_PARM_DESC(mark, "Number of stretched round trips during which departing packets are marked (millionths)");
module_param_named(mark_arrival, predict_params[PREDICT_MARK_ARRIVAL].value, ullong, 0644);
MODULE_PARM_DESC(mark_arrival, "Mark packets as they arrive instead of as they depart (0 or 1)");
module_param_named(stretch, predict_params[PREDICT_STRETCH].value, ullong, 0644);
MODULE_PARM_DESC(stretch, "Add the queueing delay to the round trip of each look-back (0 or 1)");
module_param_named(ecn, predict_params[PREDICT_ECN].value, ullong, 0644);
MODULE_PARM_DESC(ecn, "Mark ECN-capable packets instead of dropping them (0 or 1)");
module_param_named(nodrop, predict_params[PREDICT_NODROP].value, ullong, 0644);
MODULE_PARM_DESC(nodrop, "Pass packets that cannot be marked instead of dropping them (0 or 1)");
module_param_named(fallback, predict_params[PREDICT_FALLBACK].value, ullong, 0644);
MODULE_PARM_DESC(fallback, "Apply CoDel while no candidate is active (0 or 1)");
module_param_named(target, predict_params[PREDICT_TARGET].value, ullong, 0644);
MODULE_PARM_DESC(target, "Acceptable standing delay of the CoDel fallback (ns)");
module_param_named(interval, predict_params[PREDICT_INTERVAL].value, ullong, 0644);
MODULE_PARM_DESC(interval, "Interval of the CoDel fallback (ns)");

#ifdef MODULE_ALIAS_NET_SCH
MODULE_ALIAS_NET_SCH("predict");
#endif

module_init(predict_module_init);
module_exit(predict_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("predict: marks early enough that slow start ends when the link becomes full");
