# The three tiers that SQM's simple.qos sets up for 19 and 84 Mbit/s.
tc qdisc add dev wan root handle 1: stab mtu 2047 tsize 512 mpu 68 overhead 44 linklayer atm htb default 12
tc class add dev wan parent 1: classid 1:1 htb quantum 1514 rate 19000kbit ceil 19000kbit burst 2375 cburst 2375
tc class add dev wan parent 1:1 classid 1:11 htb quantum 1514 rate 128kbit ceil 6333kbit burst 1749 cburst 1749 prio 1
tc class add dev wan parent 1:1 classid 1:12 htb quantum 1514 rate 3166kbit ceil 18984kbit burst 2373 cburst 2373 prio 2
tc class add dev wan parent 1:1 classid 1:13 htb quantum 1514 rate 3166kbit ceil 18984kbit burst 2373 cburst 2373 prio 3
tc qdisc add dev wan parent 1:11 handle 110: fq_codel limit 1001 target 5ms interval 100ms noecn quantum 300 flows 1024
tc qdisc add dev wan parent 1:12 handle 120: fq_codel limit 1001 target 5ms interval 100ms noecn quantum 300 flows 1024
tc qdisc add dev wan parent 1:13 handle 130: fq_codel limit 1001 target 5ms interval 100ms noecn quantum 300 flows 1024
tc filter add dev wan parent 1:0 protocol ip prio 3 u32 match ip tos 0xb8 0xfc classid 1:11
tc filter add dev wan parent 1:0 protocol ipv6 prio 4 u32 match ip6 priority 0xb8 0xfc classid 1:11
tc filter add dev wan parent 1:0 protocol ip prio 5 u32 match ip tos 0x20 0xfc classid 1:13
tc filter add dev wan parent 1:0 protocol ipv6 prio 6 u32 match ip6 priority 0x20 0xfc classid 1:13
tc qdisc add dev wan handle ffff: ingress
tc qdisc add dev ifb4wan root handle 1: htb default 10
tc class add dev ifb4wan parent 1: classid 1:1 htb quantum 1514 rate 84000kbit ceil 84000kbit burst 10500 cburst 10500
tc class add dev ifb4wan parent 1:1 classid 1:10 htb quantum 1514 rate 84000kbit ceil 84000kbit burst 10500 cburst 10500 prio 0
tc qdisc add dev ifb4wan parent 1:10 handle 110: fq_codel limit 1001 target 5ms interval 100ms ecn flows 1024
tc filter add dev wan parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ifb4wan
