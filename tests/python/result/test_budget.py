"""Memory: estimated before a run, refused if it is too much, and never a failed allocation."""

import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.cli.app import app
from sojourn.result import budget
from support.refusals import VALID, refused
from support.shell import Command, environment
from support.stored import study

# The address space of the commands: Python and polars reserve more than they use.
ADDRESS_SPACE = 5 << 30

LINKS = """
rtt = "20ms"
links.up = { rate = "1mbit", qdisc = "%s" }
links.down = { rate = "1mbit", qdisc = "codel" }
"""
FLOOD = 'traffic = [{ type = "udp", direction = "up", rate = "10gbit", payload = "1b" }]\n'
TCP = '{ type = "tcp", direction = "up" }'
DEEP = LINKS % "pfifo limit 100000000"
NESTED = LINKS % "drr classes 16384 leaf fq_codel flows 65536"
PLAIN = LINKS % "pfifo"


def limited(
    folder: Path, text: str, *more: str, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a scenario with little address space: a failed allocation ends the process."""
    (folder / "limited.toml").write_text(text, encoding="utf-8")
    words = [sys.executable, "-m", "sojourn", "run", "limited.toml", "--jobs", "1", *more]
    return little(words, folder, timeout=timeout)


def little(words: list[str], folder: Path, *, timeout: float) -> subprocess.CompletedProcess[str]:
    """Run a command with little address space."""
    return subprocess.run(
        words,
        cwd=folder,
        env=environment() | {"POLARS_MAX_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE,) * 2),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


REFUSED = [
    (f'duration = "10s"\n{DEEP}{FLOOD}', "duration: too long for the rates"),
    (
        f'duration = "4s"\n{DEEP}{FLOOD}',
        (
            r'links\.up\.qdisc: "pfifo limit 100000000" lets \d+ packets wait \(13\.0 GB\); '
            r"all runs may take 1[3-6]\.\d GB; the limit is .* [MG]B, 80 % of "
        ),
    ),
    (f'keep_events = true\nduration = "100s"\n{PLAIN}{FLOOD}', "duration: too long"),
    (
        f'keep_events = true\nduration = "4s"\n{PLAIN}{FLOOD}',
        "keep_events: too many events: up to 4000000001 .*; expected at most 50000000",
    ),
    (
        f'keep_events = true\nduration = "40ms"\nsample = "10ms"\n{PLAIN}{FLOOD}',
        r"keep_events: 40000001 events per run",
    ),
    (
        f'duration = "1s"\n{NESTED}traffic = [{TCP}]\n',
        r"links\.up\.qdisc: drr: leaf creates queues for \d+ flows in all; expected at most",
    ),
    (
        f'duration = "1s"\n{PLAIN}traffic = [{TCP[:-1]}, count = 10000000 }}]\n',
        r"traffic\[0\]\.count: 10000000 is out of range; expected .* 1 to 100000",
    ),
    (
        (f'duration = "1s"\nreplications = 100000\n{PLAIN}traffic = [{TCP[:-1]}, count = 40 }}]\n'),
        r"replications: the totals of every run are kept",
    ),
    (
        (
            f'duration = "4s"\n{PLAIN}traffic = [{{ type = "udp", direction = "up", '
            'rate = "900mbit", payload = "1b", rtt = "1000s" }]\n'
        ),
        "rtt: too long for the rates: .* packets could be on the way",
    ),
    (
        f'duration = "1000s"\nsample = "100us"\n{PLAIN}traffic = [{TCP}]\n',
        "sample: 30000003 rows of series per run",
    ),
    (
        (
            f'duration = "1000s"\n{PLAIN}traffic = [{{ type = "sessions", direction = "up", '
            'every = "100us", bytes = "1kb" }]\n'
        ),
        r"traffic\.every: 10000001 connections per run",
    ),
]


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> list[SimpleNamespace]:
    """What one command after the other says in a process with little address space."""
    folder = tmp_path_factory.mktemp("refused")
    names = [f"limited{number}.toml" for number in range(len(REFUSED))]
    for name, (text, _) in zip(names, REFUSED, strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    code = (
        "import sys\n"
        "from sojourn.cli import app\n"
        f"for name in {names}:\n"
        "    sys.argv = ['sojourn', 'run', name, '--jobs', '1']\n"
        "    print(app.execute(), flush=True)\n"
        "    print(end='\\0', file=sys.stderr, flush=True)\n"
    )
    done = little([sys.executable, "-c", code], folder, timeout=60)
    codes = map(int, done.stdout.split())
    said = done.stderr.split("\0")[:-1]
    pairs = zip(codes, said, strict=True)
    return [SimpleNamespace(returncode=code, stdout="", stderr=text) for code, text in pairs]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_does_not_fit_is_refused_before_it_runs(
    refusals: list[SimpleNamespace], number: int
) -> None:
    assert len(refusals) == len(REFUSED)
    refused(refusals[number], 2, REFUSED[number][1])


@pytest.mark.parametrize(
    "text",
    [
        # A ping every 23 days for a year: the grid of the induced latency follows the replies.
        (
            'duration = "31536000s"\nsample = "31536000s"\n'
            'links.up = { rate = "10mbit", qdisc = "red limit 1073741824b bandwidth 16bit" }\n'
            'links.down = "unlimited"\nrtt = "20ms"\n'
            'traffic = [{ type = "ping", direction = "up", interval = "2000000s" }, '
            '{ type = "udp", direction = "up", rate = "1kbit", stop = "9s" }]\n'
        ),
        f'duration = "1s"\nsample = "1s"\n{PLAIN}traffic = [{TCP[:-1]}, count = 20000 }}]\n',
        f'duration = "1s"\nreplications = 500\n{PLAIN}traffic = [{TCP}]\n',
    ],
    ids=["a year", "20000 flows", "500 replications"],
)
def test_what_fits_runs_to_its_end(tmp_path: Path, text: str) -> None:
    done = limited(tmp_path, text)
    assert done.returncode == 0, done.stderr[-2_000:]


@pytest.mark.slow
def test_many_links_run_or_are_refused(tmp_path: Path) -> None:
    def scenario(number: int) -> str:
        links = (f'links.l{n} = {{ rate = "1mbit", qdisc = "codel" }}' for n in range(number))
        names = "\n".join(links)
        return f'duration = "1s"\nsample = "1s"\n{PLAIN}{names}\ntraffic = [{TCP}]\n'

    assert limited(tmp_path, scenario(1_000)).returncode == 0
    refused(
        limited(tmp_path, scenario(20_000)), 2, "links: 20002 links .*; the limit is .*, 80 % of"
    )


def test_the_check_itself_takes_little_memory() -> None:
    code = (
        "import resource, sys, sojourn as sj\n"
        "from sojourn import _core\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "scenario = sj.Scenario.from_toml(sys.stdin.read())\n"
        "_core.estimate(scenario.checked)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    text = f'duration = "1s"\n{PLAIN}traffic = [{TCP[:-1]}, count = 100000 }}]\n'
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=text,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 300_000, "kilobytes"


def traced(key: str, unit: str) -> str:
    """Write a trace of this key with many points."""
    text = ", ".join(f"{n * 50}us {1 + n % 7}{unit}" for n in range(200_000))
    return f'{key} = {{ points = "{text}", period = "10s" }}'


# The estimate of these takes more than the process itself.
MEASURED = {
    "points": 'duration = "10s"\nsample = "1s"\nreplications = 4\nrtt = "20ms"\n'
    f'links.up = {{ rate = "1mbit", qdisc = "pfifo", {traced("delay_trace", "ms")} }}\n'
    f'links.down = {{ qdisc = "pfifo", {traced("rate_trace", "mbit")} }}\n'
    f"traffic = [{TCP}]\n",
    "waiting": 'duration = "4s"\n'
    + DEEP
    + 'traffic = [{ type = "udp", direction = "up", rate = "10mbit", payload = "1b" }]\n',
    "events": 'keep_events = true\nduration = "3s"\n'
    + PLAIN
    + 'traffic = [{ type = "udp", direction = "up", rate = "4mbit", payload = "1b" }]\n',
    "series": f'duration = "700s"\nsample = "1ms"\n{PLAIN}traffic = [{TCP}]\n',
    "pings": 'duration = "1000s"\nsample = "100s"\n'
    + PLAIN
    + 'traffic = [{ type = "ping", direction = "up", interval = "1ms" }]\n',
    "runs": 'duration = "1s"\nreplications = 1500\n' + PLAIN + f"traffic = [{TCP}]\n",
    "tables": 'duration = "1s"\nsample = "1s"\n'
    + PLAIN
    + "".join(f'links.l{n} = {{ rate = "1mbit", qdisc = "fq_codel" }}\n' for n in range(2_000))
    + f"traffic = [{TCP}]\n",
    "flows": f'duration = "2s"\nsample = "2s"\n{PLAIN}traffic = [{TCP[:-1]}, count = 50000 }}]\n',
}
# The estimate is at most this many times what a run takes.
FACTOR = 5


# Those that `make test` measures.
QUICK = ("points", "waiting", "series", "runs")


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[] if one in QUICK else [pytest.mark.slow]) for one in MEASURED],
)
def test_the_estimate_is_an_upper_bound_and_not_far_from_what_a_run_takes(name: str) -> None:
    code = (
        "import json, re, sys, sojourn as sj\n"
        "from pathlib import Path\n"
        "from sojourn import _core\n"
        "scenario = sj.Scenario.from_toml(sys.stdin.read())\n"
        "result = sj.run(scenario, jobs=1)\n"
        "result.summary(), result.validity\n"
        # Not `ru_maxrss`: it starts with the memory of the process that started this one.
        "status = Path('/proc/self/status').read_text()\n"
        "print(re.search(r'VmHWM:\\s*(\\d+) kB', status)[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=MEASURED[name],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    taken = int(done.stdout) * 1_024
    scenario = sj.Scenario.from_toml(MEASURED[name])
    estimated = json.loads(_core.estimate(scenario.checked, jobs=1))["peak_memory_bytes"]
    assert taken <= estimated <= FACTOR * taken, (taken, estimated)


# Queues that keep memory which no estimate includes.
HOARD = """
import re
import sys
from collections import deque
from pathlib import Path

import sojourn as sj


class Hoard(sj.PythonQueue):
    def __init__(self):
        self.packets, self.kept = deque(), []

    def enqueue(self, now, packet):
        self.kept.append(bytes(%s))
        self.packets.append(packet)

    def dequeue(self, now):
        return self.packets.popleft() if self.packets else None


def run(duration, jobs=1):
    scenario = sj.Scenario(
        links={
            "up": sj.Link(rate="100mbit", qdisc=Hoard),
            "down": sj.Link(rate="1mbit", qdisc="pfifo"),
        },
        traffic=[sj.Udp(direction="up", rate="90mbit")],
        rtt="20ms",
        duration=duration,
        replications=jobs,
    )
    sj.run(scenario, max_memory="300mb", jobs=jobs)


def peak():
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]


if __name__ == "__main__":
    run("1ms")
    print(peak())
    try:
        run("60s", int(sys.argv[1]))
    except sj.ScenarioError as error:
        print(error)
    print(peak())
"""
STOPPED = r"stopped at \d+\.\d{3} s of 60 s: %s needs (\d+\.\d) MB%s; expected more "
# 300 MiB.
ALLOWED = 300 * 1_024


def hoarded(folder: Path, kept: int, jobs: int) -> tuple[int, str, int]:
    """Return the peak in kB after a short run, the error of runs that hoard, and their peak."""
    (folder / "hoard.py").write_text(HOARD % kept, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "hoard.py", f"{jobs}"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    empty, message, peak = done.stdout.splitlines()
    return int(empty), message, int(peak)


@pytest.mark.parametrize("kept", [2_000, 20_000])
def test_a_run_stops_before_it_takes_more_memory_than_it_may(tmp_path: Path, kept: int) -> None:
    empty, message, peak = hoarded(tmp_path, kept, 1)
    start = r"max_memory='300mb': too little for arm \"default\", replication 0, "
    assert re.match(start + STOPPED % ("the process", ""), message), message
    # Memory above the 150 MiB of Python and its libraries did not count.
    assert peak <= 1.05 * ALLOWED + max(0, empty - 150 * 1_024)
    assert peak > 0.95 * ALLOWED


def test_runs_on_processes_share_the_memory(tmp_path: Path) -> None:
    _, message, _ = hoarded(tmp_path, 2_000, 2)
    expected = STOPPED % ("a worker process", r", more than its share of (\d+\.\d) MB")
    found = re.search(expected, message)
    assert found is not None, message
    needed, share = map(float, found.groups())
    # What this process (150 MiB) and the helpers of workers (20 MiB) leave, and the tables.
    left = (300 - 150 - 20) * 1.048576
    assert 0.9 * left < 2 * share < left
    # A worker is stopped at its share; both are rounded.
    assert share <= needed < 1.05 * share


# The estimate of these runs is not checked.
UNCHECKED = """
import sys
from sojourn.cli import app
from sojourn.result import budget

budget.check = lambda *_, **__: None
sys.exit(app.execute())
"""


def test_a_stopped_command_keeps_its_finished_runs(tmp_path: Path) -> None:
    rate = "traffic[0].rate"
    (tmp_path / "flood.toml").write_text(
        f'duration = "2s"\n{DEEP}traffic = [{{ type = "udp", direction = "up", '
        'rate = "1mbit", payload = "1b" }]\n',
        encoding="utf-8",
    )

    def unchecked(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", UNCHECKED, *words],
            cwd=tmp_path,
            env=environment() | {"SOJOURN_STORE": f"{tmp_path / 'store'}"},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    low = ("--max-memory", "300mb", "--out", "kept")
    both = ("--replications", "2", "--jobs", "2")
    done = unchecked("run", "flood.toml", "-s", f"{rate}=30mbit", *both, *low)
    start = r'--max-memory 300mb: too little for arm "default", replication [01], stopped at '
    needs = r"\d\.\d{3} s of 2 s: the process needs \d{3}\.\d MB for 2 runs at once; expected"
    refused(done, 2, start + needs)
    assert not (tmp_path / "kept").exists()
    points = ("sweep", "flood.toml", "-p", f"{rate}=1mbit,2mbit,30mbit", "--jobs", "1")
    done = unchecked(*points, *low)
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, ""), lines
    assert re.match(r"sojourn: --max-memory 300mb: too little for .* stopped at ", lines[-1])
    assert not (tmp_path / "kept").exists()
    done = unchecked(*points, "--max-memory", "2gb", "--out", "kept")
    assert done.returncode == 0, done.stderr
    assert "2 runs of 3 were stored" in done.stderr
    assert (tmp_path / "kept").exists()


def test_the_limit_of_a_thread_does_not_end_that_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[int | None] = []
    monkeypatch.setattr(_core, "limit_memory", limits.append)

    def other() -> None:
        with budget.enforced("4gb"):
            pass

    with budget.enforced("300mb"):
        thread = Thread(target=other)
        thread.start()
        thread.join()
    assert limits == [300 << 20, 300 << 20, 300 << 20, None]


def test_a_default_limit_is_named_where_runs_exceed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "default_max_memory", lambda: 10**9)

    def stopped() -> None:
        error = _core.ScenarioError("")
        error.path = "max_memory"
        error.problem = "x: a worker process needs 60000000 bytes, more than its share of 5 bytes"
        with budget.enforced(None):
            raise error

    start = "^x: a worker process needs 60.0 MB, more than its share of 0.0 kB; "
    with pytest.raises(sj.ScenarioError, match=f"{start}the limit is 1.0 GB, 80 % of the .*; exp"):
        stopped()


def test_the_limit_can_be_set(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(VALID, encoding="utf-8")
    assert sojourn("run", "small.toml", "--max-memory", "1gb").returncode == 0
    done = sojourn("run", "small.toml", "--max-memory", "100mb")
    refused(done, 2, r"--max-memory 100mb: too little for .*; all runs may take 1\d\d\.\d MB")
    refused(sojourn("run", "small.toml", "--max-memory", "x"), 2, r"--max-memory x: not a size")
    refused(sojourn("compare", "--max-memory", "100mb"), 2, "--max-memory 100mb: too little")
    scenario = sj.Scenario.from_toml(VALID)
    with pytest.raises(sj.ScenarioError, match=r"^max_memory='100mb': too little for"):
        sj.run(scenario, max_memory="100mb")


def test_a_study_is_checked_before_its_first_run(sojourn: Command, tmp_path: Path) -> None:
    study(tmp_path, replications=1)
    big = f'duration = "4s"\n{DEEP}{FLOOD}'
    place = tmp_path / "papers" / "small"
    (place / "more.toml").write_text(big, encoding="utf-8")
    claims = (place / "claims.csv").read_text(encoding="utf-8")
    more = "B,Fig. 2,text,delay,more,default,,sojourn_ms_mean,at_least,,0,,\n"
    (place / "claims.csv").write_text(claims + more, encoding="utf-8")
    arguments = ("reproduce", "small", "--papers", "papers", "--out", "kept", "--max-memory")
    expected = r"--max-memory 300mb: too little for links\.up\.qdisc: .*; all runs of more may take"
    refused(sojourn(*arguments, "300mb"), 2, expected)
    refused(sojourn(*arguments, "x"), 2, r"--max-memory x: not a size")
    assert not (tmp_path / "kept").exists()
    (place / "claims.csv").write_text(claims, encoding="utf-8")
    assert sojourn(*arguments, "300mb").returncode == 0


def test_a_study_that_may_take_too_much_memory_is_refused(tmp_path: Path) -> None:
    study(tmp_path, replications=1)
    flood = f'duration = "4s"\narms = [{{ name = "fifo" }}]\n{DEEP}{FLOOD}'
    (tmp_path / "papers" / "small" / "many.toml").write_text(flood, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sojourn", "reproduce", "small", "--papers", "papers"],
        cwd=tmp_path,
        env=environment() | {"POLARS_MAX_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE,) * 2),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    refused(done, 2, r"links\.up\.qdisc .*; all runs of many may take .*; the limit is .*, 80 % of")


def test_a_refused_run_leaves_no_directory(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(VALID, encoding="utf-8")
    places = ("--out", "kept/here", "--report", "pages/of/mine.html")
    done = sojourn("run", "small.toml", *places, "--max-memory", "100mb")
    refused(done, 2, "--max-memory 100mb: too little")
    done = sojourn("run", "small.toml", *places[2:], "--out", "small.toml")
    refused(done, 3, "small.toml: cannot be written")
    done = sojourn("run", "small.toml", "--report", "pages/of/mine.toml")
    refused(done, 3, "a report is HTML")
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_a_dry_run_estimates(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(VALID, encoding="utf-8")
    done = sojourn("run", "small.toml", "--dry-run")
    assert done.returncode == 0
    assert "estimate: at most 8,2" in done.stdout, done.stdout
    assert "MB of memory" in done.stdout
    document = json.loads(sojourn("run", "small.toml", "--dry-run", "--json").stdout)
    estimate = document["estimate"]
    # 10 Mbit/s for 5 s in frames of 1514 B are 4128, a quarter is sent again, 1000 wait, and 1000
    # acknowledgements of 2000.
    assert 4_128 * 1.25 + 3_000 <= estimate["packets"] <= 4_128 * 1.25 + 3_100
    assert estimate["refused"] is None
    assert estimate["cpu_s"] > 0
    assert estimate["peak_memory_bytes"] < estimate["max_memory_bytes"]


@pytest.mark.skipif("live" not in _core.backend_names(), reason="no live runs")
def test_a_dry_run_of_live_runs_states_real_time_and_packet_buffers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.toml").write_text(VALID, encoding="utf-8")

    def dry(*, as_json: bool) -> str:
        file = tmp_path / "small.toml"
        words = ["run", f"{file}", "--replications", "3", "--on", "live", "--dry-run"]
        assert app([*words, "--json"] if as_json else words, standalone_mode=False) == 0
        return capsys.readouterr().out

    expected = "estimate: 15 s in real time, run after run; at most 270 MB of memory for packets\n"
    assert expected in dry(as_json=False)
    estimate = json.loads(dry(as_json=True))["estimate"]
    assert (estimate["runs"], estimate["real_s"]) == (3, 15)
    assert estimate["peak_memory_bytes"] == sum(part["bytes"] for part in estimate["memory"])
    # What only the simulator has.
    assert [estimate[name] for name in ("packets", "events", "cpu_s")] == [None] * 3


def test_a_dry_run_shows_no_digits_of_a_tiny_time(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(VALID, encoding="utf-8")
    tiny = ["run", "small.toml", "--dry-run", "-s", "duration=300ms", "-s", "warmup=100ms"]
    assert (
        "; less than 0.01 s of CPU time, less than 0.01 s on 1 processor; " in sojourn(*tiny).stdout
    )
    long = sojourn("run", "small.toml", "--dry-run", "-s", "duration=1000s")
    assert re.search(r"; about \d\S* s of CPU time, about \d\S* s on ", long.stdout), long.stdout


def test_a_dry_run_is_refused_as_the_run_is(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(VALID, encoding="utf-8")
    much = ["run", "small.toml", "--max-memory", "100mb"]
    message = r"sojourn: --max-memory 100mb: too little for .*; expected more memory or .*\n"
    assert re.fullmatch(message, sojourn(*much).stderr)
    dry = sojourn(*much, "--dry-run")
    assert dry.returncode == 2
    assert re.fullmatch(message, dry.stderr)
    assert "estimate: at most" in dry.stdout
    dry = sojourn(*much, "--dry-run", "--json")
    assert dry.returncode == 2
    assert dry.stderr == f"sojourn: {json.loads(dry.stdout)['estimate']['refused']}\n"


def test_a_link_without_traffic_is_noted(sojourn: Command, tmp_path: Path) -> None:
    idle = VALID + '[links.wdn]\nrate = "1mbit"\nqdisc = "pfifo"\n'
    (tmp_path / "idle.toml").write_text(idle, encoding="utf-8")
    done = sojourn("run", "idle.toml", "--dry-run")
    assert "note: links.wdn: no traffic crosses this link\n" in done.stderr


SERIES = """
name = "series"
duration = "60s"
warmup = "10s"
rtt = "20ms"
links.up = { rate = "1mbit", qdisc = "codel" }
links.down = { rate = "2mbit", qdisc = "codel" }
traffic = [
    { type = "tcp", direction = "up", count = 8 },
    { type = "tcp", direction = "down", count = 8 },
    { type = "ping", direction = "up", interval = "50ms" },
]
"""


@pytest.mark.slow
def test_the_estimate_of_many_runs_is_what_the_command_uses(tmp_path: Path) -> None:
    (tmp_path / "series.toml").write_text(SERIES, encoding="utf-8")
    used, estimated = [], []
    # With fewer runs the command has not yet used what its threads keep.
    for runs in (120, 620):
        words = [sys.executable, "-m", "sojourn", "run", "series.toml", "--replications", f"{runs}"]
        # A process starts with the peak of the one that starts it: that must be a small one.
        starter = (
            "import resource, subprocess, sys\n"
            "subprocess.run(sys.argv[1:], capture_output=True, check=True)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", starter, *words],
            cwd=tmp_path,
            env={**environment(), "SOJOURN_STORE": f"{tmp_path / 'store'}"},
            capture_output=True,
            check=True,
        )
        used.append(int(done.stdout) * 1024)
        scenario = sj.Scenario.from_toml(SERIES).replace(replications=runs)
        estimate = json.loads(_core.estimate(scenario.checked, stored=True))
        estimated.append(estimate["peak_memory_bytes"])
    # Per run: the memory of the program differs between machines.
    assert 0.5 < (used[1] - used[0]) / (estimated[1] - estimated[0]) < 1.3
    assert used[1] < 1.3 * estimated[1]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_large_result_is_announced_before_the_runs(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[str, ...],
) -> None:
    file = tmp_path / "my small.toml"
    file.write_text(VALID, encoding="utf-8")
    words = ["run", f"{file}", "--replications", "2", *more]
    needed = json.loads(
        _core.estimate(sj.Scenario.from_toml(VALID).replace(replications=2).checked)
    )["peak_memory_bytes"]

    def warned(*options: str) -> list[str]:
        assert app([*words, *options], standalone_mode=False) == 0
        lines = capsys.readouterr().err.splitlines()
        return [line for line in lines if "of memory" in line]

    monkeypatch.setattr(budget, "machine_bytes", lambda: int(needed * 4.1))
    assert warned() == []
    monkeypatch.setattr(budget, "machine_bytes", lambda: int(needed * 3.9))
    assert warned("--max-memory", "1gb") == []
    (line,) = warned()
    size = f"{needed / 1e9:.2g}"
    assert line == (
        f"warning: 2 runs and their tables need up to {size} GB of memory; sojourn sweep keeps "
        "only one row per run"
    )


def test_the_memory_of_the_machine_is_known() -> None:
    total = budget.machine_bytes()
    assert total is not None
    meminfo = Path("/proc/meminfo").read_text(encoding="utf-8")
    assert total == int(re.search(r"MemTotal:\s+(\d+) kB", meminfo)[1]) * 1024  # type: ignore[index]
