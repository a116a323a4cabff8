/* The only program in the virtual machine: it builds the network, sends the traffic and writes what it measures.
 *
 * As process 1 it mounts the directory of the run at /host, follows the lines of /host/instructions and powers off. Its
 * children are the ends of flows. All times are nanoseconds from the start of the run, on a clock that stands still
 * while programs work. A line is a command and its arguments, separated by blanks:
 *
 *   run PROGRAM ARGUMENT...                     run a program; the machine stops if it fails
 *   set NETNS PATH VALUE...                     write a file below /proc/sys; NETNS -: the first one
 *   plain NETNS DEVICE                          switch segmentation and coalescing off, and check that they are
 *   clock SAMPLE MEASURE END                    length of an interval; end of the warm-up; end of the run
 *   stats NETNS DEVICE                          write the statistics of its queues at the end of each interval
 *   tap NETNS DEVICE FIRST_PORT                 write the time of each packet on the device
 *   at TIME PROGRAM ARGUMENT...                 run a program at this time
 *   sink NETNS FLOW PORT BYTES OPTIONS          accept a connection and read; BYTES 0: without end
 *   source NETNS FLOW FROM TO PORT START STOP BYTES OPTIONS   open a connection and write
 *   receiver NETNS FLOW PORT ECHO TOS           receive datagrams, and send them back if ECHO is 1
 *   sender NETNS FLOW FROM TO PORT PAYLOAD ECHO TOS           send datagrams at the times in /host/schedule.FLOW;
 *                                               PAYLOAD 0: echo requests of ICMP
 *   go                                          start the run
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/gen_stats.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define MOST_WORDS 64
#define MOST_DEVICES 16

typedef int64_t nanos;

static nanos origin;                     /* start of the run, CLOCK_MONOTONIC */
static nanos sample, measure, end;       /* of the run */
static char buffer[1 << 17];

/* ---------------------------------------------------------------- failures, files, time */

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

/* Writes why the run failed; the whole machine stops. */
static void fail(const char *format, ...)
{
	FILE *file = fopen("/host/failure", "a");
	va_list words;
	va_start(words, format);
	if (file) {
		vfprintf(file, format, words);
		fputc('\n', file);
		fclose(file);
	}
	va_end(words);
	if (getpid() == 1)
		power_off();
	_exit(1);
}

static FILE *output(const char *name, const char *flow)
{
	char path[256];
	snprintf(path, sizeof path, "/host/%s%s%s", name, flow ? "." : "", flow ? flow : "");
	FILE *file = fopen(path, "w");
	if (!file)
		fail("%s: %s", path, strerror(errno));
	setvbuf(file, NULL, _IOFBF, 1 << 20);
	return file;
}

static nanos clock_of(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static nanos now(void)
{
	return clock_of(CLOCK_MONOTONIC) - origin;
}

static void until(nanos time)
{
	nanos at = time + origin;
	struct timespec t = {.tv_sec = at / SECOND, .tv_nsec = at % SECOND};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* Waits for an event of a socket, at most until `time`; returns the events. */
static short wait_for(int fd, short events, nanos time)
{
	nanos rest = time - now();
	if (rest < 0)
		rest = 0;
	struct timespec t = {.tv_sec = rest / SECOND, .tv_nsec = rest % SECOND};
	struct pollfd one = {.fd = fd, .events = events};
	return ppoll(&one, 1, &t, NULL) > 0 ? one.revents : 0;
}

static nanos number(const char *text)
{
	return strtoll(text, NULL, 10);
}

/* The value of `key` in "key=value,key=value"; NULL: it is not there. */
static const char *option(const char *options, const char *key)
{
	static char value[64];
	size_t length = strlen(key);
	for (const char *at = options; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (strncmp(at, key, length) == 0 && at[length] == '=') {
			snprintf(value, sizeof value, "%.*s", (int)strcspn(at + length + 1, ","), at + length + 1);
			return value;
		}
	}
	return NULL;
}

static void enter(const char *netns)
{
	char path[128];
	snprintf(path, sizeof path, "/run/netns/%s", netns);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		fail("network namespace %s: %s", netns, strerror(errno));
	close(fd);
}

static void run(char **words)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		int log = open("/host/log", O_WRONLY | O_CREAT | O_APPEND, 0644);
		dup2(log, 1);
		dup2(log, 2);
		execvp(words[0], words);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
		char line[512] = "";
		for (; *words && strlen(line) < 400; words++) {
			strncat(line, *words, 100);
			strcat(line, " ");
		}
		fail("this command failed: %s", line);
	}
}

/* ---------------------------------------------------------------- settings */

static void set(char **words)
{
	char path[256], value[256] = "";
	if (strcmp(words[0], "-"))
		enter(words[0]);
	snprintf(path, sizeof path, "%s%s", words[1][0] == '/' ? "" : "/proc/sys/", words[1]);
	for (char **word = words + 2; *word; word++) {
		strncat(value, *word, 60);
		strcat(value, word[1] ? " " : "\n");
	}
	int fd = open(path, O_WRONLY);
	/* A kernel without IPv6 does not need to be told. */
	if (fd < 0 && errno == ENOENT && !strncmp(words[1], "net/ipv6/", 9))
		_exit(0);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail("%s: %s", path, strerror(errno));
	_exit(0);
}

static void plain(char **words)
{
	static const unsigned int off[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO};
	static const unsigned int get[] = {ETHTOOL_GTSO, ETHTOOL_GGSO, ETHTOOL_GGRO};
	enter(words[0]);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	for (int k = 0; k < 3; k++) {
		struct ethtool_value value = {.cmd = off[k]};
		struct ifreq request = {.ifr_data = (void *)&value};
		strncpy(request.ifr_name, words[1], IFNAMSIZ - 1);
		int failed = ioctl(fd, SIOCETHTOOL, &request);
		value.cmd = get[k];
		if (failed || ioctl(fd, SIOCETHTOOL, &request) || value.data)
			fail("%s: offload %d cannot be switched off", words[1], k);
	}
	_exit(0);
}

/* ---------------------------------------------------------------- statistics of queues */

static struct {
	const char *name;
	int index, netlink;
} devices[MOST_DEVICES];
static int device_count;

static void add_device(char **words)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	enter(words[0]);
	if (device_count == MOST_DEVICES)
		fail("more than %d devices", MOST_DEVICES);
	devices[device_count].name = strdup(words[1]);
	devices[device_count].index = if_nametoindex(words[1]);
	devices[device_count].netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (!devices[device_count].index || devices[device_count].netlink < 0)
		fail("%s: no such device", words[1]);
	device_count++;
	if (setns(own, CLONE_NEWNET))
		fail("setns: %s", strerror(errno));
	close(own);
}

/* Writes one line: time, device, handle, parent, kind, bytes, packets, drops, backlog in packets and bytes, statistics
 * of its own in hexadecimal. */
static void write_qdisc(FILE *file, nanos at, const char *device, struct nlmsghdr *message)
{
	struct tcmsg *qdisc = NLMSG_DATA(message);
	struct gnet_stats_basic basic = {0};
	struct gnet_stats_queue queue = {0};
	struct rtattr *attribute, *own = NULL;
	const char *kind = "?";
	int length = TCA_PAYLOAD(message);
	for (attribute = TCA_RTA(qdisc); RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length)) {
		if (attribute->rta_type == TCA_KIND)
			kind = RTA_DATA(attribute);
		if (attribute->rta_type != TCA_STATS2)
			continue;
		int rest = RTA_PAYLOAD(attribute);
		struct rtattr *part = RTA_DATA(attribute);
		for (; RTA_OK(part, rest); part = RTA_NEXT(part, rest)) {
			if (part->rta_type == TCA_STATS_BASIC)
				memcpy(&basic, RTA_DATA(part), sizeof basic);
			if (part->rta_type == TCA_STATS_QUEUE)
				memcpy(&queue, RTA_DATA(part), sizeof queue);
			if (part->rta_type == TCA_STATS_APP)
				own = part;
		}
	}
	fprintf(file, "%" PRId64 " %s %x %x %s %" PRIu64 " %u %u %u %u ", at, device, qdisc->tcm_handle, qdisc->tcm_parent,
		kind, (uint64_t)basic.bytes, basic.packets, queue.drops, queue.qlen, queue.backlog);
	if (own) {
		const unsigned char *byte = RTA_DATA(own);
		for (size_t k = 0; k < RTA_PAYLOAD(own); k++)
			fprintf(file, "%02x", byte[k]);
	} else {
		fputc('-', file);
	}
	fputc('\n', file);
}

static void write_queues(FILE *file, nanos at)
{
	for (int k = 0; k < device_count; k++) {
		struct {
			struct nlmsghdr header;
			struct tcmsg message;
		} request = {
			.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct tcmsg)),
				   .nlmsg_type = RTM_GETQDISC,
				   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
			.message = {.tcm_family = AF_UNSPEC, .tcm_ifindex = devices[k].index},
		};
		if (send(devices[k].netlink, &request, request.header.nlmsg_len, 0) < 0)
			fail("netlink: %s", strerror(errno));
		for (int done = 0; !done;) {
			int length = recv(devices[k].netlink, buffer, sizeof buffer, 0);
			if (length <= 0)
				fail("netlink: %s", strerror(errno));
			struct nlmsghdr *message = (void *)buffer;
			for (; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
				struct tcmsg *qdisc = NLMSG_DATA(message);
				if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR)
					done = 1;
				else if (qdisc->tcm_ifindex == devices[k].index)
					write_qdisc(file, at, devices[k].name, message);
			}
		}
	}
}

/* The times at which something is measured: the end of each interval and of the warm-up. */
static nanos next_time(nanos after)
{
	nanos next = (after / sample + 1) * sample;
	if (after < measure && measure < next)
		next = measure;
	return next < end ? next : end;
}

static void watch_queues(void)
{
	FILE *file = output("queues", NULL);
	int progress = open("/host/progress", O_WRONLY | O_CREAT, 0644);
	nanos at = 0;
	until(0);
	write_queues(file, 0);
	while (at < end) {
		char text[32];
		at = next_time(at);
		until(at);
		write_queues(file, at);
		int length = snprintf(text, sizeof text, "%020" PRId64 "\n", at);
		if (pwrite(progress, text, length, 0) != length)
			fail("progress: %s", strerror(errno));
	}
	fclose(file);
}

/* ---------------------------------------------------------------- times of packets */

#define FRAME 256
#define BLOCK (1 << 16)
#define BLOCKS 128

/* As in crates/kernel/src/tap.rs. */
struct packet {
	nanos at;
	uint64_t identity;
	uint16_t length, flow;
	uint8_t outgoing, tos, from_source, unused;
};

/* Digest of what identifies a packet and does not change on its way. */
static uint64_t identify(const unsigned char *ip, int length)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	int header = (ip[0] & 15) * 4;
	for (int k = 4; k < header + 16 && k < length; k++) {
		int changes = k == 6 || k == 7 || k == 8 || k == 10 || k == 11;
		if (!changes)
			hash = (hash ^ ip[k]) * 0x100000001b3ULL;
	}
	return hash;
}

/* Writes the time of each packet of a device, in either direction. */
static void tap(char **words)
{
	const int first = atoi(words[2]);
	enter(words[0]);
	FILE *file = output("tap", words[1]);
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), version = TPACKET_V2;
	struct tpacket_req request = {
		.tp_block_size = BLOCK, .tp_block_nr = BLOCKS, .tp_frame_size = FRAME, .tp_frame_nr = BLOCKS * (BLOCK / FRAME)};
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(words[1])};
	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) ||
	    bind(fd, (void *)&address, sizeof address))
		fail("tap: %s", strerror(errno));
	char *ring = mmap(NULL, (size_t)BLOCK * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		fail("tap: %s", strerror(errno));
	const nanos real = clock_of(CLOCK_REALTIME) - clock_of(CLOCK_MONOTONIC);
	unsigned int at = 0;
	for (nanos due = 0; due <= end + 10000000; due += 10000000) {
		until(due);
		for (;;) {
			struct tpacket2_hdr *frame = (void *)(ring + (size_t)at * FRAME);
			if (!(frame->tp_status & TP_STATUS_USER))
				break;
			const struct sockaddr_ll *from = (void *)((char *)frame + TPACKET_ALIGN(sizeof *frame));
			const unsigned char *ip = (unsigned char *)frame + frame->tp_net;
			int length = frame->tp_snaplen - (frame->tp_net - frame->tp_mac);
			nanos time = frame->tp_sec * SECOND + frame->tp_nsec - real - origin;
			if (ntohs(from->sll_protocol) == ETH_P_IP && length >= 28 && time >= 0) {
				const unsigned char *ports = ip + (ip[0] & 15) * 4;
				int to = ports[2] << 8 | ports[3], source = ports[0] << 8 | ports[1];
				struct packet packet = {
					.at = time, .identity = identify(ip, length), .length = frame->tp_len, .tos = ip[1],
					.outgoing = from->sll_pkttype == PACKET_OUTGOING};
				if (ip[9] == IPPROTO_ICMP) {
					packet.flow = ports[4] << 8 | ports[5];
					packet.from_source = ports[0] == 8;
				} else {
					packet.from_source = to >= first && to < first + 20000;
					packet.flow = (packet.from_source ? to : source) - first;
				}
				fwrite(&packet, sizeof packet, 1, file);
			}
			frame->tp_status = TP_STATUS_KERNEL;
			at = (at + 1) % request.tp_frame_nr;
		}
	}
	struct tpacket_stats lost;
	socklen_t size = sizeof lost;
	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &lost, &size) || lost.tp_drops)
		fail("tap: the ring of %s was full", words[1]);
	fclose(file);
	_exit(0);
}

/* ---------------------------------------------------------------- TCP */

static struct sockaddr_in address_of(const char *host, int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	if (host)
		inet_pton(AF_INET, host, &address.sin_addr);
	return address;
}

static void set_number(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof value))
		fail("socket option %d: %s", name, strerror(errno));
}

static void set_options(int fd, const char *options)
{
	const char *value;
	if ((value = option(options, "tos")))
		set_number(fd, IPPROTO_IP, IP_TOS, atoi(value));
	if ((value = option(options, "mss")))
		set_number(fd, IPPROTO_TCP, TCP_MAXSEG, atoi(value));
	if ((value = option(options, "window")))
		set_number(fd, SOL_SOCKET, SO_RCVBUFFORCE, atoi(value));
	if ((value = option(options, "cc")) && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, value, strlen(value)))
		fail("congestion control %s: %s", value, strerror(errno));
	if (option(options, "pace")) {
		/* Paced, without an upper limit. */
		unsigned long long rate = 1000000000000ULL;
		if (setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate))
			fail("pacing: %s", strerror(errno));
	}
}

static int listener(const char *port, const char *options)
{
	struct sockaddr_in own = address_of(NULL, atoi(port));
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	set_number(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	set_options(fd, options);
	if (bind(fd, (void *)&own, sizeof own) || listen(fd, 16))
		fail("port %s: %s", port, strerror(errno));
	return fd;
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* Reads all that arrives. Writes: when the first and last byte arrived and when all of them had, bytes after the
 * warm-up, segments with data after it; then the bytes of each interval. */
static void sink(char **words)
{
	enter(words[0]);
	int fd = -1, waiting = listener(words[2], words[4]);
	const uint64_t wanted = strtoull(words[3], NULL, 10);
	const size_t intervals = end / sample + 2;
	uint64_t *delivered = calloc(intervals, sizeof *delivered);
	uint64_t total = 0, measured = 0, segments_before = 0;
	nanos first = -1, last = -1, completed = -1;
	int is_measured = measure == 0;
	struct tcp_info info = {0};
	socklen_t size = sizeof info;
	/* An alarm each 100 ms, so that a call that waits returns after the end of the run. */
	struct sigaction action = {.sa_handler = on_alarm};
	sigaction(SIGALRM, &action, NULL);
	struct itimerspec alarm = {.it_interval = {.tv_nsec = 100000000}};
	timer_t timer;
	nanos at = end + origin + 1;
	alarm.it_value = (struct timespec){.tv_sec = at / SECOND, .tv_nsec = at % SECOND};
	if (timer_create(CLOCK_MONOTONIC, NULL, &timer) || timer_settime(timer, TIMER_ABSTIME, &alarm, NULL))
		fail("timer: %s", strerror(errno));
	while (fd < 0 && now() < end)
		fd = accept(waiting, NULL, NULL);
	while (fd >= 0) {
		ssize_t bytes = recv(fd, buffer, 1 << 20, MSG_TRUNC);
		nanos time = now();
		if (time >= end || bytes == 0 || (bytes < 0 && errno != EINTR))
			break;
		if (bytes < 0)
			continue;
		if (!is_measured && time >= measure) {
			is_measured = 1;
			if (!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
				segments_before = info.tcpi_data_segs_in;
		}
		if (first < 0)
			first = time;
		last = time;
		total += bytes;
		if (time >= measure)
			measured += bytes;
		delivered[time / sample] += bytes;
		if (wanted && total >= wanted && completed < 0)
			completed = time;
	}
	size = sizeof info;
	if (fd >= 0)
		getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
	FILE *file = output("sink", words[1]);
	fprintf(file, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 "\n", first, last, completed, measured,
		is_measured ? info.tcpi_data_segs_in - segments_before : 0);
	for (size_t k = 0; k < intervals; k++)
		fprintf(file, "%" PRIu64 "\n", delivered[k]);
	fclose(file);
	_exit(0);
}

/* Writes the state of a connection: one line. */
static void write_state(FILE *file, int fd, nanos at)
{
	struct tcp_info i = {0};
	socklen_t size = sizeof i;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &size))
		return;
	fprintf(file, "state %" PRId64 " %u %u %u %u %u %u %u %u %u %llu %llu %llu %u %u %u\n", at, i.tcpi_state,
		i.tcpi_ca_state, i.tcpi_snd_cwnd, i.tcpi_snd_ssthresh, i.tcpi_rtt, i.tcpi_unacked, i.tcpi_total_retrans,
		i.tcpi_data_segs_out, i.tcpi_notsent_bytes, (unsigned long long)i.tcpi_busy_time,
		(unsigned long long)i.tcpi_rwnd_limited, (unsigned long long)i.tcpi_sndbuf_limited, i.tcpi_snd_wnd,
		i.tcpi_delivered_ce, i.tcpi_options);
}

/* Opens a connection and writes as much as it takes. */
static void source(char **words)
{
	const nanos start = number(words[5]), stop = number(words[6]);
	const uint64_t bytes = strtoull(words[7], NULL, 10);
	const char *options = words[8];
	const int port = atoi(words[4]);
	struct sockaddr_in own = address_of(words[2], port + 20000), peer = address_of(words[3], port);
	uint64_t sent = 0;
	int writes = 1, error = 0, is_open = 0;
	enter(words[0]);
	FILE *file = output("source", words[1]);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	set_number(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	set_options(fd, options);
	if (bind(fd, (void *)&own, sizeof own))
		fail("address %s: %s", words[2], strerror(errno));
	until(start);
	fprintf(file, "started %" PRId64 "\n", now());
	if (connect(fd, (void *)&peer, sizeof peer) && errno != EINPROGRESS)
		error = errno;
	nanos due = next_time(start);
	while (!error) {
		nanos time = now();
		if (time >= due || time >= stop) {
			write_state(file, fd, time < due ? time : due);
			if (time >= stop || time >= end)
				break;
			due = next_time(due);
			continue;
		}
		short events = wait_for(fd, POLLIN | (writes ? POLLOUT : 0), due < stop ? due : stop);
		if (!is_open && (events & (POLLOUT | POLLERR | POLLHUP))) {
			socklen_t size = sizeof error;
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
			is_open = 1;
			if (!error)
				fprintf(file, "connected %" PRId64 "\n", now());
			continue;
		}
		if (events & POLLIN) {
			ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
			if (got == 0)
				break;
			if (got < 0 && errno != EAGAIN)
				error = errno;
		}
		if (writes && (events & (POLLOUT | POLLERR | POLLHUP))) {
			size_t length = 65536;
			if (bytes && bytes - sent < length)
				length = bytes - sent;
			ssize_t taken = send(fd, buffer, length, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (taken < 0 && errno != EAGAIN)
				error = errno;
			if (taken > 0)
				sent += taken;
			if (bytes && sent >= bytes) {
				shutdown(fd, SHUT_WR);
				writes = 0;
			}
		} else if (events & POLLERR) {
			error = ECONNRESET;
		}
	}
	write_state(file, fd, now());
	if (error)
		fprintf(file, "failed %d\n", error);
	fclose(file);
	/* A flow without end is aborted. */
	struct linger abort = {.l_onoff = 1};
	if (!bytes)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
	_exit(0);
}

/* ---------------------------------------------------------------- datagrams */

static uint16_t checksum(const void *data, int length)
{
	const uint16_t *word = data;
	uint32_t sum = 0;
	for (; length > 1; length -= 2)
		sum += *word++;
	sum = (sum >> 16) + (sum & 0xffff);
	sum += sum >> 16;
	return ~sum;
}

static void write_arrival(FILE *file, uint32_t number, nanos at)
{
	fprintf(file, "%u %" PRId64 "\n", number, at);
}

static void receiver(char **words)
{
	const int echo = atoi(words[3]);
	struct sockaddr_in own = address_of(NULL, atoi(words[2])), from;
	enter(words[0]);
	FILE *file = echo ? NULL : output("arrivals", words[1]);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	set_number(fd, SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20);
	set_number(fd, IPPROTO_IP, IP_TOS, atoi(words[4]));
	if (bind(fd, (void *)&own, sizeof own))
		fail("port %s: %s", words[2], strerror(errno));
	while (now() < end) {
		if (!wait_for(fd, POLLIN, end))
			continue;
		socklen_t size = sizeof from;
		ssize_t length = recvfrom(fd, buffer, sizeof buffer, 0, (void *)&from, &size);
		uint32_t number;
		if (length < (ssize_t)sizeof number)
			continue;
		memcpy(&number, buffer, sizeof number);
		if (echo)
			sendto(fd, buffer, length, 0, (void *)&from, size);
		else
			write_arrival(file, number, now());
	}
	if (file)
		fclose(file);
	_exit(0);
}

/* Sends the datagram with this number: ICMP has an identifier and a sequence number before it. */
static void send_datagram(int fd, uint32_t number, int payload, int flow)
{
	memset(buffer, 0, payload ? payload : 64);
	if (payload) {
		memcpy(buffer, &number, sizeof number);
	} else {
		uint16_t fields[] = {htons(8 << 8), 0, htons(flow), htons(number)};
		memcpy(buffer, fields, sizeof fields);
		memcpy(buffer + 8, &number, sizeof number);
		fields[1] = checksum(buffer, 64);
		memcpy(buffer, fields, sizeof fields);
	}
	/* A datagram that the device refuses is lost like any other. */
	(void)!send(fd, buffer, payload ? payload : 64, 0);
}

static void sender(char **words)
{
	const int flow = atoi(words[1]), port = atoi(words[4]), payload = atoi(words[5]), echo = atoi(words[6]);
	struct sockaddr_in own = address_of(words[2], payload ? port + 20000 : 0), peer = address_of(words[3], port);
	char path[64];
	nanos *times = NULL;
	struct stat found;
	enter(words[0]);
	FILE *file = echo ? output("arrivals", words[1]) : NULL;
	snprintf(path, sizeof path, "/host/schedule.%d", flow);
	int schedule = open(path, O_RDONLY);
	if (schedule < 0 || fstat(schedule, &found))
		fail("%s: %s", path, strerror(errno));
	const size_t count = found.st_size / sizeof *times;
	times = malloc(found.st_size + 1);
	for (size_t got = 0; got < count * sizeof *times;) {
		ssize_t length = read(schedule, (char *)times + got, count * sizeof *times - got);
		if (length <= 0)
			fail("%s: %s", path, strerror(errno));
		got += length;
	}
	int fd = payload ? socket(AF_INET, SOCK_DGRAM, 0) : socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	set_number(fd, SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20);
	set_number(fd, IPPROTO_IP, IP_TOS, atoi(words[7]));
	if (bind(fd, (void *)&own, sizeof own) || connect(fd, (void *)&peer, sizeof peer))
		fail("address %s: %s", words[2], strerror(errno));
	for (size_t next = 0;;) {
		nanos due = next < count ? times[next] : end;
		if (now() >= due) {
			if (next >= count)
				break;
			send_datagram(fd, next++, payload, flow);
			continue;
		}
		if (!echo) {
			until(due);
			continue;
		}
		if (!wait_for(fd, POLLIN, due))
			continue;
		ssize_t length = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
		const unsigned char *data = (unsigned char *)buffer;
		if (!payload) {
			/* A raw socket gets the IP header, and the requests of others too. */
			int header = (data[0] & 15) * 4;
			data += header;
			length -= header;
			if (length < 12 || data[0] != 0 || (data[4] << 8 | data[5]) != flow)
				continue;
			data += 8;
		}
		if (length >= 4 && now() < end) {
			uint32_t number;
			memcpy(&number, data, sizeof number);
			write_arrival(file, number, now());
		}
	}
	if (file)
		fclose(file);
	_exit(0);
}

/* ---------------------------------------------------------------- the run */

static char *changes[4096];
static int change_count;

static int split(char *line, char **words)
{
	int count = 0;
	for (char *word = strtok(line, " \n"); word && count < MOST_WORDS - 1; word = strtok(NULL, " \n"))
		words[count++] = word;
	words[count] = NULL;
	return count;
}

static void change(void)
{
	for (int k = 0; k < change_count; k++) {
		char *words[MOST_WORDS];
		if (split(changes[k], words) < 2)
			continue;
		until(number(words[0]));
		run(words + 1);
	}
	_exit(0);
}

static void await(pid_t child)
{
	int status;
	if (child < 0 || waitpid(child, &status, 0) < 0 || status)
		power_off();
}

/* Starts a child that follows one line. */
static pid_t start(void (*follow)(char **), char **words)
{
	pid_t child = fork();
	if (child == 0)
		follow(words);
	return child;
}

int main(void)
{
	static char line[1 << 16];
	char *words[MOST_WORDS];
	setenv("PATH", "/sbin:/bin", 1);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("tmpfs", "/run", "tmpfs", 0, NULL);
	mkdir("/run/netns", 0755);
	if (mount("none", "/host", "hostfs", 0, NULL))
		power_off();
	FILE *instructions = fopen("/host/instructions", "r");
	if (!instructions)
		fail("no instructions");
	/* The run starts at a whole second, when all ends have been started. */
	while (fgets(line, sizeof line, instructions)) {
		char *rest = strdup(line);
		if (split(line, words) == 0)
			continue;
		char **arguments = words + 1;
		if (!strcmp(words[0], "run"))
			run(arguments);
		else if (!strcmp(words[0], "set"))
			await(start(set, arguments));
		else if (!strcmp(words[0], "plain"))
			await(start(plain, arguments));
		else if (!strcmp(words[0], "stats"))
			add_device(arguments);
		else if (!strcmp(words[0], "at"))
			changes[change_count++] = rest + 3;
		else if (!strcmp(words[0], "clock")) {
			sample = number(words[1]);
			measure = number(words[2]);
			end = number(words[3]);
			origin = (clock_of(CLOCK_MONOTONIC) / SECOND + 3) * SECOND;
		} else if (!strcmp(words[0], "tap"))
			start(tap, arguments);
		else if (!strcmp(words[0], "sink"))
			start(sink, arguments);
		else if (!strcmp(words[0], "source"))
			start(source, arguments);
		else if (!strcmp(words[0], "receiver"))
			start(receiver, arguments);
		else if (!strcmp(words[0], "sender"))
			start(sender, arguments);
		else if (strcmp(words[0], "go"))
			fail("unknown instruction %s", words[0]);
		if (change_count == (int)(sizeof changes / sizeof *changes))
			fail("too many changes");
	}
	if (change_count && fork() == 0)
		change();
	watch_queues();
	while (wait(NULL) > 0)
		;
	if (access("/host/failure", F_OK)) {
		FILE *done = output("done", NULL);
		fclose(done);
	}
	power_off();
	return 0;
}
