tc qdisc add dev pppoe-wan root cake bandwidth 36000kbit besteffort nat overhead 34 mpu 0 ptm
tc qdisc add dev pppoe-wan handle ffff: ingress
tc qdisc add dev ifb4pppoe-wan root cake bandwidth 95000kbit besteffort nat wash ingress overhead 34 mpu 0 ptm
tc filter add dev pppoe-wan parent ffff: protocol all prio 10 matchall action mirred egress redirect dev ifb4pppoe-wan
