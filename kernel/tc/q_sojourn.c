// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plug-in of tc for each of the queueing disciplines: compiled with
 * SOJOURN_KIND, the name of the discipline, and SOJOURN_HEADER, its parameters
 * and statistics.
 *
 * tc finds it as q_KIND.so in TC_LIB_DIR, or in the directory of its own
 * plug-ins.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utils.h"
#include "tc_util.h"

#include SOJOURN_HEADER

/* Whether callbacks may not change it; the Makefile looks into tc_util.h. */
#ifndef QDISC_UTIL_CONST
#define QDISC_UTIL_CONST
#endif

#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)
#define TEXT(a) #a
#define QUOTED(a) TEXT(a)
#define PARAMS NAME(SOJOURN_KIND, _params)
#define STATS NAME(SOJOURN_KIND, _stats)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Reads a number without a unit, which may be a multiple of 1/scale. */
static int read_scaled(unsigned long long *value, const char *text, double scale)
{
	char *end;
	double number;

	errno = 0;
	number = strtod(text, &end);
	if (errno || end == text || *end || !(number >= 0 && number * scale < 1e19))
		return -1;
	*value = llround(number * scale);
	return 0;
}

/* Reads a number of packets, with or without the letter p. */
static int read_packets(unsigned long long *value, const char *text)
{
	size_t length = strlen(text);
	char digits[32];

	if (length && text[length - 1] == 'p')
		length--;
	if (length >= sizeof(digits))
		return -1;
	memcpy(digits, text, length);
	digits[length] = '\0';
	return read_scaled(value, digits, 1);
}

static int read_value(const struct sojourn_param *param, const char *text,
		      unsigned long long *value)
{
	unsigned int size;
	__u64 rate;
	__s64 time;

	switch (param->unit) {
	case SOJOURN_PACKETS:
		return read_packets(value, text);
	case SOJOURN_BYTES:
		if (get_size(&size, text))
			return -1;
		*value = size;
		return 0;
	case SOJOURN_TIME:
		if (get_time64(&time, text) || time < 0)
			return -1;
		*value = time;
		return 0;
	case SOJOURN_RATE:
		if (get_rate64(&rate, text))
			return -1;
		*value = 8 * rate;
		return 0;
	case SOJOURN_FRACTION:
		return read_scaled(value, text, SOJOURN_MILLION);
	default:
		return read_scaled(value, text, 1);
	}
}

static void explain(void)
{
	unsigned int i;

	fprintf(stderr, "Usage: ... " QUOTED(SOJOURN_KIND));
	for (i = 0; i < COUNT(PARAMS); i++) {
		const struct sojourn_param *param = &PARAMS[i];

		if (param->unit == SOJOURN_FLAG)
			fprintf(stderr, " [ [no]%s ]", param->name);
		else
			fprintf(stderr, " [ %s %s ]", param->name,
				param->unit == SOJOURN_PACKETS ? "PACKETS" :
				param->unit == SOJOURN_BYTES ? "BYTES" :
				param->unit == SOJOURN_TIME ? "TIME" :
				param->unit == SOJOURN_RATE ? "RATE" : "NUMBER");
	}
	fprintf(stderr, "\n");
}

/* Sets a flag by its name, with or without "no" before it. */
static bool read_flag(const struct sojourn_param *param, const char *word,
		      unsigned long long *value)
{
	if (!strcmp(word, param->name))
		*value = 1;
	else if (!strncmp(word, "no", 2) && !strcmp(word + 2, param->name))
		*value = 0;
	else
		return false;
	return true;
}

/* Whether a word names a parameter; a flag gets its value. */
static bool names(const struct sojourn_param *param, const char *word,
		  unsigned long long *value)
{
	if (param->unit == SOJOURN_FLAG)
		return read_flag(param, word, value);
	return !strcmp(word, param->name);
}

static int parse_qopt(QDISC_UTIL_CONST struct qdisc_util *qu, int argc,
		      char **argv, struct nlmsghdr *n, const char *dev)
{
	unsigned long long values[COUNT(PARAMS)];
	bool given[COUNT(PARAMS)] = { false };
	struct rtattr *tail;
	unsigned int i;

	for (; argc > 0; argc--, argv++) {
		for (i = 0; i < COUNT(PARAMS); i++)
			if (names(&PARAMS[i], *argv, &values[i]))
				break;
		if (i == COUNT(PARAMS)) {
			if (strcmp(*argv, "help"))
				fprintf(stderr, "What is \"%s\"?\n", *argv);
			explain();
			return -1;
		}
		given[i] = true;
		if (PARAMS[i].unit == SOJOURN_FLAG)
			continue;
		NEXT_ARG();
		if (read_value(&PARAMS[i], *argv, &values[i])) {
			fprintf(stderr, "Illegal \"%s\": \"%s\"\n", PARAMS[i].name, *argv);
			return -1;
		}
	}
	tail = addattr_nest(n, 4096, TCA_OPTIONS | NLA_F_NESTED);
	for (i = 0; i < COUNT(PARAMS); i++)
		if (given[i])
			addattr64(n, 4096, SOJOURN_ATTR_FIRST + i, values[i]);
	addattr_nest_end(n, tail);
	return 0;
}

static void print_value(const char *name, enum sojourn_unit unit,
			unsigned long long value)
{
	char format[64];

	switch (unit) {
	case SOJOURN_TIME:
		snprintf(format, sizeof(format), "%s %%.12gus ", name);
		print_float(PRINT_ANY, name, format, value / 1e3);
		break;
	case SOJOURN_FRACTION:
		snprintf(format, sizeof(format), "%s %%.9g ", name);
		print_float(PRINT_ANY, name, format, value / 1e6);
		break;
	case SOJOURN_FLAG:
		if (is_json_context())
			print_bool(PRINT_JSON, name, NULL, value);
		else
			fprintf(stdout, "%s%s ", value ? "" : "no", name);
		break;
	case SOJOURN_RATE:
		if (is_json_context())
			print_lluint(PRINT_JSON, name, NULL, value / 8);
		else
			fprintf(stdout, "%s %gMbit ", name, value / 1e6);
		break;
	default:
		snprintf(format, sizeof(format), "%s %%llu%s ", name,
			 unit == SOJOURN_PACKETS ? "p" : unit == SOJOURN_BYTES ? "b" : "");
		print_lluint(PRINT_ANY, name, format, value);
	}
}

static int print_qopt(QDISC_UTIL_CONST struct qdisc_util *qu, FILE *f,
		      struct rtattr *opt)
{
	struct rtattr *tb[SOJOURN_ATTR_FIRST + COUNT(PARAMS)];
	unsigned int i;

	if (!opt)
		return 0;
	parse_rtattr_nested(tb, SOJOURN_ATTR_FIRST + COUNT(PARAMS) - 1, opt);
	for (i = 0; i < COUNT(PARAMS); i++) {
		struct rtattr *attr = tb[SOJOURN_ATTR_FIRST + i];

		if (attr && RTA_PAYLOAD(attr) >= sizeof(__u64))
			print_value(PARAMS[i].name, PARAMS[i].unit, rta_getattr_u64(attr));
	}
	return 0;
}

static int print_xstats(QDISC_UTIL_CONST struct qdisc_util *qu, FILE *f,
			struct rtattr *xstats)
{
	unsigned int i, there;
	const char *data;

	if (!xstats)
		return 0;
	data = RTA_DATA(xstats);
	there = RTA_PAYLOAD(xstats) / sizeof(__u64);
	for (i = 0; i < COUNT(STATS) && i < there; i++) {
		__u64 value;

		/* Six on a line. */
		if (!is_json_context() && i % 6 == 0)
			fprintf(f, "%s  ", i ? "\n" : "");
		memcpy(&value, data + i * sizeof(value), sizeof(value));
		print_value(STATS[i].name, STATS[i].unit, value);
	}
	return 0;
}

struct qdisc_util NAME(SOJOURN_KIND, _qdisc_util) = {
	.id = QUOTED(SOJOURN_KIND),
	.parse_qopt = parse_qopt,
	.print_qopt = print_qopt,
	.print_xstats = print_xstats,
};
