#!/bin/sh
IF=eth0.2
UP=18000
DOWN=$((UP * 5))
tc qdisc replace dev $IF root cake bandwidth ${UP}kbit diffserv3 nat dual-srchost ack-filter docsis
tc qdisc replace dev ifb4$IF root cake bandwidth ${DOWN}kbit diffserv4 nat dual-dsthost wash ingress docsis
tc filter add dev $IF ingress matchall action mirred egress redirect dev ifb4$IF
