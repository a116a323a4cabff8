# The dumbbells S1, S2, S3 and S5 for ns-2.35: long TCP flows, and a UDP stream if asked, over one
# bottleneck.
#
#   senders --(access)-- r1 --(bottleneck)-- r2 --(access)-- receivers
#
# ns-2 at its best: only the packet headers needed and no traces. It has neither CoDel nor FQ-CoDel:
# PI and DRR stand in. Arguments are key=value pairs; these are the defaults.
array set o {
  rate 100Mb access 1Gb queue DropTail limit 1000 flows 1 rttMin 100 rttMax 100 rttClasses 1
  time 60 cbr none scheduler Splay monitor 0
}
foreach word $argv {
  set at [string first = $word]
  set o([string range $word 0 [expr {$at - 1}]]) [string range $word [expr {$at + 1}] end]
}

remove-all-packet-headers
add-packet-header IP TCP Flags RTP   ;# Agent/UDP writes into RTP's
set ns [new Simulator]
$ns use-scheduler $o(scheduler)

Agent/TCP set packetSize_ 1460       ;# and 40 of headers: 1500 on the wire
Agent/TCP set window_ 100000
Agent/TCP set maxburst_ 0
Agent/TCP set timestamps_ true
Agent/TCP set windowInit_ 10
Agent/TCP set windowInitOption_ 1
Agent/TCP set overhead_ 0
Agent/TCP set minrto_ 0.2
Agent/TCP set tcpTick_ 0.001
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCPSink set ts_echo_rfc1323_ true   ;# TCP/Linux needs it

set r1 [$ns node]
set r2 [$ns node]
# A quarter of the smallest RTT lies in the bottleneck, the rest before it.
set within [expr {$o(rttMin) / 4.0}]
set behind 0.1
$ns simplex-link $r1 $r2 $o(rate) ${within}ms $o(queue)
$ns simplex-link $r2 $r1 $o(rate) ${within}ms DropTail
$ns queue-limit $r1 $r2 $o(limit)
$ns queue-limit $r2 $r1 1000000
set queue [[$ns link $r1 $r2] queue]
if {$o(queue) eq "PI"} {
  foreach {key value} {
    bytes_ false queue_in_bytes_ false setbit_ false mean_pktsize_ 1500
    qref_ 50 a_ 1.822e-5 b_ 1.816e-5 w_ 170
  } { $queue set $key $value }
}
if {$o(queue) eq "DRR"} {
  $queue mask 1
  $queue buckets 1024
  $queue blimit [expr {$o(limit) * 1500}]
  $queue quantum 1500
}
# Counting departures costs time: a timed run does without. The simulation is the same.
if {$o(monitor)} { set counts [$ns monitor-queue $r1 $r2 ""] }

set pairs $o(rttClasses)
if {$o(cbr) ne "none"} { incr pairs }
for {set i 0} {$i < $pairs} {incr i} {
  set rtt $o(rttMin)
  if {$i > 0 && $i < $o(rttClasses)} {
    set rtt [expr {$rtt + ($o(rttMax) - $rtt) * double($i) / ($o(rttClasses) - 1)}]
  }
  set before [expr {$rtt / 2.0 - $within - $behind}]
  set sender($i) [$ns node]
  set receiver($i) [$ns node]
  $ns duplex-link $sender($i) $r1 $o(access) ${before}ms DropTail
  $ns duplex-link $r2 $receiver($i) $o(access) ${behind}ms DropTail
  foreach {from to} [list $sender($i) $r1 $r1 $sender($i) $r2 $receiver($i) $receiver($i) $r2] {
    $ns queue-limit $from $to 10000000
  }
}

set rng [new RNG]
$rng seed 1
set jitter [new RandomVariable/Uniform]
$jitter use-rng $rng
$jitter set min_ 0
$jitter set max_ 0.1
for {set flow 0} {$flow < $o(flows)} {incr flow} {
  set pair [expr {$flow % $o(rttClasses)}]
  set tcp [new Agent/TCP/Linux]
  set sink [new Agent/TCPSink/Sack1]
  $tcp set fid_ $flow
  $ns attach-agent $sender($pair) $tcp
  $ns attach-agent $receiver($pair) $sink
  $ns connect $tcp $sink
  $ns at 0 "$tcp select_ca cubic"
  set ftp [new Application/FTP]
  $ftp attach-agent $tcp
  $ns at [expr {$o(flows) == 1 ? 0 : [$jitter value]}] "$ftp start"
}
if {$o(cbr) ne "none"} {
  set udp [new Agent/UDP]
  $udp set packetSize_ 1500
  $udp set fid_ $o(flows)
  set null [new Agent/Null]
  $ns attach-agent $sender($o(rttClasses)) $udp
  $ns attach-agent $receiver($o(rttClasses)) $null
  $ns connect $udp $null
  set stream [new Application/Traffic/CBR]
  $stream set packetSize_ 1500
  $stream set rate_ $o(cbr)
  $stream attach-agent $udp
  $ns at 0 "$stream start"
}
$ns at $o(time) {
  if {$o(monitor)} {
    puts "delivered=[$counts set pdepartures_] drops=[$counts set pdrops_]"
  }
  exit 0
}
$ns run
