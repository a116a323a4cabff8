/* The loop of a test in C: a sender that is too fast for 10 Mbit/s, and a receiver that answers every second packet.
 *
 *     cargo build --release -p sojourn-path-c
 *     cc -I include -o loop examples/path/loop.c -L target/release -lsojournpath -Wl,-rpath,target/release
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sojourn_path.h"

#define FORWARD "rate 10mbit delay 10ms jitter 2ms loss 1% drop 3,4,5 qdisc fq_codel"
#define SECOND UINT64_C(1000000000)
#define GAP UINT64_C(400000)

/* The stack of another project would be called here. */
static const unsigned char payload[1200], answer[40];

static struct sojourn_path *path;
static uint64_t events, digest = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

/* Ends the program if a call failed. */
static void check(int failed)
{
    if (failed) {
        fprintf(stderr, "loop: %s\n", sojourn_path_error(path));
        exit(1);
    }
}

static void add_events(void)
{
    struct sojourn_event some[64];
    size_t count;

    do {
        count = sojourn_path_events(path, some, 64);
        for (size_t n = 0; n < count * sizeof some[0]; n++)
            digest = (digest ^ ((const unsigned char *)some)[n]) * UINT64_C(0x100000001b3);
        events += count;
    } while (count == 64);
}

int main(void)
{
    struct sojourn_path_config config = {
        .abi = SOJOURN_ABI, .flags = SOJOURN_EVENTS | SOJOURN_STRICT, .seed = 1, .forward = SOJOURN_TEXT(FORWARD)};
    struct sojourn_counters counters;
    struct sojourn_delivery delivery;
    uint64_t now = 0, next = 0, sent = 0, arrived = 0, p95;
    int32_t more;

    path = sojourn_path_new(&config);
    check(sojourn_path_error(path) != NULL);
    while (now != SOJOURN_NEVER) {
        while ((more = sojourn_path_poll(path, now, &delivery)) == 1) {
            arrived++;
            if (delivery.direction == SOJOURN_FORWARD && delivery.packet % 2 == 0)
                check(sojourn_path_push(path, now, SOJOURN_REVERSE, answer, sizeof answer, SOJOURN_NOT_ECT, 0) ==
                      SOJOURN_NO_PACKET);
        }
        check(more < 0);
        if (now == next) {
            /* Two flows; only the first is ECN-capable. */
            uint32_t flow = sent++ % 2;
            check(sojourn_path_push(path, now, SOJOURN_FORWARD, payload, sizeof payload,
                                    flow == 0 ? SOJOURN_ECT0 : SOJOURN_NOT_ECT, flow) == SOJOURN_NO_PACKET);
            next = now + GAP < 2 * SECOND ? now + GAP : SOJOURN_NEVER;
        }
        add_events();
        now = sojourn_path_deadline(path);
        if (next < now)
            now = next;
    }
    check(sojourn_path_counters(path, SOJOURN_FORWARD, &counters));
    check(sojourn_path_sojourn(path, SOJOURN_FORWARD, 0.95, &p95));
    printf("arrived %" PRIu64 ", dropped %" PRIu64 ", marked %" PRIu64 ", lost %" PRIu64 ", p95 %" PRIu64
           " us, events %" PRIu64 ", digest %016" PRIx64 "\n",
           arrived, counters.drops_aqm, counters.marks_aqm, counters.lost_packets, p95 / 1000, events, digest);
    sojourn_path_free(path);
    return 0;
}
