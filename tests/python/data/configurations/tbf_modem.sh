# A modem with a deep queue: the token bucket of the tbf manual.
tc qdisc add dev ppp0 root handle 1: tbf rate 220kbit latency 50ms burst 1540
