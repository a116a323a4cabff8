/* SPDX-License-Identifier: GPL-2.0-only */
/* Parameters and statistics of cocoa, for the module and for tc. */
#ifndef SCH_COCOA_H
#define SCH_COCOA_H

#include "sojourn_params.h"

enum {
	COCOA_LIMIT,
	COCOA_FLOW_LIMIT,
	COCOA_QUANTUM,
	COCOA_INITIAL_QUANTUM,
	COCOA_REFILL_DELAY,
	COCOA_ORPHAN_MASK,
	COCOA_GUARD_INTERVAL,
	COCOA_MAX_INCREASE,
	COCOA_MAX_MONITORING_INTERVAL,
	COCOA_PARAMS,
};

static struct sojourn_param cocoa_params[COCOA_PARAMS] = {
	[COCOA_LIMIT] = {
		"limit", SOJOURN_PACKETS, 10000, 1, 100000000 },
	[COCOA_FLOW_LIMIT] = {
		"flow_limit", SOJOURN_PACKETS, 100, 1, 100000000 },
	[COCOA_QUANTUM] = {
		"quantum", SOJOURN_BYTES, SOJOURN_UNSET, 1, 1 << 20,
		.unset = "2 MTU" },
	[COCOA_INITIAL_QUANTUM] = {
		"initial_quantum", SOJOURN_BYTES, SOJOURN_UNSET, 1, 1 << 24,
		.unset = "10 MTU" },
	[COCOA_REFILL_DELAY] = {
		"refill_delay", SOJOURN_TIME, 40 * SOJOURN_MS, 0,
		SOJOURN_LONGEST },
	[COCOA_ORPHAN_MASK] = {
		"orphan_mask", SOJOURN_COUNT, 1023, 0, 65535, .fixed = 1 },
	[COCOA_GUARD_INTERVAL] = {
		"guard_interval", SOJOURN_FRACTION, 1250000, 1,
		1000 * SOJOURN_MILLION },
	[COCOA_MAX_INCREASE] = {
		"max_increase", SOJOURN_FRACTION, 2 * SOJOURN_MILLION,
		SOJOURN_MILLION, 1000 * SOJOURN_MILLION },
	[COCOA_MAX_MONITORING_INTERVAL] = {
		"max_monitoring_interval", SOJOURN_TIME, SOJOURN_S, 1,
		SOJOURN_LONGEST },
};

enum {
	COCOA_STAT_FLOWS,
	COCOA_STAT_INACTIVE,
	COCOA_STAT_OVERLIMIT,
	COCOA_STAT_FLOW_LIMIT,
	COCOA_STAT_ENLARGED,
	COCOA_STAT_SHRUNK,
	COCOA_STAT_DELETED,
	COCOA_STAT_LEAST_LIMIT,
	COCOA_STAT_MOST_LIMIT,
	COCOA_STATS,
};

#ifndef __KERNEL__
static const struct sojourn_stat cocoa_stats[COCOA_STATS] = {
	[COCOA_STAT_FLOWS] = { "flows", SOJOURN_COUNT },
	[COCOA_STAT_INACTIVE] = { "inactive", SOJOURN_COUNT },
	/* Arrivals dropped at limit, and at the limit of their flow. */
	[COCOA_STAT_OVERLIMIT] = { "drop_overlimit", SOJOURN_COUNT },
	[COCOA_STAT_FLOW_LIMIT] = { "drop_flow_limit", SOJOURN_COUNT },
	/* Limits that grew and shrank, and packets deleted by the latter. */
	[COCOA_STAT_ENLARGED] = { "enlarged", SOJOURN_COUNT },
	[COCOA_STAT_SHRUNK] = { "shrunk", SOJOURN_COUNT },
	[COCOA_STAT_DELETED] = { "drop_shrunk", SOJOURN_COUNT },
	/* The limits of the flows that are known. */
	[COCOA_STAT_LEAST_LIMIT] = { "least_limit", SOJOURN_PACKETS },
	[COCOA_STAT_MOST_LIMIT] = { "most_limit", SOJOURN_PACKETS },
};
#endif

#endif
