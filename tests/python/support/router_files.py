"""Configurations of routers, and output of ``tc``, for tests of ``sojourn advise``."""

SQM = """
config queue 'eth1'
\toption enabled '1'
\toption interface 'eth1'
\toption download '14400'
\toption upload '900'
\toption qdisc 'cake'
\toption script 'piece_of_cake.qos'
\toption linklayer 'atm'
\toption overhead '40'
\toption squash_dscp '0'
\toption eqdisc_opts 'nat dual-srchost'
"""
TC_CAKE = """
qdisc noqueue 0: dev lo root refcnt 2
qdisc cake 8009: dev eth1 root refcnt 2 bandwidth 900Kbit besteffort dual-srchost nat nowash \
no-ack-filter split-gso rtt 100ms atm overhead 40
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
qdisc ingress ffff: dev eth1 parent ffff:fff1 ----------------
qdisc cake 800a: dev ifb4eth1 root refcnt 2 bandwidth 14400Kbit besteffort triple-isolate nat \
nowash no-ack-filter split-gso rtt 100ms atm overhead 40
"""
TC_HTB = """
qdisc htb 1: dev eth1 root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 ver 3.17
 linklayer atm overhead 26 mtu 2047 tsize 512
qdisc fq_codel 110: dev eth1 parent 1:10 limit 1001p flows 1024 quantum 300 target 14ms \
interval 109ms memory_limit 4Mb drop_batch 64
class htb 1:10 parent 1:1 leaf 110: prio 0 rate 900Kbit ceil 900Kbit burst 1599b cburst 1599b
class htb 1:1 root rate 900Kbit ceil 900Kbit burst 1599b cburst 1599b
"""
TC_CAKE_LAN = (
    TC_CAKE.replace("eth1", "eth0").replace("900Kbit", "5Mbit").replace("14400Kbit", "50Mbit")
)
UCI = (
    "config queue '{0}'\n option enabled 1\n option interface {0}\n option upload {1}\n"
    " option script simplest.qos\n"
)
