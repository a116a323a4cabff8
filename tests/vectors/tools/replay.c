// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Sends the packets of an arrival trace at exact times and records what a router makes of them.
//
//   replay origin                         prints a time to count from, in ns of CLOCK_MONOTONIC
//   replay send TRACE ORIGIN DEV          sends the trace out of DEV
//   replay now                            prints the time
//   replay capture OUT ORIGIN END IN OUT  records until END what comes in and what leaves
//   replay until ORIGIN TIME              sleeps
//   replay load FILE PARAMETERS           loads a kernel module
//   replay unload NAME                    removes it
//   replay off                            powers the machine down
//
// A trace has one packet a line: nanoseconds after ORIGIN, flow, size with the Ethernet header, the
// eight bits that were once called type of service, and what the packet is (enum kind). The packet
// carries the number of its line.
//
// The record has one line a packet: `+` (came in) or `-` (left), nanoseconds after ORIGIN, the line
// of the trace, type of service. It is in the order of events, for one socket sees both devices.
//
// Meant for a User-Mode Linux with `time-travel=inf-cpu`, whose clock stands still while code runs:
// the time stamps are then what the queue itself reads. On a real clock they are merely close.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/reboot.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HEADERS = 14 + 20 + 8, TCP_HEADERS = 14 + 20 + 20, MAGIC = 0x534f4a4f, LARGEST = 1514 };

// The first byte of a long header of QUIC has its two highest bits set.
#define LONG_MAGIC 0xff4f4a4fu

enum kind { UDP, QUIC_LONG, TCP_SYN, TCP_ACK, TCP_FIN };

// Queues count time in nanoseconds shifted right, by up to 20 bits, and in ticks of 1 ms: a multiple
// of all these.
#define ORIGIN_GRAIN (15625LL << 20)

static void fail(const char *what) {
    fprintf(stderr, "replay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t clock_ns(clockid_t which) {
    struct timespec at;
    clock_gettime(which, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void sleep_until(int64_t ns) {
    struct timespec at = {ns / 1000000000LL, ns % 1000000000LL};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

static int packet_socket(const char *device, int protocol) {
    int fd = socket(AF_PACKET, SOCK_RAW, protocol ? htons(protocol) : 0);
    if (fd < 0) fail("socket");
    if (device) {
        struct sockaddr_ll to = {
            .sll_family = AF_PACKET,
            .sll_protocol = protocol ? htons(protocol) : 0,
            .sll_ifindex = if_nametoindex(device),
        };
        if (!to.sll_ifindex) fail(device);
        if (bind(fd, (struct sockaddr *)&to, sizeof to)) fail("bind");
    }
    return fd;
}

static void put16(unsigned char *at, unsigned value) {
    at[0] = value >> 8;
    at[1] = value;
}

static void put32(unsigned char *at, uint32_t value) {
    put16(at, value >> 16);
    put16(at + 2, value & 0xffff);
}

static uint32_t get32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

// Ethernet, IPv4 and UDP or TCP headers of packet `id`: from 10.0.1.2 to 10.0.3.2, ports by flow.
static void build(unsigned char *frame, uint32_t id, int flow, int size, int tos, enum kind kind) {
    static const unsigned char router[6] = {2, 0, 0, 0, 1, 1}, client[6] = {2, 0, 0, 0, 1, 2};
    memset(frame, 0, size);
    memcpy(frame, router, 6);
    memcpy(frame + 6, client, 6);
    put16(frame + 12, ETH_P_IP);
    unsigned char *ip = frame + 14;
    ip[0] = 0x45;
    ip[1] = tos;
    put16(ip + 2, size - 14);
    put16(ip + 6, 0x4000);
    ip[8] = 64;
    ip[9] = kind >= TCP_SYN ? IPPROTO_TCP : IPPROTO_UDP;
    put32(ip + 12, 0x0a000102);
    put32(ip + 16, 0x0a000302);
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2) sum += ip[i] << 8 | ip[i + 1];
    sum = (sum >> 16) + (sum & 0xffff);
    sum += sum >> 16;
    put16(ip + 10, ~sum & 0xffff);
    put16(ip + 20, 1000 + flow);
    put16(ip + 22, 2000 + flow);
    if (kind >= TCP_SYN) {
        static const unsigned char flags[] = {[TCP_SYN] = 0x02, [TCP_ACK] = 0x10, [TCP_FIN] = 0x11};
        put32(ip + 24, id);
        put32(ip + 28, MAGIC);
        ip[32] = 0x50;
        ip[33] = flags[kind];
    } else {
        put16(ip + 24, size - 14 - 20);
        put32(ip + 28, kind == QUIC_LONG ? LONG_MAGIC : MAGIC);
        put32(ip + 32, id);
    }
}

static void send_trace(const char *path, int64_t origin, const char *device) {
    FILE *trace = fopen(path, "r");
    if (!trace) fail(path);
    int fd = packet_socket(device, 0);
    int room = 64 << 20;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    unsigned char frame[LARGEST];
    long long at, before = -1;
    int flow, size, tos, kind;
    for (uint32_t id = 0; fscanf(trace, "%lld %d %d %d %d", &at, &flow, &size, &tos, &kind) == 5; id++) {
        if (size < (kind >= TCP_SYN ? TCP_HEADERS : HEADERS + 8) || size > LARGEST) fail("size");
        build(frame, id, flow, size, tos, kind);
        // Packets of one time go out together: sleeping again would let time pass.
        if (at != before) sleep_until(origin + at);
        before = at;
        if (send(fd, frame, size, 0) != size) fail("send");
    }
}

// What CLOCK_REALTIME is ahead of CLOCK_MONOTONIC. Reading a clock may take time, always the same.
static int64_t ahead(void) {
    for (int i = 0; i < 1000; i++) {
        int64_t before = clock_ns(CLOCK_MONOTONIC);
        int64_t real = clock_ns(CLOCK_REALTIME);
        int64_t after = clock_ns(CLOCK_MONOTONIC);
        if (after - before <= 512) return real - (before + after) / 2;
    }
    errno = ETIME;
    fail("the clock is not steady");
    return 0;
}

static int64_t stamp(struct msghdr *msg) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec at;
            memcpy(&at, CMSG_DATA(c), sizeof at);
            return at.tv_sec * 1000000000LL + at.tv_nsec;
        }
    }
    errno = ENODATA;
    fail("no time stamp");
    return 0;
}

static void capture(const char *path, int64_t origin, int64_t end, const char *in, const char *out) {
    FILE *record = fopen(path, "w");
    if (!record) fail(path);
    int in_index = if_nametoindex(in), out_index = if_nametoindex(out);
    int fd = packet_socket(NULL, ETH_P_ALL), on = 1, room = 400 << 20;
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on)) fail("SO_TIMESTAMPNS");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room)) fail("SO_RCVBUFFORCE");
    int64_t offset = ahead() + origin;
    // Everything is read afterwards, so that reading cannot disturb what is measured.
    sleep_until(origin + end);
    unsigned char frame[64], control[256];
    for (;;) {
        struct sockaddr_ll from;
        struct iovec data = {frame, sizeof frame};
        struct msghdr msg = {
            .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &data, .msg_iovlen = 1,
            .msg_control = control, .msg_controllen = sizeof control,
        };
        ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT);
        if (got < 0) break;
        uint32_t magic = get32(frame + 14 + 28);
        if (got < HEADERS + 8 || (magic != MAGIC && magic != LONG_MAGIC)) continue;
        int number = frame[14 + 9] == IPPROTO_TCP ? 14 + 24 : 14 + 32;
        int outgoing = from.sll_pkttype == PACKET_OUTGOING;
        if (from.sll_ifindex != (outgoing ? out_index : in_index)) continue;
        fprintf(record, "%c %lld %u %u\n", outgoing ? '-' : '+', (long long)(stamp(&msg) - offset),
                get32(frame + number), frame[15]);
    }
    struct tpacket_stats lost;
    socklen_t size = sizeof lost;
    getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &lost, &size);
    if (lost.tp_drops) fail("the record is incomplete");
    if (fclose(record)) fail(path);
}

static void load(const char *path, const char *parameters) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail(path);
    if (syscall(SYS_finit_module, fd, parameters, 0)) fail(path);
    close(fd);
}

int main(int count, char **word) {
    // The kernel would otherwise round a process's sleep up by as much as 50 us.
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    const char *mode = count > 1 ? word[1] : "";
    if (!strcmp(mode, "origin")) {
        int64_t soon = clock_ns(CLOCK_MONOTONIC) + 5000000000LL;
        printf("%lld\n", (long long)((soon / ORIGIN_GRAIN + 1) * ORIGIN_GRAIN));
    } else if (!strcmp(mode, "now")) {
        printf("%lld\n", (long long)clock_ns(CLOCK_MONOTONIC));
    } else if (!strcmp(mode, "send") && count == 5) {
        send_trace(word[2], atoll(word[3]), word[4]);
    } else if (!strcmp(mode, "capture") && count == 7) {
        capture(word[2], atoll(word[3]), atoll(word[4]), word[5], word[6]);
    } else if (!strcmp(mode, "until") && count == 4) {
        sleep_until(atoll(word[2]) + atoll(word[3]));
    } else if (!strcmp(mode, "load") && count == 4) {
        load(word[2], word[3]);
    } else if (!strcmp(mode, "unload") && count == 3) {
        if (syscall(SYS_delete_module, word[2], O_NONBLOCK)) fail(word[2]);
    } else if (!strcmp(mode, "off")) {
        sync();
        reboot(LINUX_REBOOT_CMD_POWER_OFF);
    } else {
        fprintf(stderr, "replay: see the head of replay.c\n");
        return 2;
    }
    return 0;
}
