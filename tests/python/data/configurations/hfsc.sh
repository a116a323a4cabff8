tc qdisc add dev eth0 root handle 1: hfsc default 1
tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate 10mbit ul rate 10mbit
