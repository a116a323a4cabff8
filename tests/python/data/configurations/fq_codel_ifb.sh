sudo tc qdisc add dev eth0 root handle 1: htb default 1
sudo tc class add dev eth0 parent 1: classid 1:1 htb rate 4mbit
sudo tc qdisc add dev eth0 parent 1:1 fq_codel quantum 300 target 8ms interval 100ms noecn
sudo tc qdisc add dev ifb0 root handle 1: htb default 1
sudo tc class add dev ifb0 parent 1: classid 1:1 htb rate 24mbit
sudo tc qdisc add dev ifb0 parent 1:1 fq_codel
