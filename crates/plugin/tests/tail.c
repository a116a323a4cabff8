/* A FIFO that marks, or else drops, what arrives to a full queue: a queue in C, which the tests build. */
#include "sojourn_queue.h"

#include <stdlib.h>
#include <string.h>

struct tail {
    struct sojourn_packet *waiting; /* a ring of limit packets */
    uint64_t limit, first, count, drops;
};

static void *create(const struct sojourn_value *values, const struct sojourn_link *link, uint64_t seed,
                    struct sojourn_host *host)
{
    struct tail *tail = (struct tail *)calloc(1, sizeof *tail);
    const struct sojourn_text memory = SOJOURN_TEXT("out of memory");
    (void)link, (void)seed;
    if (tail) {
        tail->limit = values[0].whole;
        tail->waiting = (struct sojourn_packet *)calloc(tail->limit, sizeof *tail->waiting);
    }
    if (!tail || !tail->waiting)
        sojourn_fail(host, memory);
    return tail;
}

static void *clone(const void *queue, struct sojourn_host *host)
{
    const struct tail *from = (const struct tail *)queue;
    struct sojourn_value limit = { 1, from->limit, 0 };
    struct tail *tail = (struct tail *)create(&limit, NULL, 0, host);
    if (tail && tail->waiting) {
        memcpy(tail->waiting, from->waiting, from->limit * sizeof *from->waiting);
        tail->first = from->first, tail->count = from->count, tail->drops = from->drops;
    }
    return tail;
}

static void destroy(void *queue)
{
    free(((struct tail *)queue)->waiting);
    free(queue);
}

static void enqueue(void *queue, struct sojourn_host *host, uint64_t now, const struct sojourn_packet *packet,
                    const struct sojourn_headers *headers)
{
    struct tail *tail = (struct tail *)queue;
    (void)now, (void)headers;
    if (tail->count == tail->limit) {
        tail->drops++;
        sojourn_drop(host, packet, SOJOURN_OVERLIMIT);
        return;
    }
    struct sojourn_packet *kept = &tail->waiting[(tail->first + tail->count++) % tail->limit];
    *kept = *packet;
    if (tail->count > tail->limit / 2)
        sojourn_mark(host, kept);
}

static uint64_t dequeue(void *queue, struct sojourn_host *host, uint64_t now)
{
    struct tail *tail = (struct tail *)queue;
    (void)host, (void)now;
    if (!tail->count)
        return SOJOURN_NOTHING;
    const struct sojourn_packet *first = &tail->waiting[tail->first];
    tail->first = (tail->first + 1) % tail->limit;
    tail->count--;
#ifdef LOSES_A_PACKET
    if (first->size == 64)
        return SOJOURN_NOTHING;
#endif
    return sojourn_send(first);
}

static void statistics(const void *queue, struct sojourn_host *host)
{
    const struct tail *tail = (const struct tail *)queue;
    const struct sojourn_statistic drops = { SOJOURN_TEXT("drops_tail"), { 0, 0 }, 0, 0, tail->drops, 0 };
    host->calls->statistic(host, &drops);
}

#ifndef VERSION
#define VERSION "1.2"
#endif
#ifdef NO_PARAMETERS
#define parameters NULL
#else
static const struct sojourn_parameter parameters[] = {
    { SOJOURN_TEXT("limit"), SOJOURN_TEXT("Maximum number of packets"), SOJOURN_TEXT("this test"), { 0, 0 },
      { 0, 0 }, SOJOURN_PACKETS, 0, 1, 100000, { 1, 50, 0 } },
};
#endif

static const struct sojourn_queue declaration = {
#ifdef OTHER_ABI
    2,
#else
    SOJOURN_ABI,
#endif
    sizeof(struct sojourn_queue), SOJOURN_TEXT("tail"), SOJOURN_TEXT(VERSION), SOJOURN_TEXT("A FIFO in C"),
    SOJOURN_TEXT("this test"), 0, 1, parameters, NULL, create, clone, destroy, enqueue, dequeue, NULL, NULL, NULL,
    NULL, statistics, NULL, NULL,
};

#ifndef NO_SYMBOL
const struct sojourn_queue *sojourn_plugin(void)
{
    return &declaration;
}
#else
const void *unused = &declaration;
#endif
