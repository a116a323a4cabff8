/*
 * sojourn_queue.h: a queue discipline for Sojourn in C or C++.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A shared library that defines sojourn_plugin() is a queue wherever Sojourn takes one:
 *
 *     cc -O2 -shared -fPIC -I include -o libtail.so tail.c
 *     sojourn compare fq_codel './libtail.so limit 50'
 *
 * Sojourn keeps the packets. The queue receives a copy of what it may read of each packet, a struct
 * sojourn_packet, and names a packet by handing that copy back. When it is loaded, a contract suite calls it with
 * random traffic. docs/howto/external_queue.md has an example.
 *
 * Rules:
 *  - Times are in nanoseconds of simulated time and never decrease. There is no other clock, and all random
 *    numbers follow from the seed: two runs with the same seed must be identical.
 *  - The functions of one queue are called one at a time, though not always on the same thread; those of different
 *    queues on any threads at once: there is no state outside the queue.
 *  - Each packet leaves once: returned by dequeue, or dropped. The queue never creates or changes one, apart
 *    from its fields ecn and dscp.
 *  - An error ends the run: call sojourn_fail() and return. No exception of C++ may leave a function.
 */
#ifndef SOJOURN_QUEUE_H
#define SOJOURN_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. Sojourn loads libraries of its own version only. */
#define SOJOURN_ABI 1

/* UTF-8 text that need not be terminated. A declaration's text lives as long as the library. */
struct sojourn_text {
    const char *data;
    size_t size;
};

/* The text of a string literal, for initialisers. */
#define SOJOURN_TEXT(literal) { literal, sizeof(literal) - 1 }

enum sojourn_ecn { SOJOURN_NOT_ECT = 0, SOJOURN_ECT1 = 1, SOJOURN_ECT0 = 2, SOJOURN_CE = 3 };

/* What a queue may read of a packet. */
struct sojourn_packet {
    uint64_t source;      /* sending host: an IPv4 address, or an IPv6 address folded into 64 bits */
    uint64_t destination; /* receiving host */
    uint32_t size;        /* bytes on the wire, Ethernet header included */
    uint32_t ports;       /* source port in the high half, destination port in the low half */
    uint32_t id;          /* number of the packet among those that wait; reused */
    uint8_t protocol;     /* of IP: 6 is TCP, 17 is UDP */
    uint8_t ecn;          /* enum sojourn_ecn */
    uint8_t dscp;         /* 0 to 63 */
    uint8_t control;      /* not 0: traffic of the box itself, such as ARP */
};

/* What stands behind the IP header: only for queues with the flag SOJOURN_READS_HEADERS. */
struct sojourn_headers {
    uint32_t transport; /* 0: none of these; 1: TCP; 2: UDP; 3: UDP with the long header of QUIC */
    uint32_t seq;       /* the rest is of TCP */
    uint32_t ack;
    uint32_t payload; /* bytes */
    uint32_t window;
    uint32_t timestamp;
    uint32_t echoed_timestamp;
    uint32_t sacks[4][2]; /* start and end; unused ones are empty */
    uint16_t flags;       /* FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128, AE 256 */
    uint8_t has_timestamps;
    uint8_t other_options;
};

/* The unit of a parameter, in which Sojourn reads, checks and writes it. */
enum sojourn_unit {
    SOJOURN_TIME = 0,          /* nanoseconds; written 5ms */
    SOJOURN_RATE = 1,          /* bits per second; written 10mbit */
    SOJOURN_SIZE = 2,          /* bytes */
    SOJOURN_PACKETS = 3,
    SOJOURN_COUNT = 4,         /* a whole number; words says of what */
    SOJOURN_FRACTION = 5,      /* real, above 0 */
    SOJOURN_WEIGHT = 6,        /* real, from 0 */
    SOJOURN_PERCENT = 7,       /* real, above 0; written 5 or 5% */
    SOJOURN_FLAG = 8,          /* 1: on, 0: off */
    SOJOURN_CHOICE = 9,        /* the place of a word in words */
    SOJOURN_COUNT_OR_OFF = 10, /* as SOJOURN_COUNT; 0: off */
    SOJOURN_MILLIS = 11,       /* milliseconds */
    SOJOURN_MICROS = 12,       /* microseconds */
    SOJOURN_SIGNED_SIZE = 13,  /* bytes, plus the number in of */
    SOJOURN_RATIO = 14,        /* parts of the number in of */
    SOJOURN_DECIMAL = 15       /* units of the last of as many decimal places as of says */
};

/* A value of a parameter. */
struct sojourn_value {
    uint64_t is_set; /* 0: there is none, and the rest means nothing */
    uint64_t whole;
    double real;     /* of SOJOURN_FRACTION, SOJOURN_WEIGHT and SOJOURN_PERCENT */
};

struct sojourn_parameter {
    struct sojourn_text key;        /* letters, digits and _ */
    struct sojourn_text meaning;    /* one line */
    struct sojourn_text provenance; /* an RFC, a paper */
    struct sojourn_text unset;      /* what applies without a value; empty: there always is one */
    struct sojourn_text words;      /* of a choice, separated by spaces; what a count counts */
    uint32_t unit;                  /* enum sojourn_unit */
    uint32_t of;
    uint64_t min;
    uint64_t max;
    struct sojourn_value start; /* the default */
};

struct sojourn_link {
    uint64_t rate;            /* bits per second; 0: it varies */
    uint64_t mtu;             /* bytes, Ethernet header included */
    struct sojourn_text name; /* may be empty */
};

/* A number that statistics and state report. */
struct sojourn_statistic {
    struct sojourn_text name;
    struct sojourn_text list; /* of a part of the queue, such as tins; empty: of the whole */
    uint64_t place;           /* in the list */
    uint64_t kind;            /* 0: a count; 1: a real number; 2: a flag */
    uint64_t whole;
    double real;
};

enum sojourn_drop_reason { SOJOURN_OVERLIMIT = 0, SOJOURN_DROP_AQM = 1, SOJOURN_ACK_FILTER = 2 };
enum sojourn_mark_reason { SOJOURN_MARK_AQM = 0, SOJOURN_CE_THRESHOLD = 1 };

/* Sojourn, to which a queue reports during a call. Use the functions below. */
struct sojourn_host {
    const struct sojourn_calls *calls;
};

struct sojourn_calls {
    void (*drop)(struct sojourn_host *, const struct sojourn_packet *, uint32_t reason);
    void (*mark)(struct sojourn_host *, const struct sojourn_packet *, uint32_t reason);
    void (*in_class)(struct sojourn_host *, struct sojourn_text name, uint64_t place, uint32_t numbered);
    void (*statistic)(struct sojourn_host *, const struct sojourn_statistic *);
    void (*fail)(struct sojourn_host *, struct sojourn_text why);
};

/* Discards a packet, which may be the one that arrives. Only in enqueue and dequeue. */
static inline void sojourn_drop(struct sojourn_host *host, const struct sojourn_packet *packet,
                                enum sojourn_drop_reason reason)
{
    host->calls->drop(host, packet, (uint32_t)reason);
}

/* Marks a packet that the queue keeps or returns; 0, and no mark, if it is not ECN-capable. Only in enqueue
 * and dequeue. */
static inline int sojourn_mark(struct sojourn_host *host, struct sojourn_packet *packet)
{
    if (packet->ecn == SOJOURN_NOT_ECT)
        return 0;
    packet->ecn = SOJOURN_CE;
    host->calls->mark(host, packet, SOJOURN_MARK_AQM);
    return 1;
}

/* Ends the run with a message when the call returns. */
static inline void sojourn_fail(struct sojourn_host *host, struct sojourn_text why)
{
    host->calls->fail(host, why);
}

/* dequeue returns no packet. */
#define SOJOURN_NOTHING 0

/* dequeue returns this packet. */
static inline uint64_t sojourn_send(const struct sojourn_packet *packet)
{
    return (uint64_t)1 << 63 | (uint64_t)packet->dscp << 40 | (uint64_t)packet->ecn << 32 | packet->id;
}

/* peek: only dequeue can tell. */
#define SOJOURN_UNKNOWN UINT64_MAX
/* next_timer: there is nothing to wait for. */
#define SOJOURN_NEVER UINT64_MAX

/* Flag of a queue: enqueue receives the headers behind that of IP. */
#define SOJOURN_READS_HEADERS 1u

/* A queue and its parameters. values has one value for each parameter, in their order. */
struct sojourn_queue {
    uint32_t abi;  /* SOJOURN_ABI */
    uint32_t size; /* sizeof(struct sojourn_queue) */
    struct sojourn_text name;    /* letters, digits and _ */
    struct sojourn_text version; /* of the library */
    struct sojourn_text summary; /* one line */
    struct sojourn_text source;  /* where it is specified */
    uint32_t flags;
    uint32_t parameter_count;
    const struct sojourn_parameter *parameters;
    /* Calls sojourn_fail() with what two values say against each other. Optional: NULL. */
    void (*conflict)(const struct sojourn_value *values, struct sojourn_host *);
    /* An empty queue for a link. */
    void *(*create)(const struct sojourn_value *values, const struct sojourn_link *, uint64_t seed,
                    struct sojourn_host *);
    /* A copy with the same state. The contract suite uses it. */
    void *(*clone)(const void *queue, struct sojourn_host *);
    void (*destroy)(void *queue);
    /* A packet arrives; headers is NULL without SOJOURN_READS_HEADERS. */
    void (*enqueue)(void *queue, struct sojourn_host *, uint64_t now, const struct sojourn_packet *,
                    const struct sojourn_headers *);
    /* The link can send: sojourn_send(packet), or SOJOURN_NOTHING, also of an empty queue. A queue that holds
     * packets back has a timer. */
    uint64_t (*dequeue)(void *queue, struct sojourn_host *, uint64_t now);
    /* The rest is optional: NULL. */
    /* The bytes of the packet that dequeue would return; 0: none; SOJOURN_UNKNOWN. */
    uint64_t (*peek)(const void *queue, struct sojourn_host *);
    /* When on_timer is due, or SOJOURN_NEVER. Asked at any time: changes nothing. */
    uint64_t (*next_timer)(const void *queue, struct sojourn_host *);
    /* The timer has come; afterwards next_timer returns a later time. */
    void (*on_timer)(void *queue, struct sojourn_host *, uint64_t now);
    void (*on_link_rate)(void *queue, struct sojourn_host *, uint64_t now, uint64_t bits_per_s);
    /* Report numbers by host->calls->statistic: counters, and what a time series shows at now. */
    void (*statistics)(const void *queue, struct sojourn_host *);
    void (*state)(const void *queue, struct sojourn_host *, uint64_t now);
    /* Reports by host->calls->in_class the classes that in_class may name before a drop, a mark or the end of
     * dequeue. */
    void (*classes)(const void *queue, struct sojourn_host *);
};

/* The library defines this function. The declaration never changes. */
#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct sojourn_queue *sojourn_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
