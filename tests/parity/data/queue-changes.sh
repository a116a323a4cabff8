#!/bin/sh
# What queues of Linux keep when `tc` changes or replaces them: 10 packets are sent through a token bucket of 1 kbit/s, which lets
# one pass; 9 wait in the queue inside (or 8, and one that the bucket has taken). Prints the backlog before and after.
# Run it as root in a network namespace of its own. queue-changes.txt has what Linux 6.1.192 printed.
set -e
payload=$(head -c 1000 /dev/zero | tr '\0' x)
waiting() { tc -s qdisc show dev c0 | grep -A 3 "parent 1:1" | grep -o "backlog.*p " | cut -d ' ' -f 3; }
case_of() { # queue, verb and handle, change
    ip link add c0 type veth peer name r0
    ip link set r0 up
    ip addr add 10.9.0.1/24 dev c0
    ip link set c0 up
    ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 nud permanent dev c0
    tc qdisc add dev c0 root handle 1: tbf rate 1kbit burst 1600 limit 1000000
    # shellcheck disable=SC2086
    tc qdisc add dev c0 parent 1:1 handle 2: $1
    sleep 0.1
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        bash -c "printf %s '$payload' > /dev/udp/10.9.0.2/9"
    done
    before=$(waiting)
    # shellcheck disable=SC2086
    if tc qdisc ${2%% *} dev c0 parent 1:1 handle "${2##* }" $3 2> /dev/null; then done=yes; else done=refused; fi
    echo "$1 | $3 | $done | $before | $(waiting)"
    ip link del c0
}
for kind in codel pie fq_codel fq_pie fq pfifo; do case_of "$kind" "change 2:" "$kind limit 4"; done
case_of cake "change 2:" "cake memlimit 4000"
red="min 20000 max 50000 avpkt 1000 burst 25 bandwidth 1mbit"
case_of "red limit 60000 $red" "change 2:" "red limit 90000 $red"
case_of sfb "change 2:" "sfb limit 900"
case_of "codel target 9ms ecn" "change 2:" "codel limit 77"
case_of fq_codel "change 2:" "fq_codel flows 9"
case_of codel "replace 3:" "pfifo limit 9"
case_of "cake bandwidth 10mbit rtt 30ms" "change 2:" "cake bandwidth 20mbit"
