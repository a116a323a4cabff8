/* Replays a test vector of the kernel on a queue; ../README.md specifies the format. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct packet { uint64_t number, flow, size, tos; }; /* marked: the two lowest bits of tos are set */

struct queue { /* times in nanoseconds; dequeue returns 0 if no packet may leave */
    void *self;
    void (*enqueue)(void *self, uint64_t now, const struct packet *);
    int (*dequeue)(void *self, uint64_t now, struct packet *);
};

/* Replays `file`, the text of a vector. Writes the first difference, an empty text if there is none. */
static inline void vectors_check(const char *file, const struct queue *queue, char difference[160])
{
    const char *at = strchr(strstr(file, "\"marks\":"), '['), *const ecn[] = {"", " with CE"};
    char *ce = (char *)calloc(1, strlen(file)); /* of each packet: whether it leaves with CE */
    uint64_t row[4] = {0}, arrived = 0;
    struct packet got;
    for (at++; at += strcspn(at, "0123456789]"), *at != ']'; at += strspn(at, "0123456789"))
        ce[strtoull(at, NULL, 10)] = 1;
    at = strchr(strstr(file, "\"events\":"), '[') + 1;
    for (*difference = 0; at += strcspn(at, "[]"), *at != ']' && !*difference; at = strchr(at, ']') + 1)
        if (sscanf(at, "[%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64, row, row + 1, row + 2, row + 3) == 4) {
            struct packet packet = {arrived, row[1], row[2], row[3]};
            ce[arrived++] |= (row[3] & 3) == 3;
            queue->enqueue(queue->self, row[0], &packet);
        } else if (!queue->dequeue(queue->self, row[0], &got))
            sprintf(difference, "at %" PRIu64 " ns: expected packet %" PRIu64 "%s, got no packet", row[0], row[1],
                    ecn[(int)ce[row[1]]]);
        else if (got.number != row[1] || ((got.tos & 3) == 3) != ce[row[1]])
            sprintf(difference, "at %" PRIu64 " ns: expected packet %" PRIu64 "%s, got packet %" PRIu64 "%s", row[0],
                    row[1], ecn[(int)ce[row[1]]], got.number, ecn[(got.tos & 3) == 3]);
    if (!*difference && queue->dequeue(queue->self, row[0], &got))
        sprintf(difference, "at the end: expected no packet, got packet %" PRIu64, got.number);
    free(ce);
}
