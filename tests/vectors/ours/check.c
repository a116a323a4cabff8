/* Replays a vector on a queue of Sojourn: check QDISC RATE MTU right|wrong < FILE. Prints the first difference. */
#include "../readers/vectors.h"
#include "queues.h"

static void enqueue(void *self, uint64_t now, const struct packet *packet)
{
    sojourn_vectors_enqueue(self, now, packet);
}

static int dequeue(void *self, uint64_t now, struct packet *packet)
{
    return sojourn_vectors_dequeue(self, now, packet);
}

int main(int arguments, char **argument)
{
    static char file[1 << 20];
    char difference[160];
    if (arguments != 5)
        return 2;
    struct queue queue = {NULL, enqueue, dequeue};
    queue.self = sojourn_vectors_queue(argument[1], strtoull(argument[2], NULL, 10), strtoull(argument[3], NULL, 10),
                                       strcmp(argument[4], "wrong") == 0);
    if (!queue.self || fread(file, 1, sizeof(file) - 1, stdin) == 0)
        return 2;
    vectors_check(file, &queue, difference);
    puts(difference);
    return 0;
}
