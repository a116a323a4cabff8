for i in 1 2 3; do
tc class add dev eth0 parent 1: classid 1:$i htb rate 1mbit
done
tc qdisc add dev eth0 root handle 1: htb
