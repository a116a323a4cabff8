// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends random packets through a device and prints random lines of a file, to
 * be read by tc: a test of the queue of the device.
 *
 *   stress DEV SEED PACKETS COMMANDS [EVERY]
 *
 * Packets have IPv4, IPv6 or neither, UDP, TCP with random flags, QUIC, ICMP,
 * SCTP or nothing, random ECN fields, sizes and priorities; some are GSO
 * packets of up to 21 segments. A line is printed every EVERY packets. At the
 * end it says on stderr how many packets the queue got, segments counted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	LINES = 200,
	FRAME = 66000,
	FLOWS = 400,
	MSS = 1448,
};

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	uint64_t x;

	state += 0x9E3779B97F4A7C15ull;
	x = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
	return (x ^ (x >> 31)) % below;
}

static void fail(const char *what)
{
	fprintf(stderr, "stress: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put16(unsigned char *at, unsigned int value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static unsigned int sum16(const unsigned char *data, int size)
{
	unsigned int sum = 0;
	int i;

	for (i = 0; i < size; i += 2)
		sum += data[i] << 8 | data[i + 1];
	sum = (sum >> 16) + (sum & 0xffff);
	return sum + (sum >> 16);
}

/* Writes the IP header of a packet of @size bytes; returns its length. */
static int put_ip(unsigned char *ip, int size, int protocol, unsigned int flow)
{
	unsigned int tos = draw(256);

	if (flow % 3) {
		memset(ip, 0, 20);
		ip[0] = 0x45;
		ip[1] = tos;
		put16(ip + 2, size);
		ip[8] = 64;
		ip[9] = protocol;
		ip[12] = 10;
		put16(ip + 14, flow / 7);
		ip[16] = 10;
		put16(ip + 18, flow % 7 + 1000);
		put16(ip + 10, ~sum16(ip, 20) & 0xffff);
		return 20;
	}
	memset(ip, 0, 40);
	ip[0] = 0x60 | tos >> 4;
	ip[1] = tos << 4;
	put16(ip + 4, size - 40);
	ip[6] = protocol;
	ip[7] = 64;
	ip[8] = 0xfd;
	put16(ip + 22, flow / 7);
	ip[24] = 0xfd;
	put16(ip + 38, flow % 7);
	return 40;
}

/* Builds a frame; returns its size and how many packets it will be. */
static int build(unsigned char *frame, struct virtio_net_hdr *gso, int *segments)
{
	static const int protocols[] = {
		IPPROTO_UDP, IPPROTO_UDP, IPPROTO_TCP, IPPROTO_TCP, IPPROTO_TCP,
		IPPROTO_ICMP, IPPROTO_SCTP, IPPROTO_DCCP, 99,
	};
	unsigned int flow = draw(2) ? draw(4) : draw(FLOWS);
	int protocol = protocols[draw(sizeof(protocols) / sizeof(protocols[0]))];
	int size = draw(3) ? 1514 : 60 + draw(1455);
	unsigned char *l4;
	int header;

	*segments = 1;
	memset(gso, 0, sizeof(*gso));
	memset(frame, 0, 14);
	frame[0] = 2;
	frame[6] = 2;
	if (!draw(50)) {
		put16(frame + 12, 0x88b5);
		return size;
	}
	if (protocol == IPPROTO_TCP && !draw(10))
		size = 14 + 40 + 20 + MSS * (2 + draw(19));
	header = put_ip(frame + 14, size - 14, protocol, flow);
	put16(frame + 12, header == 20 ? ETH_P_IP : ETH_P_IPV6);
	l4 = frame + 14 + header;
	memset(l4, 0, 40);
	put16(l4, 1000 + flow);
	put16(l4 + 2, 2000 + flow);
	if (protocol == IPPROTO_UDP) {
		put16(l4 + 4, size - 14 - header);
		l4[8] = draw(256);
	}
	if (protocol == IPPROTO_TCP) {
		/* Now and then a header that is longer than the packet. */
		l4[12] = draw(100) ? 0x50 : 0xf0;
		l4[13] = draw(4) ? 0x10 : draw(256);
		if (size > 1514) {
			l4[12] = 0x50;
			gso->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
			gso->gso_type = header == 20 ? VIRTIO_NET_HDR_GSO_TCPV4
						     : VIRTIO_NET_HDR_GSO_TCPV6;
			gso->hdr_len = 14 + header + 20;
			gso->gso_size = MSS;
			*segments = (size - gso->hdr_len + MSS - 1) / MSS;
			gso->csum_start = 14 + header;
			gso->csum_offset = 16;
		}
	}
	return size;
}

static int open_socket(const char *device)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_ifindex = if_nametoindex(device),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	int on = 1, room = 256 << 20;

	if (fd < 0 || !to.sll_ifindex)
		fail(device);
	if (bind(fd, (struct sockaddr *)&to, sizeof(to)))
		fail("bind");
	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)))
		fail("PACKET_VNET_HDR");
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	return fd;
}

int main(int count, char **word)
{
	static unsigned char frame[sizeof(struct virtio_net_hdr) + FRAME];
	static char lines[LINES][500];
	unsigned long long packets, sent, refused = 0, offered = 0, printed = 0;
	unsigned long long every = count > 5 ? strtoull(word[5], NULL, 0) : 500;
	int fd, number = 0;
	FILE *commands;

	if (count < 5)
		return 2;
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	fd = open_socket(word[1]);
	state = strtoull(word[2], NULL, 0);
	packets = strtoull(word[3], NULL, 0);
	commands = fopen(word[4], "r");
	if (!commands)
		fail(word[4]);
	while (number < LINES && fgets(lines[number], sizeof(lines[0]), commands))
		number++;
	for (sent = 0; sent < packets; sent++) {
		struct virtio_net_hdr gso;
		int segments, size = build(frame + sizeof(gso), &gso, &segments);
		int priority = draw(30) ? 0 : draw(8);

		memcpy(frame, &gso, sizeof(gso));
		setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
		/* A device that is down, or a queue that drops, which has seen them. */
		if (send(fd, frame, sizeof(gso) + size, 0) >= 0) {
			offered += segments;
		} else {
			refused++;
			offered += errno == ENOBUFS ? segments : 0;
		}
		if (number && sent % every == every - 1) {
			fputs(lines[draw(number)], stdout);
			fflush(stdout);
			printed++;
		}
		/* Bursts with pauses; now and then long enough for the queue to drain. */
		if (!draw(60)) {
			struct timespec pause = { 0, draw(20) ? draw(20000000) : draw(900000000) };

			nanosleep(&pause, NULL);
		}
	}
	fprintf(stderr, "%llu packets, %llu refused, %llu on the wire, %llu lines\n",
		sent, refused, offered, printed);
	return 0;
}
