// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module as a program, for tests without a kernel: compiled with
 * SOJOURN_MODULE, its source.
 *
 *   user KIND NAME=VALUE...
 *
 * sets parameters, in the units of the module, and reads what happens, one
 * event a line:
 *
 *   + TIME NUMBER FLOW SIZE TOS KIND    an arrival; headers as those of replay.c
 *   - TIME                              a dequeue
 *
 * It prints "- NUMBER TOS" for each departure, "d NUMBER" for each drop, and a
 * dot at the end of each event.
 */
#include "shim.h"
#include SOJOURN_MODULE

u64 shim_now;
static struct Qdisc_ops *kinds[4];
static int kind_count;
/* What is freed without being dropped. */
static bool over;

int register_qdisc(struct Qdisc_ops *ops)
{
	kinds[kind_count++] = ops;
	return 0;
}

void shim_dropped(struct sk_buff *skb)
{
	if (!over)
		printf("d %u\n", skb->number);
}

void shim_marked(struct sk_buff *skb)
{
}

static void put16(u8 *at, u32 value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static struct sk_buff *packet(u32 number, u32 flow, u32 size, u32 tos, u32 kind)
{
	static const u8 flags[] = { 0, 0, 0x02, 0x10, 0x11 };
	struct sk_buff *skb = calloc(1, sizeof(*skb));

	skb->number = number;
	skb->len = size;
	qdisc_skb_cb(skb)->pkt_len = size;
	skb->data[15] = tos;
	skb->data[23] = kind >= 2 ? IPPROTO_TCP : IPPROTO_UDP;
	memcpy(skb->data + 26, (const u8[]){ 10, 0, 1, 2, 10, 0, 3, 2 }, 8);
	put16(skb->data + 34, 1000 + flow);
	put16(skb->data + 36, 2000 + flow);
	if (kind >= 2) {
		skb->data[46] = 0x50;
		skb->data[47] = flags[kind];
	} else {
		skb->data[42] = kind ? 0xff : 0x53;
	}
	return skb;
}

/* The tables of the module, by the names of the disciplines. */
struct table {
	const char *name;
	struct sojourn_param *params;
	u32 count;
};

static const struct table tables[] = { SOJOURN_TABLES };

static int set(const char *name, const char *text)
{
	u32 t, i;
	const char *value = strchr(text, '=');

	for (t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (i = 0; !strcmp(tables[t].name, name) && i < tables[t].count; i++) {
			struct sojourn_param *param = &tables[t].params[i];

			if (value && !strncmp(param->name, text, value - text) &&
			    !param->name[value - text]) {
				param->value = strtoull(value + 1, NULL, 0);
				return 0;
			}
		}
	fprintf(stderr, "no parameter %s\n", text);
	return -1;
}

int main(int count, char **word)
{
	static struct Qdisc queue;
	struct Qdisc_ops *ops = NULL;
	struct sk_buff *to_free = NULL, *skb;
	u32 number, flow, size, tos, kind;
	char sign;
	int i;

	shim_module_init();
	for (i = 0; i < kind_count && count > 1; i++)
		if (!strcmp(kinds[i]->id, word[1]))
			ops = kinds[i];
	if (!ops)
		return 2;
	for (i = 2; i < count; i++)
		if (set(word[1], word[i]))
			return 2;
#ifdef SOJOURN_SEED
	seed = SOJOURN_SEED;
#endif
	if (ops->init(&queue, NULL, NULL))
		return 2;
	while (scanf(" %c %llu", &sign, &shim_now) == 2) {
		if (sign == '+') {
			if (scanf("%u %u %u %u %u", &number, &flow, &size, &tos, &kind) != 5)
				return 2;
			ops->enqueue(packet(number, flow, size, tos, kind), &queue, &to_free);
		} else if ((skb = ops->dequeue(&queue))) {
			printf("- %u %u\n", skb->number, skb->data[15]);
			free(skb);
		}
		puts(".");
		fflush(stdout);
	}
	printf("%u queued, %u bytes\n", queue.q.qlen, queue.qstats.backlog);
	ops->dump_stats(&queue, NULL);
	over = true;
	ops->reset(&queue);
	ops->destroy(&queue);
	shim_module_exit();
	return 0;
}
