/* SPDX-License-Identifier: GPL-2.0-only */
/* Parameters and statistics of floq, for the module and for tc. */
#ifndef SCH_FLOQ_H
#define SCH_FLOQ_H

#include "sojourn_params.h"

enum {
	FLOQ_LIMIT,
	FLOQ_THRESHOLD,
	FLOQ_GAMMA,
	FLOQ_PROBABILITY,
	FLOQ_SETUP_WEIGHT,
	FLOQ_RESPONSIVE_WEIGHT,
	FLOQ_UNRESPONSIVE_WEIGHT,
	FLOQ_EXPONENT,
	FLOQ_GAIN,
	FLOQ_SETUP_PACKETS,
	FLOQ_SETUP_TIME,
	FLOQ_CONNECTIONS,
	FLOQ_EXPIRY,
	FLOQ_RESUME,
	FLOQ_QUIC,
	FLOQ_PUSHOUT,
	FLOQ_ECN,
	FLOQ_PARAMS,
};

static struct sojourn_param floq_params[FLOQ_PARAMS] = {
	[FLOQ_LIMIT] = {
		"limit", SOJOURN_PACKETS, 1000, 1, 100000000 },
	[FLOQ_THRESHOLD] = {
		"threshold", SOJOURN_FRACTION, 500000, 1, SOJOURN_MILLION },
	[FLOQ_GAMMA] = {
		"gamma", SOJOURN_COUNT, 1, 1, 8 },
	[FLOQ_PROBABILITY] = {
		"probability", SOJOURN_FRACTION, SOJOURN_MILLION, 1,
		SOJOURN_MILLION },
	[FLOQ_SETUP_WEIGHT] = {
		"setup_weight", SOJOURN_FRACTION, 0, 0, 10 * SOJOURN_MILLION },
	[FLOQ_RESPONSIVE_WEIGHT] = {
		"responsive_weight", SOJOURN_FRACTION, SOJOURN_MILLION, 0,
		10 * SOJOURN_MILLION },
	[FLOQ_UNRESPONSIVE_WEIGHT] = {
		"unresponsive_weight", SOJOURN_FRACTION, SOJOURN_MILLION, 0,
		10 * SOJOURN_MILLION },
	[FLOQ_EXPONENT] = {
		"exponent", SOJOURN_COUNT, 2, 0, 8 },
	[FLOQ_GAIN] = {
		"gain", SOJOURN_FRACTION, 2000, 1, SOJOURN_MILLION },
	[FLOQ_SETUP_PACKETS] = {
		"setup_packets", SOJOURN_COUNT, 10, 0, 1000000 },
	[FLOQ_SETUP_TIME] = {
		"setup_time", SOJOURN_TIME, 3 * SOJOURN_S, 0, SOJOURN_LONGEST },
	[FLOQ_CONNECTIONS] = {
		"connections", SOJOURN_COUNT, 4096, 1, 1 << 20, .fixed = 1 },
	[FLOQ_EXPIRY] = {
		"expiry", SOJOURN_TIME, 10 * SOJOURN_S, 0, SOJOURN_LONGEST },
	[FLOQ_RESUME] = {
		"resume", SOJOURN_TIME, SOJOURN_UNSET, 0, SOJOURN_LONGEST,
		.unset = "off" },
	[FLOQ_QUIC] = {
		"quic", SOJOURN_FLAG, 1, 0, 1 },
	[FLOQ_PUSHOUT] = {
		"pushout", SOJOURN_FLAG, 0, 0, 1 },
	[FLOQ_ECN] = {
		"ecn", SOJOURN_FLAG, 0, 0, 1 },
};

/* The classes of packets; their statistics are in this order. */
enum floq_class {
	FLOQ_SETUP,
	FLOQ_RESPONSIVE,
	FLOQ_UNRESPONSIVE,
	FLOQ_CLASSES,
};

enum {
	FLOQ_STAT_MARKED,
	FLOQ_STAT_PUSHED_OUT,
	FLOQ_STAT_SHARE,
	FLOQ_STAT_PACKETS,
	FLOQ_STAT_EARLY = FLOQ_STAT_PACKETS + FLOQ_CLASSES,
	FLOQ_STAT_OVERLIMIT = FLOQ_STAT_EARLY + FLOQ_CLASSES,
	FLOQ_STATS = FLOQ_STAT_OVERLIMIT + FLOQ_CLASSES,
};

#ifndef __KERNEL__
static const struct sojourn_stat floq_stats[FLOQ_STATS] = {
	[FLOQ_STAT_MARKED] = { "marked", SOJOURN_COUNT },
	[FLOQ_STAT_PUSHED_OUT] = { "pushed_out", SOJOURN_COUNT },
	/* The part of responsive traffic in the bytes of established traffic. */
	[FLOQ_STAT_SHARE] = { "responsive_share", SOJOURN_FRACTION },
	[FLOQ_STAT_PACKETS] = { "setup_packets", SOJOURN_COUNT },
	{ "responsive_packets", SOJOURN_COUNT },
	{ "unresponsive_packets", SOJOURN_COUNT },
	[FLOQ_STAT_EARLY] = { "setup_early", SOJOURN_COUNT },
	{ "responsive_early", SOJOURN_COUNT },
	{ "unresponsive_early", SOJOURN_COUNT },
	[FLOQ_STAT_OVERLIMIT] = { "setup_overlimit", SOJOURN_COUNT },
	{ "responsive_overlimit", SOJOURN_COUNT },
	{ "unresponsive_overlimit", SOJOURN_COUNT },
};
#endif

#endif
