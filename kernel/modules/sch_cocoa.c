// SPDX-License-Identifier: GPL-2.0-only
/*
 * cocoa: fair queueing with a limit per flow that follows the need of its
 * congestion control.
 *
 * Bachl, Zseby and Fabini, "Cocoa: Congestion Control Aware Queuing", 2019.
 * Written from the description in docs/qdiscs/cocoa.md.
 *
 * Each flow has a FIFO; deficit round robin serves them, new flows before old
 * ones. A flow starts with a limit of flow_limit packets. An arrival beyond the
 * limit
 *  - enlarges it if the FIFO was empty at times since the last loss, by what
 *    could have been sent meanwhile;
 *  - shrinks it, once the guard is over, by the least backlog in the longest
 *    interval between losses.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "sojourn.h"
#include "sch_cocoa.h"

/* With this many flows or more, and half of them inactive, old ones are forgotten. */
#define COCOA_MANY_FLOWS	2048
#define COCOA_FORGOTTEN_AFTER	(10 * SOJOURN_S)
#define COCOA_NO_DEPARTURE	U32_MAX

/* A time without loss. */
struct cocoa_interval {
	u64 start;
	u64 end;
	u64 idle;
	u64 sent;
	/* The fewest packets that a departure left. */
	u32 least;
};

/* The limit of a flow and what it is judged by. */
struct cocoa_control {
	u32 limit;
	bool known;
	bool enlarged;
	bool idle;
	u64 idle_since;
	u64 guard_start;
	u64 guard_end;
	struct cocoa_interval current_interval;
	struct cocoa_interval longest;
};

enum cocoa_place {
	COCOA_UNKNOWN,
	COCOA_LISTED,
	COCOA_DETACHED,
};

struct cocoa_flow {
	struct sk_buff_head packets;
	struct list_head turn;
	enum cocoa_place place;
	u64 detached_at;
	s64 credit;
	struct cocoa_control control;
};

struct cocoa_sched {
	u64 values[COCOA_PARAMS];
	u64 perturbation;
	u32 quantum;
	u32 initial_quantum;
	/* Packets of control protocols, such as IGMP: they precede all flows. */
	struct sk_buff_head priority;
	struct list_head new_flows;
	struct list_head old_flows;
	u32 flow_count;
	struct cocoa_flow *flows;
	u64 stats[COCOA_STATS];
};

static unsigned long long seed;

static void cocoa_interval_start(struct cocoa_interval *interval, u64 now)
{
	*interval = (struct cocoa_interval) {
		.start = now,
		.end = now,
		.least = COCOA_NO_DEPARTURE,
	};
}

static u64 cocoa_length(const struct cocoa_interval *interval)
{
	return interval->end - interval->start;
}

static void cocoa_control_init(struct cocoa_control *control, u32 limit,
			       u64 now)
{
	memset(control, 0, sizeof(*control));
	control->known = true;
	control->limit = limit;
	control->guard_start = now;
	control->guard_end = now;
	cocoa_interval_start(&control->current_interval, now);
	control->longest = control->current_interval;
}

/* The limit may not shrink for a while. */
static void cocoa_guard(const struct cocoa_sched *q,
			struct cocoa_control *control, u64 now)
{
	u64 wanted = sojourn_scale(cocoa_length(&control->longest),
				   q->values[COCOA_GUARD_INTERVAL]);

	control->guard_start = now;
	control->guard_end = now + min(wanted, q->values[COCOA_MAX_MONITORING_INTERVAL]);
	control->idle = false;
	cocoa_interval_start(&control->current_interval, now);
	control->longest = control->current_interval;
}

/* Makes room for what could have been sent while the FIFO was empty. */
static void cocoa_enlarge(const struct cocoa_sched *q,
			  struct cocoa_control *control, u64 now)
{
	const struct cocoa_interval *interval = &control->current_interval;
	u64 active = sojourn_since(now - interval->start, interval->idle);
	u64 missed, most;

	control->enlarged = true;
	if (!active)
		return;
	missed = sojourn_mul_div(interval->sent, interval->idle, active);
	most = sojourn_scale(control->limit, q->values[COCOA_MAX_INCREASE]);
	missed = min(sojourn_later(control->limit, missed), most);
	control->limit = min_t(u64, missed, U32_MAX);
}

/*
 * An arrival finds @packets of its flow, as many as the limit or more. Returns
 * whether it is kept; if not, *@delete of the newest packets go with it.
 */
static bool cocoa_overflow(struct cocoa_sched *q, struct cocoa_control *control,
			   u32 packets, u64 now, u32 *delete)
{
	bool first = control->guard_start == control->guard_end;
	struct cocoa_interval *interval = &control->current_interval;
	bool enlarged;

	*delete = 0;
	if (interval->idle && !control->enlarged && !first) {
		cocoa_enlarge(q, control, now);
		q->stats[COCOA_STAT_ENLARGED]++;
		if (packets < control->limit)
			return true;
	}
	interval->end = now;
	enlarged = control->enlarged;
	control->enlarged = false;
	if (enlarged || cocoa_length(interval) >= cocoa_length(&control->longest))
		control->longest = *interval;
	if (first || enlarged) {
		cocoa_guard(q, control, now);
	} else if (now >= control->guard_end) {
		if (control->longest.least != COCOA_NO_DEPARTURE)
			*delete = min(control->longest.least, control->limit - 1);
		control->limit -= *delete;
		cocoa_guard(q, control, now);
	} else {
		cocoa_interval_start(interval, now);
	}
	return false;
}

static struct cocoa_flow *cocoa_classify(struct cocoa_sched *q,
					 const struct sk_buff *skb, u64 now)
{
	struct sojourn_flow key;
	struct cocoa_flow *flow;

	sojourn_dissect(skb, &key);
	flow = &q->flows[sojourn_digest(&key, q->perturbation) &
			 (u32)q->values[COCOA_ORPHAN_MASK]];
	if (q->stats[COCOA_STAT_FLOWS] >= COCOA_MANY_FLOWS &&
	    2 * q->stats[COCOA_STAT_INACTIVE] > q->stats[COCOA_STAT_FLOWS] &&
	    flow->place == COCOA_DETACHED &&
	    now - flow->detached_at > COCOA_FORGOTTEN_AFTER) {
		flow->place = COCOA_UNKNOWN;
		flow->credit = q->initial_quantum;
		flow->control.known = false;
		q->stats[COCOA_STAT_FLOWS]--;
		q->stats[COCOA_STAT_INACTIVE]--;
	}
	if (!flow->control.known)
		cocoa_control_init(&flow->control, q->values[COCOA_FLOW_LIMIT], now);
	return flow;
}

/* Drops the @count newest packets of @flow. */
static void cocoa_delete(struct Qdisc *sch, struct cocoa_flow *flow, u32 count,
			 struct sk_buff **to_free)
{
	struct cocoa_sched *q = qdisc_priv(sch);
	unsigned int packets = 0, bytes = 0;
	struct sk_buff *skb;

	while (packets < count && (skb = skb_peek_tail(&flow->packets))) {
		packets++;
		bytes += qdisc_pkt_len(skb);
		sojourn_unlink(skb, sch, &flow->packets);
		qdisc_drop(skb, sch, to_free);
	}
	if (!packets)
		return;
	q->stats[COCOA_STAT_SHRUNK]++;
	q->stats[COCOA_STAT_DELETED] += packets;
	qdisc_tree_reduce_backlog(sch, packets, bytes);
}

static int cocoa_enqueue_packet(struct sk_buff *skb, struct Qdisc *sch,
				struct sk_buff **to_free)
{
	struct cocoa_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct cocoa_flow *flow;
	u32 packets, delete;

	if (sch->q.qlen >= q->values[COCOA_LIMIT]) {
		q->stats[COCOA_STAT_OVERLIMIT]++;
		return qdisc_drop(skb, sch, to_free);
	}
	if ((skb->priority & TC_PRIO_MAX) == TC_PRIO_CONTROL) {
		sojourn_append(skb, sch, &q->priority);
		return NET_XMIT_SUCCESS;
	}
	flow = cocoa_classify(q, skb, now);
	packets = skb_queue_len(&flow->packets);
	if (packets >= flow->control.limit &&
	    !cocoa_overflow(q, &flow->control, packets, now, &delete)) {
		cocoa_delete(sch, flow, delete, to_free);
		q->stats[COCOA_STAT_FLOW_LIMIT]++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (flow->control.idle) {
		flow->control.idle = false;
		flow->control.current_interval.idle += now - flow->control.idle_since;
	}
	if (flow->place != COCOA_LISTED) {
		if (flow->place == COCOA_UNKNOWN) {
			q->stats[COCOA_STAT_FLOWS]++;
			/* It may have changed since the flow was made. */
			flow->credit = q->initial_quantum;
		} else {
			q->stats[COCOA_STAT_INACTIVE]--;
			if (now - flow->detached_at > q->values[COCOA_REFILL_DELAY])
				flow->credit = max_t(s64, flow->credit, q->quantum);
		}
		flow->place = COCOA_LISTED;
		list_add_tail(&flow->turn, &q->new_flows);
	}
	sojourn_append(skb, sch, &flow->packets);
	return NET_XMIT_SUCCESS;
}

static int cocoa_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			 struct sk_buff **to_free)
{
	return sojourn_enqueue(skb, sch, to_free, cocoa_enqueue_packet);
}

/* A packet of @flow has left. */
static void cocoa_departure(struct cocoa_flow *flow, u64 now)
{
	struct cocoa_control *control = &flow->control;
	u32 left = skb_queue_len(&flow->packets);

	control->current_interval.sent++;
	control->current_interval.least = min(control->current_interval.least, left);
	if (!left) {
		control->idle = true;
		control->idle_since = now;
	}
}

/* Takes the packet whose turn it is. */
static struct sk_buff *cocoa_next(struct Qdisc *sch)
{
	struct cocoa_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct cocoa_flow *flow;
	struct sk_buff *skb;
	bool is_new;

	skb = skb_peek(&q->priority);
	if (skb) {
		sojourn_unlink(skb, sch, &q->priority);
		return skb;
	}
	/* Each turn sends, detaches a flow, or moves one to old and adds credit. */
	for (;;) {
		is_new = !list_empty(&q->new_flows);
		flow = list_first_entry_or_null(is_new ? &q->new_flows : &q->old_flows,
						struct cocoa_flow, turn);
		if (!flow)
			return NULL;
		if (flow->credit <= 0) {
			flow->credit += q->quantum;
			list_move_tail(&flow->turn, &q->old_flows);
			continue;
		}
		skb = skb_peek(&flow->packets);
		if (skb)
			break;
		/* A new flow may not come back as new before the old had their turn. */
		if (is_new && !list_empty(&q->old_flows)) {
			list_move_tail(&flow->turn, &q->old_flows);
		} else {
			list_del_init(&flow->turn);
			flow->place = COCOA_DETACHED;
			flow->detached_at = now;
			q->stats[COCOA_STAT_INACTIVE]++;
		}
	}
	sojourn_unlink(skb, sch, &flow->packets);
	flow->credit -= qdisc_pkt_len(skb);
	cocoa_departure(flow, now);
	return skb;
}

static struct sk_buff *cocoa_dequeue(struct Qdisc *sch)
{
	struct sk_buff *skb = cocoa_next(sch);

	if (skb)
		qdisc_bstats_update(sch, skb);
	return skb;
}

static void cocoa_reset(struct Qdisc *sch)
{
	struct cocoa_sched *q = qdisc_priv(sch);
	u32 i;

	__skb_queue_purge(&q->priority);
	INIT_LIST_HEAD(&q->new_flows);
	INIT_LIST_HEAD(&q->old_flows);
	q->stats[COCOA_STAT_FLOWS] = 0;
	q->stats[COCOA_STAT_INACTIVE] = 0;
	if (!q->flows)
		return;
	for (i = 0; i < q->flow_count; i++) {
		struct cocoa_flow *flow = &q->flows[i];

		__skb_queue_purge(&flow->packets);
		INIT_LIST_HEAD(&flow->turn);
		flow->place = COCOA_UNKNOWN;
		flow->credit = q->initial_quantum;
		flow->control.known = false;
	}
}

static const struct nla_policy cocoa_policy[SOJOURN_ATTR_FIRST + COCOA_PARAMS] = {
	[SOJOURN_ATTR_FIRST ... SOJOURN_ATTR_FIRST + COCOA_PARAMS - 1] = {
		.type = NLA_U64
	},
};

static int cocoa_set(struct Qdisc *sch, struct nlattr *opt, bool live,
		     struct netlink_ext_ack *extack)
{
	struct cocoa_sched *q = qdisc_priv(sch);
	u64 values[COCOA_PARAMS];
	u32 mtu = sojourn_mtu(sch);
	int err;

	memcpy(values, q->values, sizeof(values));
	err = sojourn_parse_params(cocoa_params, COCOA_PARAMS, values, opt,
				   cocoa_policy, live, extack);
	if (err)
		return err;
	sch_tree_lock(sch);
	memcpy(q->values, values, sizeof(values));
	q->quantum = values[COCOA_QUANTUM] == SOJOURN_UNSET ?
		     2 * mtu : values[COCOA_QUANTUM];
	q->initial_quantum = values[COCOA_INITIAL_QUANTUM] == SOJOURN_UNSET ?
			     10 * mtu : values[COCOA_INITIAL_QUANTUM];
	sojourn_shrink(sch, values[COCOA_LIMIT], cocoa_next);
	sch_tree_unlock(sch);
	return 0;
}

static int cocoa_change(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	return cocoa_set(sch, opt, true, extack);
}

static int cocoa_init(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct cocoa_sched *q = qdisc_priv(sch);
	struct sojourn_rng rng;
	int err;
	u32 i;

	__skb_queue_head_init(&q->priority);
	INIT_LIST_HEAD(&q->new_flows);
	INIT_LIST_HEAD(&q->old_flows);
	sojourn_rng_init(&rng, READ_ONCE(seed));
	q->perturbation = sojourn_random(&rng);
	sojourn_default_params(cocoa_params, COCOA_PARAMS, q->values);
	err = cocoa_set(sch, opt, false, extack);
	if (err)
		return err;
	q->flow_count = q->values[COCOA_ORPHAN_MASK] + 1;
	q->flows = kvcalloc(q->flow_count, sizeof(*q->flows), GFP_KERNEL);
	if (!q->flows)
		return -ENOMEM;
	for (i = 0; i < q->flow_count; i++) {
		__skb_queue_head_init(&q->flows[i].packets);
		INIT_LIST_HEAD(&q->flows[i].turn);
		q->flows[i].credit = q->initial_quantum;
	}
	return 0;
}

static void cocoa_destroy(struct Qdisc *sch)
{
	struct cocoa_sched *q = qdisc_priv(sch);

	kvfree(q->flows);
}

static int cocoa_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct cocoa_sched *q = qdisc_priv(sch);

	return sojourn_dump_params(skb, COCOA_PARAMS, q->values);
}

static int cocoa_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct cocoa_sched *q = qdisc_priv(sch);
	u64 stats[COCOA_STATS];
	u32 i, least = U32_MAX, most = 0;

	sch_tree_lock(sch);
	memcpy(stats, q->stats, sizeof(stats));
	for (i = 0; i < q->flow_count; i++) {
		const struct cocoa_control *control = &q->flows[i].control;

		if (!control->known)
			continue;
		least = min(least, control->limit);
		most = max(most, control->limit);
	}
	sch_tree_unlock(sch);
	stats[COCOA_STAT_LEAST_LIMIT] = most ? least : 0;
	stats[COCOA_STAT_MOST_LIMIT] = most;
	return gnet_stats_copy_app(d, stats, sizeof(stats));
}

static struct Qdisc_ops cocoa_qdisc_ops __read_mostly = {
	.id = "cocoa",
	.priv_size = sizeof(struct cocoa_sched),
	.enqueue = cocoa_enqueue,
	.dequeue = cocoa_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = cocoa_init,
	.reset = cocoa_reset,
	.destroy = cocoa_destroy,
	.change = cocoa_change,
	.dump = cocoa_dump,
	.dump_stats = cocoa_dump_stats,
	.owner = THIS_MODULE,
};

static int __init cocoa_module_init(void)
{
	return register_qdisc(&cocoa_qdisc_ops);
}

static void __exit cocoa_module_exit(void)
{
	unregister_qdisc(&cocoa_qdisc_ops);
}

module_param(seed, ullong, 0644);
MODULE_PARM_DESC(seed, "Seed of the random numbers and hashes of new queues; 0: unpredictable");
module_param_named(limit, cocoa_params[COCOA_LIMIT].value, ullong, 0644);
MODULE_PARM_DESC(limit, "Maximum number of packets of all flows together (packets)");
module_param_named(flow_limit, cocoa_params[COCOA_FLOW_LIMIT].value, ullong, 0644);
MODULE_PARM_DESC(flow_limit, "Initial maximum number of queued packets per flow (packets)");
module_param_named(quantum, cocoa_params[COCOA_QUANTUM].value, ullong, 0644);
MODULE_PARM_DESC(quantum, "Bytes that a flow sends per turn (bytes)");
module_param_named(initial_quantum, cocoa_params[COCOA_INITIAL_QUANTUM].value, ullong, 0644);
MODULE_PARM_DESC(initial_quantum, "Bytes that a flow sends in its first turn (bytes)");
module_param_named(refill_delay, cocoa_params[COCOA_REFILL_DELAY].value, ullong, 0644);
MODULE_PARM_DESC(refill_delay, "Idle time after which a flow returns with a full quantum (ns)");
module_param_named(orphan_mask, cocoa_params[COCOA_ORPHAN_MASK].value, ullong, 0644);
MODULE_PARM_DESC(orphan_mask, "Bit mask on the hash of a flow");
module_param_named(guard_interval, cocoa_params[COCOA_GUARD_INTERVAL].value, ullong, 0644);
MODULE_PARM_DESC(guard_interval, "Number of loss-free intervals before a limit may shrink (millionths)");
module_param_named(max_increase, cocoa_params[COCOA_MAX_INCREASE].value, ullong, 0644);
MODULE_PARM_DESC(max_increase, "Largest factor by which a limit grows in one step (millionths)");
module_param_named(max_monitoring_interval, cocoa_params[COCOA_MAX_MONITORING_INTERVAL].value, ullong, 0644);
MODULE_PARM_DESC(max_monitoring_interval, "Longest time before a limit may shrink (ns)");

#ifdef MODULE_ALIAS_NET_SCH
MODULE_ALIAS_NET_SCH("cocoa");
#endif

module_init(cocoa_module_init);
module_exit(cocoa_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("cocoa: fair queueing with a limit per flow that follows its congestion control");
