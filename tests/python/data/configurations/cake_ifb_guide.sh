#!/bin/bash
set -e
ip link add name ifb0 type ifb || true
ip link set dev ifb0 up
tc qdisc del dev enp3s0 root 2>/dev/null || true
tc qdisc add dev enp3s0 root cake bandwidth 20Mbit pppoe-ptm ether-vlan nat
tc qdisc add dev enp3s0 handle ffff: ingress
tc filter add dev enp3s0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root cake bandwidth 75Mbit pppoe-ptm ether-vlan nat ingress
