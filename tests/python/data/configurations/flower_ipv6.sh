tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit prio 1
tc filter add dev eth0 parent 1: protocol ip prio 1 flower ip_proto udp dst_port 53 classid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 prio 2 flower ip_proto udp dst_port 53 classid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 prio 3 flower ip_proto icmpv6 classid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 prio 4 flower dst_ip 2001:db8::/32 classid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 prio 5 u32 match ip6 dport 22 0xffff flowid 1:10
