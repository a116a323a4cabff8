/*
 * sojourn_path.h: a bottleneck for test suites in C, C++ and languages that call C.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A path connects two ends of a protocol stack in a test. Each direction has a rate or a trace, a queue in the
 * syntax of tc, and a wire with delay, jitter, loss and drop lists. The library reads no clock and performs no
 * I/O apart from a capture file: every call has the time as an argument.
 *
 *     cargo build --release -p sojourn-path-c
 *     cc -I include -o test test.c target/release/libsojournpath.a -lm -lpthread -ldl
 *
 * docs/howto/test_suite.md has the loop of a test; examples/path has one in C, in Go and in JavaScript.
 *
 * Rules:
 *  - Times are in nanoseconds since an origin that the caller chooses. They must not decrease from call to call.
 *  - A call that fails returns a value that says so, and sojourn_path_error() says why. Except after an internal
 *    error, the path is as before the call; only a late poll of a strict path lets the time pass and discards the
 *    packet.
 *  - One thread at a time uses a path, which may be another one later; different paths are independent.
 */
#ifndef SOJOURN_PATH_H
#define SOJOURN_PATH_H

#include "sojourn_queue.h" /* SOJOURN_ABI, texts, ECN, reasons, statistics */

#ifdef __cplusplus
extern "C" {
#endif

struct sojourn_path;

enum sojourn_direction { SOJOURN_FORWARD = 0, SOJOURN_REVERSE = 1 };

/* Flags of a path: record events; a late sojourn_path_poll() is an error. */
#define SOJOURN_EVENTS 1u
#define SOJOURN_STRICT 2u

/* Receives parts of a capture. */
typedef void sojourn_capture(void *context, const void *bytes, size_t size);

/* Set everything that is not mentioned to zero. */
struct sojourn_path_config {
    uint32_t abi;   /* SOJOURN_ABI */
    uint32_t flags; /* SOJOURN_EVENTS | SOJOURN_STRICT, one of them or 0 */
    uint64_t seed;  /* of every random number */
    /* Pairs of a key and a value, the queue last: "rate 20mbit delay 10ms loss 1% qdisc fq_codel limit 1000".
     * Keys: rate, delay, jitter, distribution, order, loss, drop, duplicate, ecn, qdisc.
     * Reverse: if empty, as long a delay as forward and no bottleneck. */
    struct sojourn_text forward;
    struct sojourn_text reverse;
    /* In place of a rate: the contents of a trace file of Mahimahi, a time in milliseconds per line. */
    struct sojourn_text forward_trace;
    struct sojourn_text reverse_trace;
    /* Packets in the format pcapng, to a file of this name or to a function. */
    struct sojourn_text capture_file;
    sojourn_capture *capture;
    void *capture_context;
};

/* The number of a packet: its place among those that were offered. */
#define SOJOURN_NO_PACKET UINT64_MAX

/* A packet that has arrived. */
struct sojourn_delivery {
    uint64_t packet;
    uint64_t at;
    uint64_t waited;    /* time in the queue */
    const void *bytes;  /* valid until the next call of sojourn_path_poll() or sojourn_path_free() */
    size_t size;
    uint32_t flow;      /* as it was pushed: the source port */
    uint8_t direction;  /* enum sojourn_direction */
    uint8_t ecn;        /* enum sojourn_ecn, on arrival */
    uint8_t dscp;
    uint8_t reserved;
};

enum sojourn_event_kind {
    SOJOURN_OFFERED = 0,  /* to the queue */
    SOJOURN_DROPPED = 1,  /* by the queue */
    SOJOURN_MARKED = 2,   /* CE, by the queue */
    SOJOURN_DEPARTED = 3, /* from the queue */
    SOJOURN_LOST = 4,     /* on the wire */
    SOJOURN_ARRIVED = 5
};

/* What happened to a packet. The bytes of this struct are the same on all little-endian machines. */
struct sojourn_event {
    uint64_t at;
    uint64_t packet;
    uint64_t waited;   /* if dropped, marked or departed: time since it was offered */
    uint32_t size;     /* bytes of its Ethernet frame */
    uint8_t direction; /* enum sojourn_direction */
    uint8_t kind;      /* enum sojourn_event_kind */
    uint8_t reason;    /* of a drop or a mark: enum sojourn_drop_reason or sojourn_mark_reason; else 0 */
    uint8_t reserved;  /* 0 */
};

/* Packets so far; without a bottleneck, only the last two. */
struct sojourn_counters {
    uint64_t sent_packets;
    uint64_t sent_bytes;
    uint64_t drops_overlimit;
    uint64_t drops_aqm;
    uint64_t drops_ack_filter;
    uint64_t marks_aqm;
    uint64_t marks_ce_threshold;
    uint64_t lost_packets;
    uint64_t duplicated_packets;
};

/* SOJOURN_ABI of the library. */
uint32_t sojourn_path_abi(void);

/* A path at time zero; NULL only if there is no memory. If a parameter is wrong, every call fails, and
 * sojourn_path_error() says which. */
struct sojourn_path *sojourn_path_new(const struct sojourn_path_config *);

/* Ends the capture, and the path. NULL is permitted. */
void sojourn_path_free(struct sojourn_path *);

/* Why the last call failed, or the path could not be built: one line, valid until the next call; NULL: it did
 * not fail. */
const char *sojourn_path_error(const struct sojourn_path *);

/* Offers the payload of a UDP datagram, as QUIC stacks produce it. The size that counts is that of the payload
 * and 42 bytes of headers. flow: 0 to 65535, a source port. Returns its number, or SOJOURN_NO_PACKET. */
uint64_t sojourn_path_push(struct sojourn_path *, uint64_t now, uint32_t direction, const void *bytes, size_t size,
                           uint32_t ecn, uint32_t flow);

/* Offers an IPv4 or IPv6 packet. A mark is written into its bytes. */
uint64_t sojourn_path_push_ip(struct sojourn_path *, uint64_t now, uint32_t direction, const void *bytes,
                              size_t size);

/* The next packet that has arrived by now: 1; 0: none; -1: an error. Call it until it does not return 1.
 * SOJOURN_STRICT: a packet that arrived before now is an error, so that a loop that forgets sojourn_path_deadline()
 * fails. */
int32_t sojourn_path_poll(struct sojourn_path *, uint64_t now, struct sojourn_delivery *);

/* When to call sojourn_path_poll() next, timers of queues included; SOJOURN_NEVER while no packet is inside. */
uint64_t sojourn_path_deadline(const struct sojourn_path *);

/* Removes events, at most room of them, and returns how many. Call it until it returns less than room. */
size_t sojourn_path_events(struct sojourn_path *, struct sojourn_event *events, size_t room);

/* These return 0, or -1. */
int32_t sojourn_path_counters(struct sojourn_path *, uint32_t direction, struct sojourn_counters *);
/* The time in the queue below which a part of the departed packets stayed: quantile is 0 to 1. Fails if none
 * departed. */
int32_t sojourn_path_sojourn(struct sojourn_path *, uint32_t direction, double quantile, uint64_t *nanoseconds);
/* From now on, the bottleneck sends at this rate. Not for traces. */
int32_t sojourn_path_set_rate(struct sojourn_path *, uint64_t now, uint32_t direction, uint64_t bits_per_s);
/* From now on, the wire has this delay, jitter, loss and duplication: "delay 50ms loss 1%". */
int32_t sojourn_path_set_wire(struct sojourn_path *, uint64_t now, uint32_t direction, struct sojourn_text change);
/* Ends the capture. Fails with the first error of the file. */
int32_t sojourn_path_finish_capture(struct sojourn_path *);

/* Statistics of the queue, with the names of tc -s: writes at most room of them and returns how many there are.
 * Their texts are valid as long as the library. */
size_t sojourn_path_statistics(struct sojourn_path *, uint32_t direction, struct sojourn_statistic *statistics,
                               size_t room);

#ifdef __cplusplus
}
#endif

#endif
