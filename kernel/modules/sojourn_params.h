/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parameters and statistics of the queueing disciplines, as the modules
 * and the plug-ins of tc both see them.
 *
 * Each parameter is one attribute of 64 bits inside TCA_OPTIONS; its type is
 * its place in the table plus SOJOURN_ATTR_FIRST. Times are in ns, rates in
 * bit/s, sizes in bytes, fractions in millionths. The statistics are an array
 * of such numbers.
 */
#ifndef SOJOURN_PARAMS_H
#define SOJOURN_PARAMS_H

#include <linux/types.h>

enum sojourn_unit {
	SOJOURN_COUNT,
	SOJOURN_PACKETS,
	SOJOURN_BYTES,
	SOJOURN_TIME,
	SOJOURN_RATE,
	SOJOURN_FRACTION,
	SOJOURN_FLAG,
};

enum {
	SOJOURN_ATTR_PAD = 1,
	SOJOURN_ATTR_FIRST,
};

/* The value of an optional parameter that was not given. */
#define SOJOURN_UNSET	(~0ULL)
#define SOJOURN_MILLION	1000000ULL
#define SOJOURN_MS	1000000ULL
#define SOJOURN_S	1000000000ULL
/* The longest time: 10^6 s. */
#define SOJOURN_LONGEST	(1000000 * SOJOURN_S)

struct sojourn_param {
	const char *name;
	enum sojourn_unit unit;
	/* The default: a parameter of the module. */
	unsigned long long value;
	unsigned long long least;
	unsigned long long most;
	/* It sizes tables, so it does not change while the queue exists. */
	_Bool fixed;
	/* What tc shows if the value is SOJOURN_UNSET; NULL: it must be set. */
	const char *unset;
};

struct sojourn_stat {
	const char *name;
	enum sojourn_unit unit;
};

#endif
