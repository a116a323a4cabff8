"""The command as users meet it: pipes, terminals, exit codes, Ctrl-C."""

import codecs
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import typer

import sojourn as sj
from sojourn import _core
from sojourn.cli import progress as progress_module
from sojourn.cli.app import app
from sojourn.cli.progress import RunProgress, Work
from support.refusals import VALID, refused
from support.shell import Command, environment, shell

QUICK = ["--duration", "8s", "--warmup", "6s", "--replications", "2", "--link", "10/1mbit"]


@pytest.fixture(scope="module")
def file(scenario: sj.Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario file."""
    path = tmp_path_factory.mktemp("scenarios") / "small.toml"
    path.write_text(scenario.to_toml(), encoding="utf-8")
    return path


def test_compare_prints_one_row_an_arm_and_the_rest_on_request(sojourn: Command) -> None:
    done = sojourn("compare", "pfifo", "fq_codel", *QUICK)
    assert done.returncode == 0, done.stderr
    answer, empty, *lines = done.stdout.splitlines()
    assert (answer, empty) == ("Too few runs to judge: 2 runs per arm; expected at least 5.", "")
    assert lines[0] == "rrul_be 10/1mbit: means of 2 runs ± half the 95 % interval"
    assert lines[2].split()[0] == "arm"
    assert [line.split()[0] for line in lines[3:5]] == ["pfifo", "fq_codel"]
    assert re.fullmatch(
        r"--all: \d+ more metrics, and the differences from pfifo", " ".join(lines[6:])
    )
    assert "\x1b" not in done.stdout
    _, _, *lines = sojourn("compare", "pfifo", "fq_codel", *QUICK, "--all").stdout.splitlines()
    assert lines[0] == "rrul_be 10/1mbit"
    assert lines[5] == "difference from pfifo, paired by replication"
    groups = lines.index("rrul_be 10/1mbit: traffic groups")
    rows = [line.split()[:2] for line in lines[groups + 2 : groups + 4]]
    assert rows == [["tcp", "up"], ["tcp", "up"]]
    assert "traffic groups: difference from pfifo, paired by replication" in lines


def test_arms_without_classes_have_no_rows_of_dashes(sojourn: Command) -> None:
    done = sojourn("compare", "fq_codel", "dualpi2", "dualpi2 target 20ms", *QUICK, "--all")
    assert "up: C" in done.stdout
    assert "difference from fq_codel, paired by replication" in done.stdout
    assert "classes of queues: difference from fq_codel" not in done.stdout
    done = sojourn("compare", "dualpi2", "fq_codel", "dualpi2 target 20ms", *QUICK, "--all")
    compared = done.stdout.split("classes of queues: difference from dualpi2")[1]
    rows = [re.split(r"  +", line)[:2] for line in compared.split("\n\n")[0].splitlines()[2:]]
    assert ["up: C", "dualpi2 target 20ms"] in rows
    assert {arm for _, arm in rows} == {"dualpi2 target 20ms"}


def test_strict_makes_an_error_of_validity_the_exit_code(sojourn: Command, tmp_path: Path) -> None:
    # Calls fill no queue.
    idle = ["compare", "pfifo", "fq_codel", *QUICK, "--traffic", "voip"]
    idle += ["--out", str(tmp_path / "kept"), "--report", str(tmp_path / "page.html")]
    done = sojourn(*idle)
    assert done.returncode == 0
    assert "error: pfifo: no link was a bottleneck" in done.stderr
    done = sojourn(*idle, "--strict", "--force")
    assert done.returncode == 4
    assert "error: pfifo: no link was a bottleneck" in done.stderr
    assert "voip" in done.stdout
    assert (tmp_path / "page.html").is_file()
    kept = ["report", str(tmp_path / "kept"), "--report", str(tmp_path / "again.html")]
    assert sojourn(*kept).returncode == 0
    assert sojourn(*kept, "--strict").returncode == 4
    assert sojourn("compare", "pfifo", *QUICK, "--strict").returncode == 0


def test_the_title_names_the_values_that_were_changed(sojourn: Command, file: Path) -> None:
    done = sojourn("run", str(file), "-s", "links.up.rate=5mbit", "-s", "replications=1")
    assert done.stdout.splitlines()[2] == "small (links.up.rate=5mbit, replications=1): 1 run"


def test_the_backend_is_chosen_by_name_and_help_lists_the_names(
    sojourn: Command, file: Path
) -> None:
    names = _core.backend_names()
    done = sojourn("run", str(file), "-s", "replications=1", "--on", names[0])
    assert done.returncode == 0, done.stderr
    assert done.stdout == sojourn("run", str(file), "-s", "replications=1").stdout
    for command in ("run", "compare"):
        described = " ".join(sojourn(command, "--help-all").stdout.replace("│", " ").split())
        assert (
            f"Where the runs are executed: {', '.join(names)}. [default: {names[0]}]" in described
        )


def test_json_holds_the_summary_the_runs_and_the_provenance(sojourn: Command, file: Path) -> None:
    done = sojourn("run", str(file), "--json", "-s", "replications=2", "--seed", "9")
    document = json.loads(done.stdout)
    assert document["seed"] == 9
    assert (document["finished_runs"], document["total_runs"]) == (4, 4)
    assert len(document["runs"]) == 4
    assert {row["arm"] for row in document["summary"]} == {"fifo", "fq"}
    assert document["validity"]["verdict"] in {"valid", "weak"}


def test_results_and_reports_are_written_where_asked(
    sojourn: Command, file: Path, tmp_path: Path
) -> None:
    done = sojourn("run", str(file), "--out", "kept", "--report", "pages/one.html")
    assert done.returncode == 0, done.stderr
    assert sj.Result.load(tmp_path / "kept").complete
    assert (tmp_path / "pages" / "one.html").read_text(encoding="utf-8").startswith("<!doctype")
    again = sojourn("report", "kept", "--report", "again.html")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.html").exists()


def test_run_takes_the_number_of_replications(sojourn: Command, file: Path) -> None:
    done = sojourn("run", str(file), "--replications", "2", "--dry-run")
    assert "replications: 2)" in done.stdout
    assert sojourn("run", str(file), "--replications", "0").returncode == 2


def test_help_has_a_short_option_and_shows_flags_without_a_type(sojourn: Command) -> None:
    for command in ([], ["run"], ["compare"], ["report"], ["reproduce"]):
        described = sojourn(*command, "--help").stdout
        assert described == sojourn(*command, "-h").stdout
        assert "--help" in described
        assert "bool" not in described.lower()


def test_the_generated_scenario_gives_what_the_flags_gave(sojourn: Command, tmp_path: Path) -> None:
    flags = ["compare", "pfifo", "codel target 13ms", *QUICK]
    written = sojourn(*flags, "--generate").stdout
    assert tomllib.loads(written)["replications"] == 2
    (tmp_path / "same.toml").write_text(written, encoding="utf-8")
    assert sojourn("run", "same.toml").stdout == sojourn(*flags).stdout


def test_a_dry_run_says_what_would_run_and_writes_nothing(sojourn: Command, tmp_path: Path) -> None:
    done = sojourn("compare", *QUICK, "--out", "kept", "--dry-run")
    assert "8 runs of 8 s (arms: 4, replications: 2)" in done.stdout
    assert "estimate: at most " in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_rate_in_bytes_per_second_is_read_as_tc_does_and_warned_of(sojourn: Command) -> None:
    done = sojourn("compare", "pfifo", "--link", "10mbps", "--dry-run")
    assert done.returncode == 0
    assert "10mbps is a rate in bytes per second, as in tc: 80 Mbit/s" in done.stderr
    assert done.stdout.startswith("rrul_be 80 Mbit/s: ")
    assert "10MBps is a rate in" in sojourn("compare", "--link", "10MBps", "--dry-run").stderr
    done = sojourn("compare", "cake bandwidth 5mbps", "--link", "10/2mbps", "--dry-run")
    for rate, megabits in (("10mbps", 80), ("2mbps", 16), ("5mbps", 40)):
        text = f"warning: {rate} is a rate in bytes per second, as in tc: {megabits} Mbit/s\n"
        assert done.stderr.count(text) == 1


def test_overrides_in_bytes_per_second_are_warned_of(sojourn: Command, file: Path) -> None:
    changes = ["links.up.rate=5mbps", "links.down.qdisc=cake bandwidth 300kBps"]
    more = [word for change in changes for word in ("-s", change)]
    done = sojourn("run", str(file), "--dry-run", *more)
    assert done.returncode == 0
    assert "warning: 5mbps is a rate in bytes per second, as in tc: 40 Mbit/s\n" in done.stderr
    assert "warning: 300kBps is a rate in bytes per second, as in tc: 2.4 Mbit/s\n" in done.stderr
    quiet = sojourn("run", str(file), "--dry-run", "-s", "links.up.rate=5mbit")
    assert "bytes per second" not in quiet.stderr


@pytest.mark.parametrize(
    "traffic",
    [
        "rrul",
        "rrul_be",
        "tcp_1up",
        "tcp_1down",
        "tcp_4up",
        "tcp_2up_2down",
        "rtt_fair",
        "udp_flood",
    ],
)
def test_every_named_traffic_runs(sojourn: Command, traffic: str) -> None:
    done = sojourn("compare", "pfifo", "--traffic", traffic, *QUICK)
    assert done.returncode == 0, done.stderr
    assert "induced latency [ms]" in done.stdout


def test_every_queue_of_the_list_is_described(
    sojourn: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    known = json.loads(sojourn("qdiscs", "--json").stdout)
    assert {"pfifo", "codel", "fq_codel", "pie", "red", "sfq"} <= {entry["name"] for entry in known}
    listed = sojourn("qdiscs").stdout
    for entry in known:
        assert entry["name"] in listed
        # In this process: forty commands would take half a minute.
        app(["qdiscs", entry["name"]], standalone_mode=False)
        page = capsys.readouterr().out
        assert all(item["key"] in page for item in entry["parameters"])


# Modules that no command of the test below needs: polars takes 0.2 s, the others hundredths.
SLOW = {
    *("polars", "numpy", "matplotlib", "scipy", "loky", "rich.progress", "pydantic"),
    *("sojourn.presentation.figure", "sojourn.presentation.html"),
    *("sojourn.queues.fair", "sojourn.controls.classes", "sojourn.sweeps"),
}


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("--version", 10),
        ("--help", 10),
        ("qdiscs", 95),
        ("compare --help", 100),
        ("compare codel fq_codel --duration 16s -s replications=2", 100),
        ("compare codel fq_codel --duration 16s -s replications=2 --json", 100),
        ("run examples/web.sojourn.toml --dry-run", 100),
    ],
)
def test_the_command_imports_only_what_it_needs(command: str, most: int) -> None:
    # The numbers of our own modules are those measured, rounded up.
    program = (
        f"import sys; sys.argv = ['sojourn', *{command.split()}]\n"
        "from sojourn.cli import main\n"
        f"print(main(), {SLOW} & set(sys.modules), sep=',')\n"
        "print(sum(name.partition('.')[0] == 'sojourn' for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    outcome, modules = done.stdout.splitlines()[-2:]
    assert outcome == "0,set()"
    assert int(modules) <= most


def test_the_summary_of_a_command_is_that_of_its_function() -> None:
    root = typer.main.get_command(app)
    for command in root.commands.values():  # type: ignore[attr-defined]
        assert (command.load().help or "").startswith(command.help), command.name


def test_version_and_help_go_to_stdout(sojourn: Command) -> None:
    assert re.fullmatch(r"sojourn \d+\.\d+\.\d+ \(\S+\)\n", sojourn("--version").stdout)
    assert "compare" in sojourn().stdout
    assert "--traffic" in sojourn("compare", "--help").stdout


def terminal(
    arguments: list[str], folder: Path, extra: dict[str, str], *, until: str = ""
) -> tuple[int, str]:
    """Run the command on a terminal; interrupt it once its output matches `until`."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "sojourn", *arguments],
        cwd=folder,
        env=environment() | extra,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = ""
    interrupted = not until
    # A read may end within a character.
    decoder = codecs.getincrementaldecoder("utf-8")()
    while True:
        try:
            seen += decoder.decode(os.read(ours, 65536))
        except OSError:  # What Linux says when the other end of a terminal has closed.
            break
        if not interrupted and re.search(until, seen):
            process.send_signal(signal.SIGINT)
            interrupted = True
    os.close(ours)
    return process.wait(timeout=60), seen


def unstyled(text: str) -> str:
    """Remove styles and moves of the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*\w", "", text)


def test_a_terminal_gets_borders_and_colour_and_no_color_takes_the_colour(tmp_path: Path) -> None:
    arguments = ["compare", "pfifo", "fq_codel", *QUICK, "--all"]
    code, coloured = terminal(arguments, tmp_path, {})
    assert code == 0
    assert "┃" in coloured
    _, plain = terminal(arguments, tmp_path, {"NO_COLOR": "1"})
    assert "┃" in plain
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_terminal_gets_the_answer_in_twelve_lines(tmp_path: Path, width: int) -> None:
    arguments = ["compare", "pfifo", "codel", "pie", "fq_codel target 13ms", *QUICK[:-4]]
    arguments += ["--replications", "5"]
    _, printed = terminal(arguments, tmp_path, {"NO_COLOR": "1", "COLUMNS": f"{width}"})
    # The progress bar comes before the answer.
    lines = unstyled(printed[printed.index("With ") :]).splitlines()
    first = lines[: next(n for n, line in enumerate(lines) if line.startswith("--all"))]
    assert len(first) <= 13
    assert first[-1] == ""
    assert max(map(len, lines)) <= width
    title = next(n for n, line in enumerate(first) if line.startswith("rrul_be"))
    assert "a ping under load takes" in " ".join(first[:title])
    rows = [re.split(r"  +", line) for line in first if re.match(r"pfifo|codel|pie|fq_codel", line)]
    assert [row[0] for row in rows] == ["pfifo", "codel", "pie", "fq_codel target 13ms"]
    # Latency and goodput come first; a wider terminal has more columns.
    assert re.match(r" +induced latency +goodput (down|up) +goodput (up|down)", first[title + 1])
    assert len(rows[0]) == {80: 4, 120: 6, 200: 6}[width]


def test_a_zero_in_one_arm_does_not_rank_above_goodput_and_latency(sojourn: Command) -> None:
    """The pacing of CAKE loses a packet of the initial window of each of these connections."""
    arguments = ["compare", "pfifo", "cake", *QUICK[:6], "--traffic", "tcp_2up"]
    printed = sojourn(*arguments, "--link", "50/10mbit").stdout
    heads = printed.split("\npfifo")[0]
    assert heads.index("induced latency") < heads.index("goodput up") < heads.index("RTT")


def test_a_narrow_terminal_gets_drops_and_marks_of_classes(tmp_path: Path) -> None:
    arguments = ["compare", "dualpi2 any_ect", "cake diffserv4", *QUICK, "--all"]
    _, whole = terminal(arguments, tmp_path, {"NO_COLOR": "1", "COLUMNS": "80"})
    classes = unstyled(whole).split("classes of queues", 1)[1].splitlines()
    assert {"drops", "marks"} <= {word for line in classes for word in line.split()}
    assert max(map(len, classes)) <= 80


def test_ctrl_c_keeps_what_has_finished_and_says_so(tmp_path: Path) -> None:
    arguments = ["compare", "pfifo", "fq_codel", "--duration", "60s", "--replications", "2000"]
    code, seen = terminal([*arguments, "--out", "kept"], tmp_path, {}, until=r"[1-9]\d*/4000")
    assert code == 130
    kept = re.search(r"interrupted: saved (\d+) of 4000 runs to kept", seen)
    assert kept is not None, seen[-400:]
    assert sj.Result.load(tmp_path / "kept").finished == int(kept[1])
    assert "Traceback" not in seen


def test_ctrl_c_before_anything_has_finished_leaves_nothing(tmp_path: Path) -> None:
    arguments = ["compare", "--link", "1gbit", "--duration", "20000s", "--replications", "1"]
    arguments += ["--out", "kept"]
    code, seen = terminal(arguments, tmp_path, {}, until=r"0:00:01")
    assert code == 130
    assert "interrupted" in seen
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_closes_the_pipe_early_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m sojourn qdiscs --json | head -1"
    done = shell(command, tmp_path)
    assert done.stdout == "[\n"
    assert done.stderr == ""


def piped(text: bytes, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "sojourn", "run", "-", *arguments],
        input=text,
        cwd=cwd,
        env=environment(),
        capture_output=True,
        timeout=100,
        check=False,
    )


def test_a_scenario_comes_from_standard_input(sojourn: Command, tmp_path: Path) -> None:
    short = [*QUICK, "--traffic", "tcp_1up"]
    generated = sojourn("compare", "codel", *short, "--generate")
    done = piped(generated.stdout.encode(), "--json", cwd=tmp_path)
    direct = sojourn("compare", "codel", *short, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(direct.stdout)


def test_traces_of_standard_input_are_relative_to_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_text("1\n2\n")
    text = b"""
duration = "2s"
rtt = "20ms"
links.up = {trace = "a.trace", qdisc = "codel"}
links.down = {rate = "10mbit", qdisc = "pfifo"}
traffic = [{type = "tcp", direction = "up"}]
"""
    assert piped(text, "--dry-run", cwd=tmp_path).returncode == 0
    assert b"a.trace" in piped(text, "--dry-run", cwd=tmp_path.parent).stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"duration = ", b"sojourn: standard input: invalid TOML: "),
        (b"\xff", b"sojourn: standard input: not valid UTF-8 at byte 0; expected TOML in UTF-8"),
        (b"#" * 16_000_001, b"sojourn: standard input: too large; expected TOML of at most 16"),
    ],
)
def test_standard_input_that_is_no_scenario_is_refused(
    text: bytes, message: bytes, tmp_path: Path
) -> None:
    done = piped(text, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_progress_estimates_the_remaining_time_of_runs_under_way() -> None:
    now: list[float] = [0.0]
    seen: list[str] = []
    work = Work(runs=4, expected_s=50.0, current=lambda finished: ("codel", "pie")[finished % 2])
    progress = RunProgress(work, lambda one: seen.append(one.line), clock=lambda: now[0])
    progress.reached(0.0)
    now[0] = 3.0
    progress.tick()
    progress.reached(0.05)
    now[0] = 20.0
    progress(1, 4)
    progress(4, 4)
    assert seen == [
        "0/4, about 50 s left, codel",
        "0/4, about 47 s left, codel",
        "0/4, about 57 s left, codel",
        "1/4, about 60 s left, 3 runs/min, pie",
        "4/4, 12 runs/min",
    ]


def test_stored_runs_do_not_make_the_estimate_shorter() -> None:
    now: list[float] = [0.0]
    seen: list[str] = []
    work = Work(runs=100, expected_s=100.0)
    progress = RunProgress(work, lambda one: seen.append(one.line), clock=lambda: now[0])
    progress.stored(90)
    progress(90, 100)
    now[0] = 4.0
    progress(92, 100)
    assert seen == ["90/100, about 10 s left", "92/100, about 16 s left, 30 runs/min"]


def test_plain_lines_appear_while_a_long_run_reports_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "LINE_S", 0.02)
    monkeypatch.setattr(progress_module, "TICK_S", 0.01)
    with progress_module.progress_bar(Work(runs=2, expected_s=100.0)):
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert lines[0] == "runs: 0/2, about 100 s left"


def test_a_long_first_run_shows_the_total_and_an_estimate(tmp_path: Path) -> None:
    long = ["--link", "100mbit", "--duration", "3600s", "--replications", "2"]
    code, output = terminal(
        ["compare", "codel", *long], tmp_path, {"NO_COLOR": "1"}, until=r"about \d+ \w+ left"
    )
    assert code == 130
    assert "0/2" in output
    assert "/?" not in output


ANSWERS = {
    "run": (["run", "FILE"], r"Too few runs to judge: 2 runs per arm"),
    "advise": (
        ["advise", "cake", "--preset", "vdsl", "--shares", "95"],
        r"Set +SQM +to +cake: ",
    ),
    "sweep": (["sweep", "FILE", "-p", "rtt=20ms,60ms"], r"[\w ]+ in \S+: from .* to "),
    "test": (["test", "FILE"], r"2 passed, 0 failed"),
    "tune": (
        ["tune", "FILE", "--arm", "fq", "--objective", "min ping_ms_p99", "-p", "rtt=20ms,60ms"],
        r"Proposed: rtt=",
    ),
    "rfc7928": (["rfc7928", "codel", "--section", "5.1.1"], r"states 1 direction: 1 confirmed"),
    "rfc9743": (["rfc9743", "reno", "--section", "5.2", "-s", "replications=2"], r"reno: of \d+"),
}


@pytest.mark.parametrize("width", [80, pytest.param(120, marks=pytest.mark.slow), 200])
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(name, marks=pytest.mark.slow if name in {"advise", "rfc9743"} else [])
        for name in ANSWERS
    ],
)
def test_the_answer_comes_in_the_first_twelve_lines(
    scenario: sj.Scenario, tmp_path: Path, command: str, width: int
) -> None:
    expected = '\n[[expect]]\nthat = "ping_ms_p99 < 4000"\n'
    (tmp_path / "FILE").write_text(scenario.to_toml() + expected, encoding="utf-8")
    words, answer = ANSWERS[command]
    few = ["--trials", "3"] if command == "tune" else ["--replications", "2"]
    code, seen = terminal(
        [*words, *(few if not command.startswith("rfc") else [])],
        tmp_path,
        {"NO_COLOR": "1", "COLUMNS": f"{width}"},
    )
    assert code in {0, 1}, seen
    # Lines of progress are drawn over.
    lines = [line.split("\r")[-1] for line in unstyled(seen).replace("\r\n", "\n").splitlines()]
    kept = [line for line in lines if not line.startswith("runs ")]
    assert re.search(answer, " ".join(kept[:12])), "\n".join(kept[:20])


def test_several_arms_run_in_the_given_order(tmp_path: Path, sojourn: Command) -> None:
    arms = "".join(f'[[arms]]\nname = "{name}"\n' for name in "abc")
    (tmp_path / "s.toml").write_text(VALID + arms, encoding="utf-8")
    done = sojourn("run", "s.toml", "--arm", "c", "--arm", "a", "--arm", "c", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "\narms: c, a\n" in done.stdout
    refused(
        sojourn("run", "s.toml", "--arm", "a", "--arm", "x", "--dry-run"),
        2,
        "^sojourn: --arm x: unknown arm; expected one of a, b, c$",
    )


def test_ecn_applies_to_media(sojourn: Command) -> None:
    done = sojourn("compare", "codel", "--traffic", "media", "--ecn", "--generate")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('ecn = "classic"') == 2


def test_the_help_of_live_names_the_capture(sojourn: Command) -> None:
    assert "--pcap" in sojourn("live", "--help").stdout
