/* The queues of Sojourn, from library.rs. */
#include <stdbool.h>
#include <stdint.h>

/* NULL: the text is not valid. rate 0: the queue has its own shaper. wrong: it sends the packets that it should drop. */
void *sojourn_vectors_queue(const char *qdisc, uint64_t rate, uint64_t mtu, bool wrong);
/* packet: four numbers of type uint64_t: number, flow, size and type-of-service byte. */
void sojourn_vectors_enqueue(void *queue, uint64_t now, const void *packet);
/* 0: no packet may leave. */
int sojourn_vectors_dequeue(void *queue, uint64_t now, void *packet);
