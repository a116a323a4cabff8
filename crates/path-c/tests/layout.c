/* Prints sizes and offsets of the interface, which a test compares with those of Rust. */
#include "sojourn_path.h"

#include <stdio.h>

#define SIZE(type) printf(#type " %zu\n", sizeof(struct sojourn_##type))
#define AT(type, field) printf(#type "." #field " %zu\n", offsetof(struct sojourn_##type, field))

int main(void)
{
    SIZE(path_config), SIZE(delivery), SIZE(event), SIZE(counters), SIZE(statistic);
    AT(path_config, seed), AT(path_config, forward), AT(path_config, reverse_trace);
    AT(path_config, capture_file), AT(path_config, capture), AT(path_config, capture_context);
    AT(delivery, waited), AT(delivery, bytes), AT(delivery, size), AT(delivery, flow), AT(delivery, dscp);
    AT(event, waited), AT(event, size), AT(event, direction), AT(event, kind), AT(event, reason);
    AT(counters, drops_aqm), AT(counters, marks_aqm), AT(counters, duplicated_packets);
    printf("kinds %d %d %d %d %d %d\n", SOJOURN_OFFERED, SOJOURN_DROPPED, SOJOURN_MARKED, SOJOURN_DEPARTED,
           SOJOURN_LOST, SOJOURN_ARRIVED);
    printf("abi %d flags %u %u directions %d %d\n", SOJOURN_ABI, SOJOURN_EVENTS, SOJOURN_STRICT, SOJOURN_FORWARD, SOJOURN_REVERSE);
    return 0;
}
