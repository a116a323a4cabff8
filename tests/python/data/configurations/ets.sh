tc qdisc add dev eth0 root handle 1: ets bands 4 strict 2 quanta 3000 1500
