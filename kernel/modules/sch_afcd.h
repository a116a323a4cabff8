/* SPDX-License-Identifier: GPL-2.0-only */
/* Parameters and statistics of afcd and afq, for the module and for tc. */
#ifndef SCH_AFCD_H
#define SCH_AFCD_H

#include "sojourn_params.h"

enum {
	AFCD_LIMIT,
	AFCD_TARGET,
	AFCD_TARGET_SCALE,
	AFCD_EXPONENT,
	AFCD_INTERVAL,
	AFCD_PERSIST,
	AFCD_PROTECT,
	AFCD_SHADOW,
	AFCD_TABLE,
	AFCD_SAMPLE,
	AFCD_AVERAGE,
	AFCD_ALPHA,
	AFCD_BETA,
	AFCD_QTARGET,
	AFCD_ECN,
	AFCD_PARAMS,
};

static struct sojourn_param afcd_params[AFCD_PARAMS] = {
	[AFCD_LIMIT] = {
		"limit", SOJOURN_PACKETS, 1000, 1, 100000000 },
	[AFCD_TARGET] = {
		"target", SOJOURN_TIME, 5 * SOJOURN_MS, 1, SOJOURN_LONGEST },
	[AFCD_TARGET_SCALE] = {
		"target_scale", SOJOURN_FRACTION, SOJOURN_MILLION, 1,
		1000 * SOJOURN_MILLION },
	[AFCD_EXPONENT] = {
		"exponent", SOJOURN_COUNT, 3, 1, 8 },
	[AFCD_INTERVAL] = {
		"interval", SOJOURN_TIME, 100 * SOJOURN_MS, 1,
		SOJOURN_LONGEST },
	[AFCD_PERSIST] = {
		"persist", SOJOURN_TIME, SOJOURN_UNSET, 0, SOJOURN_LONGEST,
		.unset = "interval" },
	[AFCD_PROTECT] = {
		"protect", SOJOURN_FLAG, 0, 0, 1 },
	[AFCD_SHADOW] = {
		"shadow", SOJOURN_COUNT, 2000, 1, 1 << 20, .fixed = 1 },
	[AFCD_TABLE] = {
		"table", SOJOURN_COUNT, 2000, 1, 1 << 20, .fixed = 1 },
	[AFCD_SAMPLE] = {
		"sample", SOJOURN_COUNT, 500, 1, 1000000000 },
	[AFCD_AVERAGE] = {
		"average", SOJOURN_FLAG, 0, 0, 1 },
	[AFCD_ALPHA] = {
		"alpha", SOJOURN_FRACTION, 1700000, 1, 1000 * SOJOURN_MILLION },
	[AFCD_BETA] = {
		"beta", SOJOURN_FRACTION, 1800000, 1, 1000 * SOJOURN_MILLION },
	[AFCD_QTARGET] = {
		"qtarget", SOJOURN_PACKETS, SOJOURN_UNSET, 0, 100000000,
		.unset = "limit / 5" },
	[AFCD_ECN] = {
		"ecn", SOJOURN_FLAG, 0, 0, 1 },
};

enum {
	AFCD_STAT_COUNT,
	AFCD_STAT_LASTCOUNT,
	AFCD_STAT_DROPPING,
	AFCD_STAT_MAXPACKET,
	AFCD_STAT_FLOWS,
	AFCD_STAT_FAIR_SHARE,
	AFCD_STAT_MARKS,
	AFCD_STAT_SIGNALS,
	AFCD_STAT_OVERLIMIT,
	AFCD_STATS,
};

#ifndef __KERNEL__
static const struct sojourn_stat afcd_stats[AFCD_STATS] = {
	[AFCD_STAT_COUNT] = { "count", SOJOURN_COUNT },
	[AFCD_STAT_LASTCOUNT] = { "lastcount", SOJOURN_COUNT },
	[AFCD_STAT_DROPPING] = { "dropping", SOJOURN_COUNT },
	[AFCD_STAT_MAXPACKET] = { "maxpacket", SOJOURN_BYTES },
	/* Flows that have samples, and the fair share in samples. */
	[AFCD_STAT_FLOWS] = { "flows", SOJOURN_COUNT },
	[AFCD_STAT_FAIR_SHARE] = { "fair_share", SOJOURN_FRACTION },
	[AFCD_STAT_MARKS] = { "ecn_mark", SOJOURN_COUNT },
	[AFCD_STAT_SIGNALS] = { "drop_early", SOJOURN_COUNT },
	[AFCD_STAT_OVERLIMIT] = { "drop_overlimit", SOJOURN_COUNT },
};
#endif

enum {
	AFQ_LIMIT,
	AFQ_SHADOW,
	AFQ_TABLE,
	AFQ_SAMPLE,
	AFQ_ALPHA,
	AFQ_BETA,
	AFQ_QTARGET,
	AFQ_TOLERANCE,
	AFQ_GAIN,
	AFQ_ECN,
	AFQ_PARAMS,
};

static struct sojourn_param afq_params[AFQ_PARAMS] = {
	[AFQ_LIMIT] = {
		"limit", SOJOURN_PACKETS, 1000, 1, 100000000 },
	[AFQ_SHADOW] = {
		"shadow", SOJOURN_COUNT, 2000, 1, 1 << 20, .fixed = 1 },
	[AFQ_TABLE] = {
		"table", SOJOURN_COUNT, 100, 1, 1 << 20, .fixed = 1 },
	[AFQ_SAMPLE] = {
		"sample", SOJOURN_COUNT, 500, 1, 1000000000 },
	[AFQ_ALPHA] = {
		"alpha", SOJOURN_FRACTION, 1700000, 1, 1000 * SOJOURN_MILLION },
	[AFQ_BETA] = {
		"beta", SOJOURN_FRACTION, 1800000, 1, 1000 * SOJOURN_MILLION },
	[AFQ_QTARGET] = {
		"qtarget", SOJOURN_PACKETS, SOJOURN_UNSET, 0, 100000000,
		.unset = "limit / 5" },
	[AFQ_TOLERANCE] = {
		"tolerance", SOJOURN_FRACTION, 1200000, 1,
		1000 * SOJOURN_MILLION },
	[AFQ_GAIN] = {
		"gain", SOJOURN_FRACTION, 1000, 1, SOJOURN_MILLION },
	[AFQ_ECN] = {
		"ecn", SOJOURN_FLAG, 0, 0, 1 },
};

enum {
	AFQ_STAT_FLOWS,
	AFQ_STAT_FAIR_SHARE,
	AFQ_STAT_MARKS,
	AFQ_STAT_SIGNALS,
	AFQ_STAT_OVERLIMIT,
	AFQ_STATS,
};

#ifndef __KERNEL__
static const struct sojourn_stat afq_stats[AFQ_STATS] = {
	[AFQ_STAT_FLOWS] = { "flows", SOJOURN_COUNT },
	[AFQ_STAT_FAIR_SHARE] = { "fair_share", SOJOURN_FRACTION },
	[AFQ_STAT_MARKS] = { "ecn_mark", SOJOURN_COUNT },
	[AFQ_STAT_SIGNALS] = { "drop_early", SOJOURN_COUNT },
	[AFQ_STAT_OVERLIMIT] = { "drop_overlimit", SOJOURN_COUNT },
};
#endif

#endif
