/* Compares congestion windows with those of the kernel; ../README.md specifies the format. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From when on, in microseconds; window and threshold of slow start in segments, threshold 0: not set yet. */
struct window { uint64_t at, cwnd, ssthresh; };

/* Reads the windows of the kernel from `file`, the text of a vector; returns how many. */
static inline size_t windows_read(const char *file, struct window *rows, size_t most)
{
    char threshold[24]; /* or null */
    size_t count = 0;
    for (const char *at = file; count < most && (at = strchr(at, '[')); at++)
        if (sscanf(at, "[%" SCNu64 ",\"window\",%" SCNu64 ",%23[^,]", &rows[count].at, &rows[count].cwnd,
                   threshold) == 3)
            rows[count++].ssthresh = strtoull(threshold, NULL, 10);
    return count;
}

/* Writes the first difference up to a time, or an empty text. `ours` has a row for each change, in order of time. */
static inline void windows_check(const struct window *row, size_t rows, const struct window *ours, size_t count,
                                 uint64_t until, char difference[160])
{
    for (*difference = 0; rows-- && row->at <= until && !*difference; row++) {
        uint64_t tolerance = 400 + row->at / 1000; /* of the times; the kernel was sampled every millisecond */
        struct window got = {0, 0, 0};
        int found = 0;
        for (size_t n = 0; n < count && ours[n].at <= row->at + tolerance; n++)
            if (n + 1 == count || ours[n + 1].at + 1000 + tolerance > row->at) { /* in force until the next one */
                got = ours[n];
                found |= got.cwnd == row->cwnd && got.ssthresh == row->ssthresh;
            }
        if (!found)
            sprintf(difference, "at %" PRIu64 " us: expected window %" PRIu64 " with threshold %" PRIu64
                    ", got window %" PRIu64 " with threshold %" PRIu64, row->at, row->cwnd, row->ssthresh, got.cwnd,
                    got.ssthresh);
    }
}
