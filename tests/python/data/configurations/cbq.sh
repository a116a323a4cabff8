tc qdisc add dev eth0 root handle 1: cbq avpkt 1000 bandwidth 10mbit
