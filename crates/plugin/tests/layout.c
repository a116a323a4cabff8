/* Prints sizes and offsets of the interface, which a test compares with those of Rust. */
#include "sojourn_queue.h"

#include <stdio.h>

#define SIZE(type) printf(#type " %zu\n", sizeof(struct sojourn_##type))
#define AT(type, field) printf(#type "." #field " %zu\n", offsetof(struct sojourn_##type, field))

int main(void)
{
    SIZE(text), SIZE(packet), SIZE(headers), SIZE(value), SIZE(parameter), SIZE(link), SIZE(statistic);
    SIZE(host), SIZE(calls), SIZE(queue);
    AT(headers, sacks), AT(headers, other_options), AT(value, real), AT(parameter, words), AT(parameter, of);
    AT(parameter, start), AT(link, name), AT(statistic, real), AT(calls, fail), AT(queue, parameters);
    AT(queue, create), AT(queue, dequeue), AT(queue, next_timer), AT(queue, classes);
    printf("abi %d\n", SOJOURN_ABI);
    return 0;
}
