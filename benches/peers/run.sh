#!/usr/bin/env bash
# Runs S1, S2, S3 and S5 on ns-3, ns-2 and Sojourn, one after another on one CPU, and prints
# thousand data packets delivered per CPU second with Sojourn's ratio to each.
#
# usage: run.sh [SCENARIO ...]
#
# RUNS=n: the best of n runs of ns-3 and ns-2, default 1; CPU=n: the processor, default 0; BENCH=PROGRAM: a
# built sojourn-bench, default: one without a profile. Without arguments, also writes target/peers.json.
#
# Installs Debian's ns3, libns3-dev and ns2 where they are absent. S4 is left out: ns-3 needs hours
# and ns-2, once it loses packets in a window of 200,000, does not get through it either.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=benches/peers
cpu=${CPU:-0} runs=${RUNS:-1}
built=target/peers
mkdir -p "$built"

if ! command -v ns >/dev/null || [ ! -e /usr/include/ns3/core-module.h ]; then
  root=
  [ "$(id -u)" = 0 ] || root=sudo
  $root apt-get update -q
  $root apt-get install -y -q --no-install-recommends g++ ns3 libns3-dev ns2
fi
if [ ! "$built/dumbbell" -nt "$here/dumbbell.cc" ]; then
  modules=(applications internet point-to-point traffic-control network core bridge stats)
  g++ -std=c++17 -O2 "$here/dumbbell.cc" -o "$built/dumbbell" "${modules[@]/#/-lns3-}"
fi
if [ -z "${BENCH:-}" ]; then
  cargo build --release --quiet -p sojourn-bench
fi
bench=${BENCH:-${CARGO_TARGET_DIR:-target}/release/sojourn-bench}

# CPU seconds of the best of $runs runs of a command; what it printed goes to $out.
out=$(mktemp)
trap 'rm -f "$out"' EXIT
cpu_seconds() {
  local best= took TIMEFORMAT='%U %S'
  for _ in $(seq "$runs"); do
    took=$({ time taskset -c "$cpu" "$@" >"$out" 2>/dev/null; } 2>&1 | awk '{print $1 + $2}')
    best=$(awk -v a="$took" -v b="$best" 'BEGIN { print (b == "" || a < b) ? a : b }')
  done
  echo "$best"
}
field() { sed -n "s/.*$1[=:]\"\{0,1\}\([0-9.]*\).*/\1/p" "$out"; }
thousands() { awk -v n="$1" -v s="$2" 'BEGIN { printf "%.1f", n / s / 1000 }'; }

ns3() {
  local seconds
  seconds=$(cpu_seconds "$built/dumbbell" "$@")
  thousands "$(field delivered)" "$seconds"
}
ns2() {
  local seconds
  ns "$here/dumbbell.tcl" "$@" monitor=1 >"$out" 2>/dev/null
  local delivered
  delivered=$(field delivered)
  seconds=$(cpu_seconds ns "$here/dumbbell.tcl" "$@")
  thousands "$delivered" "$seconds"
}
sojourn() {
  local best=0
  # Of short runs more are needed to meet one that nothing disturbed.
  for _ in 1 2 3 4 5; do
    taskset -c "$cpu" "$bench" --one "$1" >"$out"
    best=$(awk -v a="$(field '"delivered_per_cpu_s"')" -v b="$best" 'BEGIN { a /= 1000; printf "%.0f", (a > b) ? a : b }')
  done
  echo "$best"
}

rows=
printf '%-4s %10s %22s %22s   (thousand packets per CPU second)\n' '' sojourn 'ns-3 3.37' 'ns-2 2.35'
for scenario in "${@:-S1 S2 S3 S5}"; do
  for s in $scenario; do
    case $s in
      S1)
        a=$(ns3 --flows=1 --rate=100Mbps --access=1Gbps --rttMin=100 --qdisc=CoDel --limit=1000p --time=60)
        b=$(ns2 queue=PI flows=1 rate=100Mb access=1Gb rttMin=100 limit=1000 time=60)
        ;;
      S2)
        a=$(ns3 --flows=4 --rate=10Mbps --access=100Mbps --rttMin=50 --qdisc=Fifo --limit=127p --time=140 --buffer=2097152)
        b=$(ns2 flows=4 rate=10Mb access=100Mb rttMin=50 limit=127 time=140)
        ;;
      S3)
        a=$(ns3 --flows=30 --rate=1Gbps --access=10Gbps --rttMin=120 --qdisc=CoDel --limit=1000p --time=20 --buffer=8388608)
        b=$(ns2 queue=PI flows=30 rate=1Gb access=10Gb rttMin=120 limit=1000 time=20)
        ;;
      S5)
        a=$(ns3 --flows=100 --rate=100Mbps --access=1Gbps --rttMin=20 --rttMax=100 --rttClasses=5 --cbr=10Mbps --qdisc=FqCoDel --limit=10240p --time=60 --buffer=1048576)
        b=$(ns2 scheduler=Calendar queue=DRR flows=100 rate=100Mb access=1Gb rttMin=20 rttMax=100 rttClasses=5 cbr=10Mb limit=1000 time=60)
        ;;
      *)
        echo "$s: no such scenario (S1 S2 S3 S5)" >&2
        exit 2
        ;;
    esac
    ours=$(sojourn "$s")
    awk -v s="$s" -v o="$ours" -v a="$a" -v b="$b" 'BEGIN {
      printf "%-4s %10.0f %12.0f (x%6.1f) %12.0f (x%6.1f)\n", s, o, a, o / a, b, o / b
    }'
    rows+="${rows:+, }\"$s\": {\"sojourn\": $ours, \"ns3\": $a, \"ns2\": $b}"
  done
done
if [ $# = 0 ]; then
  echo "{\"peers\": {$rows}}" >target/peers.json
fi
