# One class in each direction, as SQM's simplest.qos.
tc qdisc add dev eth1 root handle 1: htb default 10
tc class add dev eth1 parent 1: classid 1:10 htb quantum 1514 rate 9500kbit ceil 9500kbit burst 1749b cburst 1749b prio 0
tc qdisc add dev eth1 parent 1:10 handle 110: fq_codel limit 1001 noecn flows 1024
tc qdisc add dev ifb4eth1 root handle 1: htb default 10
tc class add dev ifb4eth1 parent 1: classid 1:10 htb quantum 1514 rate 45mbit ceil 45mbit burst 5625b cburst 5625b prio 0
tc qdisc add dev ifb4eth1 parent 1:10 handle 110: fq_codel limit 1001 ecn flows 1024
