tc qdisc replace dev eth0 root fq_codel limit 2000 ce_threshold 1ms
