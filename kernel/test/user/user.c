// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module as a program, for tests without a kernel: compiled with
 * SOJOURN_MODULE, its source.
 *
 *   user KIND NAME=VALUE...
 *
 * sets parameters, in the units of the module, or "mtu", that of the device, and
 * reads what happens, one event a line:
 *
 *   + TIME NUMBER FLOW SIZE TOS KIND    an arrival; headers as those of replay.c
 *   - TIME                              a dequeue
 *   p TIME                              a parent looks at the next packet
 *   r TIME                              a busy device gives a packet back
 *   c TIME NUMBER VALUE                 a change of parameter NUMBER
 *
 * It prints "- NUMBER TOS" for each departure, "d NUMBER" for each drop, and a
 * dot at the end of each event. It fails if a parent would count other packets
 * than there are, or get none of a queue that has some.
 */
#include "shim.h"
#include SOJOURN_MODULE

u64 shim_now;
u32 shim_mtu = 1514;
struct Qdisc_ops *shim_ops;
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

/* Dequeues as the kernel does: first what was put back. */
static struct sk_buff *take(struct Qdisc *queue)
{
	struct sk_buff *skb = __skb_dequeue(&queue->gso_skb);

	if (skb) {
		qdisc_qstats_backlog_dec(queue, skb);
		queue->q.qlen--;
		return skb;
	}
	return shim_ops->dequeue(queue);
}

static void change(struct Qdisc *queue)
{
	struct nlattr value;

	if (scanf("%d %llu", &value.type, &value.value) != 2)
		exit(2);
	value.type += SOJOURN_ATTR_FIRST;
	if (shim_ops->change(queue, &value, NULL))
		exit(2);
}

/* An event other than an arrival. */
static void handle(struct Qdisc *queue, char sign)
{
	bool some = queue->q.qlen;
	struct sk_buff *skb = NULL;

	if (sign == 'c') {
		change(queue);
		return;
	}
	if (sign == 'p')
		skb = shim_ops->peek(queue);
	else if (sign == 'r')
		skb = shim_ops->dequeue(queue);
	else
		skb = take(queue);
	if (some && !skb) {
		fprintf(stderr, "nothing came of a queue with packets\n");
		exit(3);
	}
	if (!skb || sign == 'p')
		return;
	if (sign == 'r') {
		__skb_queue_tail(&queue->gso_skb, skb);
		qdisc_qstats_backlog_inc(queue, skb);
		queue->q.qlen++;
		return;
	}
	queue->parent_qlen--;
	queue->parent_backlog -= qdisc_pkt_len(skb);
	printf("- %u %u\n", skb->number, skb->data[15]);
	free(skb);
}

int main(int count, char **word)
{
	static struct Qdisc queue;
	struct sk_buff *to_free = NULL;
	u32 number, flow, size, tos, kind;
	char sign;
	int i;

	shim_module_init();
	for (i = 0; i < kind_count && count > 1; i++)
		if (!strcmp(kinds[i]->id, word[1]))
			shim_ops = kinds[i];
	if (!shim_ops)
		return 2;
	for (i = 2; i < count; i++)
		if (sscanf(word[i], "mtu=%u", &shim_mtu) != 1 && set(word[1], word[i]))
			return 2;
#ifdef SOJOURN_SEED
	seed = SOJOURN_SEED;
#endif
	__skb_queue_head_init(&queue.gso_skb);
	if (shim_ops->init(&queue, NULL, NULL))
		return 2;
	while (scanf(" %c %llu", &sign, &shim_now) == 2) {
		if (sign == '+') {
			if (scanf("%u %u %u %u %u", &number, &flow, &size, &tos, &kind) != 5)
				return 2;
			if (shim_ops->enqueue(packet(number, flow, size, tos, kind), &queue,
					      &to_free) == NET_XMIT_SUCCESS) {
				queue.parent_qlen++;
				queue.parent_backlog += size;
			}
		} else {
			handle(&queue, sign);
		}
		if (queue.parent_qlen != queue.q.qlen ||
		    queue.parent_backlog != queue.qstats.backlog) {
			fprintf(stderr, "%u packets, %u bytes; the parent counts %u, %u\n",
				queue.q.qlen, queue.qstats.backlog,
				queue.parent_qlen, queue.parent_backlog);
			return 3;
		}
		puts(".");
		fflush(stdout);
	}
	printf("%u queued, %u bytes\n", queue.q.qlen, queue.qstats.backlog);
	shim_ops->dump_stats(&queue, NULL);
	over = true;
	shim_ops->reset(&queue);
	__skb_queue_purge(&queue.gso_skb);
	shim_ops->destroy(&queue);
	shim_module_exit();
	return 0;
}
