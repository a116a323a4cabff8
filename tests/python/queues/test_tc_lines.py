"""Lines for ``tc``: the ``tc`` of this machine accepts every line that a command prints."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.advice import lines as advice
from sojourn.advice.access import access
from sojourn.advice.candidates import candidates
from sojourn.search.settings import settings

# Every queue of `tc`, at its defaults and with options whose spelling or unit differs there.
QUEUES = (
    "pfifo",
    "pfifo limit 30p",
    "bfifo limit 15kb",
    "pfifo_head_drop",
    "pfifo_fast",
    "red ecn nodrop adaptive",
    "ared",
    "red limit 500k min 30k max 90k burst 60 harddrop bandwidth 8mbit",
    "choke ecn min 5 max 20",
    "codel target 12500us ecn ce_threshold 1ms",
    "codel target 5000",
    "pie target 20ms tupdate 30ms ecn bytemode dq_rate_estimator profile linux",
    "pie",
    "fq_codel quantum 300b memory_limit 4mb noecn",
    "fq_codel limit 10240p ce_threshold 800us drop_batch 16",
    "fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3",
    "fq_nocodel",
    "fq_pie quantum 300 ecn_prob 5 ecn nodq_rate_estimator memory_limit 1mb",
    "sfq perturb 10s quantum 1514b headdrop",
    "sfq depth 100 flows 512 limit 2000",
    "fq maxrate 20mbit refill_delay 20ms nopacing",
    "fq quantum 3028b initial_quantum 15140b low_rate_threshold 1mbit",
    "prio",
    "prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1",
    "sfb rehash 600s db 60s target 40 penalty_rate 5",
    "cake",
    "cake bandwidth 18mbit diffserv8 dual-srchost nat wash ack-filter-aggressive regional ingress",
    "cake bandwidth 950kbit besteffort flowblind atm overhead -4 mpu 64 memlimit 2mb",
    "cake bandwidth 2mbit pppoe-ptm ether-vlan",
    "cake bandwidth 9mbit docsis",
    "cake raw overhead 20",
    "cake ptm",
)
# iproute2 6.1 does not have it. Debian's sid does (7.3.0 in November 2026); in an empty folder,
# which leaves the packages of the machine alone:
#
#   key=/usr/share/keyrings/debian-archive-keyring.gpg
#   echo "deb [signed-by=$key] http://deb.debian.org/debian sid main" > list
#   apt="-o Dir::Etc::SourceList=$PWD/list -o Dir::Etc::SourceParts=/dev/null"
#   apt="$apt -o Dir::State::Lists=$PWD/lists"
#   mkdir -p lists/partial
#   apt-get $apt update
#   apt-get $apt download iproute2 libc6 libbpf1 libelf1t64 libmnl0 libcap2 libxtables12 zlib1g \
#     libzstd1
#   for file in *.deb; do dpkg -x $file .; done
#   lib=$PWD/usr/lib/x86_64-linux-gnu
#   echo '#!/bin/sh' > tc
#   echo "exec $lib/ld-linux-x86-64.so.2 --library-path $lib $PWD/usr/sbin/tc" '"$@"' >> tc
#   chmod +x tc
#   export SOJOURN_TC=$PWD/tc
NEWER = (
    "dualpi2",
    "dualpi2 classic_protection 20% drop_enqueue nodrop_on_overload any_ect",
    "dualpi2 max_rtt 100ms min_qlen_step 2 step_thresh 500us memlimit 1mb",
)
# What `tc` itself refuses reads otherwise; the kernel may lack a queue or a classifier.
ACCEPTED = re.compile(
    r"Error: (Specified qdisc kind is unknown|TC classifier not found|Failed to find specified "
    r"qdisc|Cannot find.*)\.?|We have an error talking to the kernel|"
)


def refused(lines: Sequence[str], tc: str = "tc") -> dict[str, list[str]]:
    """Give lines to ``tc`` in a network namespace; return what it says against them."""
    missing = [name for name in (tc, "ip", "unshare") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {missing[0]}: lines for tc are not checked")
    probe = ["unshare", "-n", "ip", "link", "add", "wan", "type", "ifb"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("no network namespace with a device of type ifb: lines for tc are not checked")
    script = ["exec 2>&1", "ip link add wan type ifb", "ip link set wan up", "set -f"]
    for line in lines:
        script += [f"echo '> {line}'", re.sub(r"^tc ", f"{tc} ", line)]
    command = ["unshare", "-n", "sh", "-c", "\n".join(script)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    answers = [part.splitlines() for part in said.split("> ")[1:]]
    assert [answer[0] for answer in answers] == list(lines)
    bad = {first: [s for s in rest if not ACCEPTED.fullmatch(s)] for first, *rest in answers}
    return {line: found for line, found in bad.items() if found}


def at_root(queue: str) -> str:
    return f"tc qdisc replace dev wan root {_core.tc_line(queue, 20_000_000)}"


def test_tc_accepts_the_line_of_every_queue() -> None:
    known = {queue.split()[0] for queue in (*QUEUES, *NEWER)} | {"cake_mq"}
    without = {"floq": "no such queue", "drr": "several commands", "htb": "several commands"}
    for kind in {kind["name"] for kind in json.loads(_core.qdisc_catalogue())} - known:
        with pytest.raises(sj.ScenarioError, match=without.get(kind, "no such queue")):
            _core.tc_line(kind)
    assert refused([at_root(queue) for queue in QUEUES]) == {}


def test_a_line_that_tc_refuses_is_found() -> None:
    wrong = [f"tc qdisc replace dev wan root {it}" for it in ("sfq perturb 10s", "choke limit 9")]
    assert list(refused(wrong)) == wrong


@pytest.mark.slow
def test_a_newer_tc_accepts_the_lines_of_dualpi2() -> None:
    tc = os.environ.get("SOJOURN_TC", "tc")
    if (
        "dualpi2"
        not in subprocess.run(
            [tc, "qdisc", "add", "dev", "none", "root", "dualpi2", "help"],
            capture_output=True,
            text=True,
            check=False,
        ).stderr.partition("Usage")[2]
    ):
        pytest.skip(f"{tc} does not have dualpi2; SOJOURN_TC names a newer one")
    assert refused([at_root(queue) for queue in NEWER], tc) == {}


@pytest.mark.parametrize("queue", [*advice.LINUX, "sfq perturb 10s", "fq_codel quantum 300b"])
def test_tc_accepts_the_lines_of_advice(queue: str) -> None:
    link = access(link="16/1mbit", layer_name="pppoe-atm")
    chosen = candidates(link, queues=[queue], shares=[90])[1]
    text = advice.lines(link, chosen, "wan")[0].text
    assert refused(text.splitlines()) == {}


def test_tc_accepts_the_lines_of_settings() -> None:
    ranges = {
        "up": ("sfq perturb 10s", "limit", 300),
        "down": ("cake bandwidth 5mbit overhead 44b", "mpu", "84b"),
    }
    scenario = sj.Scenario(
        links={name: sj.Link(rate="20mbit", qdisc=queue) for name, (queue, *_) in ranges.items()},
        traffic=[sj.Tcp(direction="up")],
        duration="10s",
    )
    values = {f"links.{name}.qdisc.{key}": value for name, (_, key, value) in ranges.items()}
    found = settings(scenario, values)
    assert len(found.tc) == len(ranges)
    assert found.not_in_tc == []
    lines = [re.sub(r"\$(UP|DOWN)", "wan", line) for line in found.tc]
    assert refused(lines) == {}
    links = {**scenario.links, "up": sj.Link(rate="1mbit", qdisc="floq")}
    other = settings(scenario.replace(links=links), {"links.up.qdisc.limit": 40})
    assert (other.tc, other.not_in_tc) == ([], ["floq: tc has no such queue"])
