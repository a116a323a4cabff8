// SPDX-License-Identifier: GPL-2.0-only
/*
 * afcd: CoDel on one FIFO with a target per flow, short for fast flows and
 * long for slow ones. afq: drops arrivals of fast flows at random.
 *
 * Xue, Kumar, Cui, Kondikoppa, Chiu and Park, "AFCD: An Approximated-Fair and
 * Controlled-Delay Queuing for High Speed Networks", ICCCN 2013. In part a
 * reconstruction, written from the descriptions in docs/qdiscs/afcd.md and
 * afd.md.
 *
 * One arrival in "sample" is remembered, by flow, in a shadow buffer. Of its
 * entries, m_i are of flow i; the fair share m_f is its size divided by the
 * number of flows in it. A flow's target is target * (m_f / m_i)^exponent.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "sojourn.h"
#include "sojourn_codel.h"
#include "sch_afcd.h"

/* Samples and packets as they enter equation (5): 1 is 2^16. */
#define AFCD_Q16_SHIFT	16
#define AFCD_Q16_ONE	(1LL << AFCD_Q16_SHIFT)
/* Ratios of shares: 1 is 2^32. */
#define AFCD_Q32_SHIFT	32
/* The time between updates of the fair share: 1/160 s. */
#define AFCD_PERIOD	6250000ULL

/* The flows of the arrivals that were sampled last. */
struct afcd_shadow {
	/* The bin of each, in a ring. */
	u32 *entries;
	u32 capacity;
	u32 filled;
	u32 oldest;
	/* How many of them are of each bin, and bins that have any. */
	u32 *counts;
	u32 table;
	u32 flows;
	/* Arrivals since the last sample. */
	u32 arrivals;
	u64 perturbation;
};

struct afcd_skb_cb {
	u64 arrived;
	u32 bin;
};

static unsigned long long seed;

static struct afcd_skb_cb *afcd_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct afcd_skb_cb));
	return (struct afcd_skb_cb *)qdisc_skb_cb(skb)->data;
}

static int afcd_shadow_init(struct afcd_shadow *shadow, u32 capacity, u32 table,
			    struct sojourn_rng *rng)
{
	shadow->perturbation = sojourn_random(rng);
	shadow->capacity = capacity;
	shadow->table = table;
	shadow->entries = kvcalloc(capacity, sizeof(*shadow->entries), GFP_KERNEL);
	shadow->counts = kvcalloc(table, sizeof(*shadow->counts), GFP_KERNEL);
	return shadow->entries && shadow->counts ? 0 : -ENOMEM;
}

static void afcd_shadow_destroy(struct afcd_shadow *shadow)
{
	kvfree(shadow->entries);
	kvfree(shadow->counts);
}

static void afcd_shadow_reset(struct afcd_shadow *shadow)
{
	shadow->filled = 0;
	shadow->oldest = 0;
	shadow->flows = 0;
	shadow->arrivals = 0;
	if (shadow->counts)
		memset(shadow->counts, 0, array_size(shadow->table, sizeof(*shadow->counts)));
}

static u32 afcd_bin(const struct afcd_shadow *shadow, const struct sk_buff *skb)
{
	struct sojourn_flow flow;
	u64 digest;

	sojourn_dissect(skb, &flow);
	digest = sojourn_digest(&flow, shadow->perturbation);
	return (digest * shadow->table) >> 32;
}

/* Counts an arrival; true if it is its turn to be sampled. */
static bool afcd_is_turn(struct afcd_shadow *shadow, u64 sample)
{
	if (++shadow->arrivals < sample)
		return false;
	shadow->arrivals = 0;
	return true;
}

/* Samples an arrival of @bin in the place of the oldest sample. */
static void afcd_sample(struct afcd_shadow *shadow, u32 bin)
{
	u32 *entry = &shadow->entries[shadow->oldest];

	if (shadow->filled < shadow->capacity)
		shadow->filled++;
	else if (!--shadow->counts[*entry])
		shadow->flows--;
	*entry = bin;
	if (!shadow->counts[bin]++)
		shadow->flows++;
	if (++shadow->oldest == shadow->capacity)
		shadow->oldest = 0;
}

static u64 afcd_q16(u64 millionths)
{
	return div_u64((millionths << AFCD_Q16_SHIFT) + SOJOURN_MILLION / 2,
		       SOJOURN_MILLION);
}

/* The target of the backlog: qtarget or, if it is not set, a fifth of limit. */
static s64 afcd_qtarget(u64 qtarget, u64 limit)
{
	if (qtarget == SOJOURN_UNSET)
		return div_u64(limit << AFCD_Q16_SHIFT, 5);
	return qtarget << AFCD_Q16_SHIFT;
}

/* @gain times how far a backlog is from its target; all in Q16. */
static s64 afcd_steer(u64 gain, u64 backlog, s64 target)
{
	s64 off = (s64)(backlog << AFCD_Q16_SHIFT) - target;
	s64 product = mul_u64_u64_shr(abs(off), gain, AFCD_Q16_SHIFT);

	return off < 0 ? -product : product;
}

struct afcd_sched {
	u64 values[AFCD_PARAMS];
	struct afcd_shadow shadow;
	struct sojourn_codel codel;
	/* For each bin: when it will have been above its target for persist, or 0. */
	u64 *first_above;
	u32 maxpacket;
	/* Equation (5): the target at the fair share, in ns; the rest in Q16. */
	u64 base_target;
	u64 alpha;
	u64 beta;
	s64 qtarget;
	s64 average;
	u32 old_backlog;
	u64 next_update;
	u64 overlimit;
};

static u64 afcd_most(const struct afcd_shadow *shadow)
{
	return (u64)shadow->capacity << AFCD_Q16_SHIFT;
}

/* m_f in Q16. */
static u64 afcd_fair_share(const struct afcd_sched *q)
{
	if (q->values[AFCD_AVERAGE])
		return q->average;
	return (u64)(q->shadow.capacity / max(q->shadow.flows, 1U)) << AFCD_Q16_SHIFT;
}

/* Applies equation (5) for every period that is over: no packet came meanwhile. */
static void afcd_update(struct Qdisc *sch, u64 now)
{
	struct afcd_sched *q = qdisc_priv(sch);
	s64 most = afcd_most(&q->shadow);
	u32 backlog = sch->q.qlen;
	s64 change, now_off;
	u64 periods;

	if (now < q->next_update)
		return;
	periods = div64_u64(now - q->next_update, AFCD_PERIOD);
	q->next_update += (periods + 1) * AFCD_PERIOD;
	now_off = afcd_steer(q->beta, backlog, q->qtarget);
	change = afcd_steer(q->alpha, q->old_backlog, q->qtarget) - now_off;
	q->average = clamp(q->average + change, AFCD_Q16_ONE, most);
	q->old_backlog = backlog;
	/* The further steps are alike, so that they lead straight to a bound. */
	change = afcd_steer(q->alpha, backlog, q->qtarget) - now_off;
	if (!periods || !change)
		return;
	periods = min(periods, div64_u64(most, abs(change)) + 1);
	q->average = clamp(q->average + change * (s64)periods, AFCD_Q16_ONE, most);
}

/* Equation (6): target_i in ns. */
static u64 afcd_target(const struct afcd_sched *q, u32 bin)
{
	u32 samples = q->shadow.counts[bin];
	u64 target = q->base_target;
	u64 ratio, left;

	if (!samples)
		return U64_MAX;
	ratio = div_u64(afcd_fair_share(q) << (AFCD_Q32_SHIFT - AFCD_Q16_SHIFT), samples);
	for (left = q->values[AFCD_EXPONENT]; left; left--) {
		if (mul_u64_u64_shr(target, ratio, 64) >> AFCD_Q32_SHIFT)
			return U64_MAX;
		target = mul_u64_u64_shr(target, ratio, AFCD_Q32_SHIFT);
	}
	return target;
}

static u64 afcd_persist(const struct afcd_sched *q)
{
	if (q->values[AFCD_PERSIST] == SOJOURN_UNSET)
		return q->values[AFCD_INTERVAL];
	return q->values[AFCD_PERSIST];
}

static struct sk_buff *afcd_take(struct Qdisc *sch)
{
	struct sk_buff *skb = __qdisc_dequeue_head(&sch->q);

	if (skb)
		qdisc_qstats_backlog_dec(sch, skb);
	return skb;
}

/* Takes the oldest packet and says whether its flow may be signalled. */
static struct sk_buff *afcd_pop(struct Qdisc *sch, u64 now, bool *ok)
{
	struct afcd_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = afcd_take(sch);
	u64 *first_above;
	u32 bin;

	*ok = false;
	if (!skb)
		return NULL;
	bin = afcd_cb(skb)->bin;
	first_above = &q->first_above[bin];
	if (now - afcd_cb(skb)->arrived < afcd_target(q, bin) ||
	    sch->qstats.backlog <= q->maxpacket) {
		*first_above = 0;
		return skb;
	}
	if (!*first_above) {
		*first_above = now + afcd_persist(q);
		return skb;
	}
	*ok = now > *first_above;
	if (q->values[AFCD_PROTECT] &&
	    (u64)q->shadow.counts[bin] << AFCD_Q16_SHIFT < afcd_fair_share(q))
		*ok = false;
	return skb;
}

static void afcd_sample_arrival(struct afcd_sched *q, u32 bin)
{
	u32 flows = q->shadow.flows;

	afcd_sample(&q->shadow, bin);
	if (q->shadow.flows == flows)
		return;
	q->average = div_u64(afcd_most(&q->shadow), q->shadow.flows);
	q->average = max(q->average, AFCD_Q16_ONE);
}

static int afcd_enqueue_packet(struct sk_buff *skb, struct Qdisc *sch,
			       struct sk_buff **to_free)
{
	struct afcd_sched *q = qdisc_priv(sch);
	bool sampled = afcd_is_turn(&q->shadow, q->values[AFCD_SAMPLE]);
	u64 now = ktime_get_ns();

	if (q->values[AFCD_AVERAGE])
		afcd_update(sch, now);
	if (sch->q.qlen >= q->values[AFCD_LIMIT]) {
		q->overlimit++;
		return qdisc_drop(skb, sch, to_free);
	}
	afcd_cb(skb)->arrived = now;
	afcd_cb(skb)->bin = afcd_bin(&q->shadow, skb);
	if (sampled)
		afcd_sample_arrival(q, afcd_cb(skb)->bin);
	q->maxpacket = max(q->maxpacket, qdisc_pkt_len(skb));
	return qdisc_enqueue_tail(skb, sch);
}

static int afcd_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	return sojourn_enqueue(skb, sch, to_free, afcd_enqueue_packet);
}

static struct sk_buff *afcd_next(struct Qdisc *sch)
{
	struct afcd_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct sk_buff *skb;

	if (q->values[AFCD_AVERAGE])
		afcd_update(sch, now);
	skb = sojourn_codel_dequeue(&q->codel, sch, now, afcd_pop);
	if (skb)
		qdisc_bstats_update(sch, skb);
	return skb;
}

static struct sk_buff *afcd_dequeue(struct Qdisc *sch)
{
	struct afcd_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = afcd_next(sch);

	sojourn_codel_report(&q->codel, sch);
	return skb;
}

static struct sk_buff *afcd_peek(struct Qdisc *sch)
{
	struct afcd_sched *q = qdisc_priv(sch);

	return sojourn_codel_peek(&q->codel, sch, afcd_next);
}

static const struct nla_policy afcd_policy[SOJOURN_ATTR_FIRST + AFCD_PARAMS] = {
	[SOJOURN_ATTR_FIRST ... SOJOURN_ATTR_FIRST + AFCD_PARAMS - 1] = {
		.type = NLA_U64
	},
};

static int afcd_set(struct Qdisc *sch, struct nlattr *opt, bool live,
		    struct netlink_ext_ack *extack)
{
	struct afcd_sched *q = qdisc_priv(sch);
	u64 values[AFCD_PARAMS];
	bool averaged;
	int err;

	memcpy(values, q->values, sizeof(values));
	err = sojourn_parse_params(afcd_params, AFCD_PARAMS, values, opt,
				   afcd_policy, live, extack);
	if (err)
		return err;
	sch_tree_lock(sch);
	averaged = live && q->values[AFCD_AVERAGE];
	/* What is due has the parameters of its time. */
	if (averaged)
		afcd_update(sch, ktime_get_ns());
	memcpy(q->values, values, sizeof(values));
	q->base_target = sojourn_scale(values[AFCD_TARGET], values[AFCD_TARGET_SCALE]);
	q->alpha = afcd_q16(values[AFCD_ALPHA]);
	q->beta = afcd_q16(values[AFCD_BETA]);
	q->qtarget = afcd_qtarget(values[AFCD_QTARGET], values[AFCD_LIMIT]);
	q->codel.interval = values[AFCD_INTERVAL];
	q->codel.ecn = values[AFCD_ECN];
	if (values[AFCD_AVERAGE] && !averaged) {
		q->average = (s64)values[AFCD_SHADOW] << AFCD_Q16_SHIFT;
		q->old_backlog = 0;
		q->next_update = ktime_get_ns() + AFCD_PERIOD;
	}
	sojourn_shrink(sch, values[AFCD_LIMIT], afcd_take);
	sch_tree_unlock(sch);
	return 0;
}

static int afcd_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	return afcd_set(sch, opt, true, extack);
}

static int afcd_init(struct Qdisc *sch, struct nlattr *opt,
		     struct netlink_ext_ack *extack)
{
	struct afcd_sched *q = qdisc_priv(sch);
	struct sojourn_rng rng;
	int err;

	sojourn_rng_init(&rng, READ_ONCE(seed));
	sojourn_default_params(afcd_params, AFCD_PARAMS, q->values);
	err = afcd_set(sch, opt, false, extack);
	if (err)
		return err;
	q->first_above = kvcalloc(q->values[AFCD_TABLE], sizeof(*q->first_above),
				  GFP_KERNEL);
	if (!q->first_above)
		return -ENOMEM;
	return afcd_shadow_init(&q->shadow, q->values[AFCD_SHADOW],
				q->values[AFCD_TABLE], &rng);
}

static void afcd_destroy(struct Qdisc *sch)
{
	struct afcd_sched *q = qdisc_priv(sch);

	afcd_shadow_destroy(&q->shadow);
	kvfree(q->first_above);
}

static void afcd_reset(struct Qdisc *sch)
{
	struct afcd_sched *q = qdisc_priv(sch);

	qdisc_reset_queue(sch);
	sojourn_codel_reset(&q->codel);
	afcd_shadow_reset(&q->shadow);
	q->maxpacket = 0;
	q->average = afcd_most(&q->shadow);
	q->old_backlog = 0;
	if (q->first_above && q->shadow.counts)
		memset(q->first_above, 0,
		       array_size(q->shadow.table, sizeof(*q->first_above)));
}

static int afcd_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct afcd_sched *q = qdisc_priv(sch);

	return sojourn_dump_params(skb, AFCD_PARAMS, q->values);
}

/* A number in Q16 as millionths. */
static u64 afcd_millionths(u64 q16)
{
	return (q16 * SOJOURN_MILLION) >> AFCD_Q16_SHIFT;
}

static int afcd_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct afcd_sched *q = qdisc_priv(sch);
	u64 stats[AFCD_STATS];

	sch_tree_lock(sch);
	stats[AFCD_STAT_COUNT] = q->codel.count;
	stats[AFCD_STAT_LASTCOUNT] = q->codel.lastcount;
	stats[AFCD_STAT_DROPPING] = q->codel.dropping;
	stats[AFCD_STAT_MAXPACKET] = q->maxpacket;
	stats[AFCD_STAT_FLOWS] = q->shadow.flows;
	stats[AFCD_STAT_FAIR_SHARE] = afcd_millionths(afcd_fair_share(q));
	stats[AFCD_STAT_MARKS] = q->codel.marks;
	stats[AFCD_STAT_SIGNALS] = q->codel.drops;
	stats[AFCD_STAT_OVERLIMIT] = q->overlimit;
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, stats, sizeof(stats));
}

static struct Qdisc_ops afcd_qdisc_ops __read_mostly = {
	.id = "afcd",
	.priv_size = sizeof(struct afcd_sched),
	.enqueue = afcd_enqueue,
	.dequeue = afcd_dequeue,
	.peek = afcd_peek,
	.init = afcd_init,
	.reset = afcd_reset,
	.destroy = afcd_destroy,
	.change = afcd_change,
	.dump = afcd_dump,
	.dump_stats = afcd_dump_stats,
	.owner = THIS_MODULE,
};

struct afq_sched {
	u64 values[AFQ_PARAMS];
	struct afcd_shadow shadow;
	struct sojourn_rng rng;
	u64 gain;
	/* In Q16. */
	u64 alpha;
	u64 beta;
	u64 tolerance;
	s64 qtarget;
	/* The backlog at the last sample. */
	u32 old_backlog;
	u64 marks;
	u64 drops;
	u64 overlimit;
};

/* m_fair in Q16; false if no flow has more. */
static bool afq_fair_share(struct Qdisc *sch, u64 *fair)
{
	const struct afq_sched *q = qdisc_priv(sch);
	u64 most = afcd_most(&q->shadow);
	u32 backlog = sch->q.qlen;
	s64 sum;

	*fair = most;
	if (q->shadow.flows < 2)
		return false;
	/* The numbers of the original have no sign. */
	if (((s64)q->old_backlog << AFCD_Q16_SHIFT < q->qtarget) !=
	    ((s64)backlog << AFCD_Q16_SHIFT < q->qtarget))
		return false;
	sum = div_u64(most, q->shadow.flows);
	sum += afcd_steer(q->alpha, q->old_backlog, q->qtarget);
	sum -= afcd_steer(q->beta, backlog, q->qtarget);
	if (sum < 0)
		return false;
	*fair = min_t(u64, sum, most);
	return true;
}

/* The probability of a signal to a flow, in Q30. */
static u64 afq_probability(struct Qdisc *sch, u32 bin)
{
	const struct afq_sched *q = qdisc_priv(sch);
	u64 samples = q->shadow.counts[bin];
	u64 fair, ratio;

	if (!afq_fair_share(sch, &fair) ||
	    samples << (2 * AFCD_Q16_SHIFT) <= q->tolerance * fair)
		return 0;
	ratio = div64_u64(fair << (SOJOURN_Q30_SHIFT - AFCD_Q16_SHIFT), samples);
	if (ratio >= SOJOURN_Q30_ONE)
		return 0;
	return sojourn_q30_mul(q->gain, SOJOURN_Q30_ONE - ratio);
}

static int afq_enqueue_packet(struct sk_buff *skb, struct Qdisc *sch,
			      struct sk_buff **to_free)
{
	struct afq_sched *q = qdisc_priv(sch);
	bool sampled;
	u32 bin;
	u64 p;

	if (sch->q.qlen >= q->values[AFQ_LIMIT]) {
		q->overlimit++;
		return qdisc_drop(skb, sch, to_free);
	}
	bin = afcd_bin(&q->shadow, skb);
	sampled = afcd_is_turn(&q->shadow, q->values[AFQ_SAMPLE]);
	if (sampled)
		afcd_sample(&q->shadow, bin);
	p = afq_probability(sch, bin);
	if (p && sojourn_chance(&q->rng, p)) {
		if (!q->values[AFQ_ECN] || !INET_ECN_set_ce(skb)) {
			q->drops++;
			return qdisc_drop(skb, sch, to_free);
		}
		q->marks++;
	}
	if (sampled && q->shadow.flows > 1)
		q->old_backlog = sch->q.qlen;
	return qdisc_enqueue_tail(skb, sch);
}

static int afq_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	return sojourn_enqueue(skb, sch, to_free, afq_enqueue_packet);
}

static const struct nla_policy afq_policy[SOJOURN_ATTR_FIRST + AFQ_PARAMS] = {
	[SOJOURN_ATTR_FIRST ... SOJOURN_ATTR_FIRST + AFQ_PARAMS - 1] = {
		.type = NLA_U64
	},
};

static int afq_set(struct Qdisc *sch, struct nlattr *opt, bool live,
		   struct netlink_ext_ack *extack)
{
	struct afq_sched *q = qdisc_priv(sch);
	u64 values[AFQ_PARAMS];
	int err;

	memcpy(values, q->values, sizeof(values));
	err = sojourn_parse_params(afq_params, AFQ_PARAMS, values, opt, afq_policy,
				   live, extack);
	if (err)
		return err;
	sch_tree_lock(sch);
	memcpy(q->values, values, sizeof(values));
	q->gain = sojourn_q30(values[AFQ_GAIN]);
	q->alpha = afcd_q16(values[AFQ_ALPHA]);
	q->beta = afcd_q16(values[AFQ_BETA]);
	q->tolerance = afcd_q16(values[AFQ_TOLERANCE]);
	q->qtarget = afcd_qtarget(values[AFQ_QTARGET], values[AFQ_LIMIT]);
	sojourn_shrink(sch, values[AFQ_LIMIT], afcd_take);
	sch_tree_unlock(sch);
	return 0;
}

static int afq_change(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	return afq_set(sch, opt, true, extack);
}

static int afq_init(struct Qdisc *sch, struct nlattr *opt,
		    struct netlink_ext_ack *extack)
{
	struct afq_sched *q = qdisc_priv(sch);
	int err;

	sojourn_rng_init(&q->rng, READ_ONCE(seed));
	sojourn_default_params(afq_params, AFQ_PARAMS, q->values);
	err = afq_set(sch, opt, false, extack);
	if (err)
		return err;
	return afcd_shadow_init(&q->shadow, q->values[AFQ_SHADOW],
				q->values[AFQ_TABLE], &q->rng);
}

static void afq_destroy(struct Qdisc *sch)
{
	struct afq_sched *q = qdisc_priv(sch);

	afcd_shadow_destroy(&q->shadow);
}

static void afq_reset(struct Qdisc *sch)
{
	struct afq_sched *q = qdisc_priv(sch);

	qdisc_reset_queue(sch);
	afcd_shadow_reset(&q->shadow);
	q->old_backlog = 0;
}

static int afq_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct afq_sched *q = qdisc_priv(sch);

	return sojourn_dump_params(skb, AFQ_PARAMS, q->values);
}

static int afq_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct afq_sched *q = qdisc_priv(sch);
	u64 stats[AFQ_STATS];
	u64 fair;

	sch_tree_lock(sch);
	afq_fair_share(sch, &fair);
	stats[AFQ_STAT_FLOWS] = q->shadow.flows;
	stats[AFQ_STAT_FAIR_SHARE] = afcd_millionths(fair);
	stats[AFQ_STAT_MARKS] = q->marks;
	stats[AFQ_STAT_SIGNALS] = q->drops;
	stats[AFQ_STAT_OVERLIMIT] = q->overlimit;
	sch_tree_unlock(sch);
	return gnet_stats_copy_app(d, stats, sizeof(stats));
}

static struct Qdisc_ops afq_qdisc_ops __read_mostly = {
	.id = "afq",
	.priv_size = sizeof(struct afq_sched),
	.enqueue = afq_enqueue,
	.dequeue = qdisc_dequeue_head,
	.peek = qdisc_peek_head,
	.init = afq_init,
	.reset = afq_reset,
	.destroy = afq_destroy,
	.change = afq_change,
	.dump = afq_dump,
	.dump_stats = afq_dump_stats,
	.owner = THIS_MODULE,
};

static int __init afcd_module_init(void)
{
	int err = register_qdisc(&afcd_qdisc_ops);

	if (err)
		return err;
	err = register_qdisc(&afq_qdisc_ops);
	if (err)
		unregister_qdisc(&afcd_qdisc_ops);
	return err;
}

static void __exit afcd_module_exit(void)
{
	unregister_qdisc(&afq_qdisc_ops);
	unregister_qdisc(&afcd_qdisc_ops);
}

module_param(seed, ullong, 0644);
MODULE_PARM_DESC(seed, "Seed of the random numbers and hashes of new queues; 0: unpredictable");
module_param_named(limit, afcd_params[AFCD_LIMIT].value, ullong, 0644);
MODULE_PARM_DESC(limit, "Maximum number of packets in the buffer (packets)");
module_param_named(target, afcd_params[AFCD_TARGET].value, ullong, 0644);
MODULE_PARM_DESC(target, "Acceptable standing delay of a flow at its fair share, before scaling (ns)");
module_param_named(target_scale, afcd_params[AFCD_TARGET_SCALE].value, ullong, 0644);
MODULE_PARM_DESC(target_scale, "Factor applied to target (millionths)");
module_param_named(exponent, afcd_params[AFCD_EXPONENT].value, ullong, 0644);
MODULE_PARM_DESC(exponent, "Exponent of the ratio of the fair share to the flow's share, in the target of the flow");
module_param_named(interval, afcd_params[AFCD_INTERVAL].value, ullong, 0644);
MODULE_PARM_DESC(interval, "CoDel interval: slightly more than the longest expected round-trip time (ns)");
module_param_named(persist, afcd_params[AFCD_PERSIST].value, ullong, 0644);
MODULE_PARM_DESC(persist, "Time that a flow stays above its target before it is signalled (ns)");
module_param_named(protect, afcd_params[AFCD_PROTECT].value, ullong, 0644);
MODULE_PARM_DESC(protect, "Never signal a flow below its fair share (0 or 1)");
module_param_named(shadow, afcd_params[AFCD_SHADOW].value, ullong, 0644);
MODULE_PARM_DESC(shadow, "Number of arrivals in the shadow buffer");
module_param_named(table, afcd_params[AFCD_TABLE].value, ullong, 0644);
MODULE_PARM_DESC(table, "Number of bins that flows are hashed to");
module_param_named(sample, afcd_params[AFCD_SAMPLE].value, ullong, 0644);
MODULE_PARM_DESC(sample, "Sampling period in arrivals: one in this many enters the shadow buffer");
module_param_named(average, afcd_params[AFCD_AVERAGE].value, ullong, 0644);
MODULE_PARM_DESC(average, "Adapt the fair share to the backlog (0 or 1)");
module_param_named(alpha, afcd_params[AFCD_ALPHA].value, ullong, 0644);
MODULE_PARM_DESC(alpha, "Gain on the previous backlog (millionths)");
module_param_named(beta, afcd_params[AFCD_BETA].value, ullong, 0644);
MODULE_PARM_DESC(beta, "Gain on the backlog (millionths)");
module_param_named(qtarget, afcd_params[AFCD_QTARGET].value, ullong, 0644);
MODULE_PARM_DESC(qtarget, "Target backlog of the fair-share controller, in packets (packets)");
module_param_named(ecn, afcd_params[AFCD_ECN].value, ullong, 0644);
MODULE_PARM_DESC(ecn, "Mark ECN-capable packets instead of dropping them (0 or 1)");
module_param_named(afq_limit, afq_params[AFQ_LIMIT].value, ullong, 0644);
MODULE_PARM_DESC(afq_limit, "Maximum number of packets in the buffer (packets)");
module_param_named(afq_shadow, afq_params[AFQ_SHADOW].value, ullong, 0644);
MODULE_PARM_DESC(afq_shadow, "Number of arrivals in the shadow buffer");
module_param_named(afq_table, afq_params[AFQ_TABLE].value, ullong, 0644);
MODULE_PARM_DESC(afq_table, "Number of bins that flows are hashed to");
module_param_named(afq_sample, afq_params[AFQ_SAMPLE].value, ullong, 0644);
MODULE_PARM_DESC(afq_sample, "Sampling period in arrivals: one in this many enters the shadow buffer");
module_param_named(afq_alpha, afq_params[AFQ_ALPHA].value, ullong, 0644);
MODULE_PARM_DESC(afq_alpha, "Gain on the previous backlog (millionths)");
module_param_named(afq_beta, afq_params[AFQ_BETA].value, ullong, 0644);
MODULE_PARM_DESC(afq_beta, "Gain on the backlog (millionths)");
module_param_named(afq_qtarget, afq_params[AFQ_QTARGET].value, ullong, 0644);
MODULE_PARM_DESC(afq_qtarget, "Target backlog of the fair-share controller, in packets (packets)");
module_param_named(afq_tolerance, afq_params[AFQ_TOLERANCE].value, ullong, 0644);
MODULE_PARM_DESC(afq_tolerance, "Multiple of the fair share that a flow may use before its packets are dropped (millionths)");
module_param_named(afq_gain, afq_params[AFQ_GAIN].value, ullong, 0644);
MODULE_PARM_DESC(afq_gain, "Factor applied to the drop probability (millionths)");
module_param_named(afq_ecn, afq_params[AFQ_ECN].value, ullong, 0644);
MODULE_PARM_DESC(afq_ecn, "Mark ECN-capable packets instead of dropping them (0 or 1)");

#ifdef MODULE_ALIAS_NET_SCH
MODULE_ALIAS_NET_SCH("afcd");
MODULE_ALIAS_NET_SCH("afq");
#endif
MODULE_ALIAS("sch_afq");

module_init(afcd_module_init);
module_exit(afcd_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("afcd: CoDel with a target per flow; afq: random early drop of fast flows");
