"""Signals, closed pipes and closed streams: how the command ends, how soon, and what it says."""

import json
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from sojourn import _core
from support.shell import environment, shell
from support.stored import COMMAND, scenario_file, segments


@pytest.mark.parametrize("moment", [0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6])
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_imports_ends_the_command(
    tmp_path: Path, moment: float, by: signal.Signals
) -> None:
    process = subprocess.Popen(
        [*COMMAND, "run", "-"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Python itself has no handler for the first hundredths of a second.
    wait_for_handler(process.pid, by)
    time.sleep(moment)
    # It waits for the end of standard input.
    assert process.poll() is None
    process.send_signal(by)
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert process.returncode == 128 + by, err


DURING_PARSING = """
import os, signal, sys
from sojourn.cli import main
from sojourn.cli.commands import Group

parsed = Group.make_context

def interrupted(*args, **options):
    os.kill(os.getpid(), signal.SIGTERM)
    return parsed(*args, **options)

Group.make_context = interrupted
sys.argv = ["sojourn", "qdiscs"]
sys.exit(main())
"""


def test_a_signal_while_arguments_are_parsed_gives_its_own_code() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DURING_PARSING], capture_output=True, text=True, check=False
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr == "sojourn: interrupted\n"


def test_a_signal_in_code_of_a_string_gives_its_own_code(tmp_path: Path) -> None:
    # As imports of modules with data classes: CPython ends a module by SIGINT then.
    code = DURING_PARSING.replace("os.kill(", 'exec("os.kill(').replace("TERM)", 'TERM)")', 1)
    (tmp_path / "in_a_string.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "in_a_string"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr == "sojourn: interrupted\n"


def wait_for_handler(pid: int, by: signal.Signals) -> None:
    """Wait until a process handles a signal itself."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        caught = int(re.findall(r"SigCgt:\s*(\w+)", status)[0], 16)
        # Python handles SIGINT from the start; the command handles SIGTERM too.
        if caught >> (signal.SIGTERM - 1) & 1 and caught >> (by - 1) & 1:
            return
        time.sleep(0.001)


def test_the_handler_is_there_before_the_libraries() -> None:
    program = "import sys, sojourn.cli; print(len(sys.modules), 'polars' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[1] == "False"


@pytest.mark.parametrize(("what", "reader"), [("first line", "head -1"), ("nothing", "true")])
def test_a_closed_pipe_is_no_error_and_keeps_the_notices(
    tmp_path: Path, store: Path, what: str, reader: str
) -> None:
    file = scenario_file(tmp_path, replications=1)
    line = f"{' '.join(COMMAND)} run {file} --json | {reader}"
    done = shell(line, tmp_path)
    assert done.returncode in {0, 141}, f"{what}: {done.stderr}"
    assert "Traceback" not in done.stderr
    assert "warning: n = 1: differences may be due to chance" in done.stderr
    assert segments(store) == []


@pytest.mark.parametrize("command", ["", "compare --help"])
def test_help_into_a_closed_pipe_is_no_error(tmp_path: Path, command: str) -> None:
    line = f"set -o pipefail; {' '.join(COMMAND)} {command} | true"
    done = shell(line, tmp_path)
    assert done.returncode in {0, 141}, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize(
    "closed",
    [">&-", "<&-", "2>&-", ">&- 2>&-", ">&- 2>&- <&-", "2>/dev/full", "2> >(exec 0<&-; sleep 1)"],
)
def test_closed_standard_streams_are_no_error(tmp_path: Path, store: Path, closed: str) -> None:
    file = scenario_file(tmp_path, replications=1)
    line = f"{' '.join(COMMAND)} run {file} --out kept {closed}"
    done = shell(line, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    manifest = json.loads((tmp_path / "kept" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["complete"]
    assert segments(store) == []


@pytest.mark.parametrize(("more", "code"), [("2>/dev/full", 2), ("2>&-", 2), (">/dev/full", 2)])
def test_an_error_that_cannot_be_printed_keeps_its_exit_code(
    tmp_path: Path, more: str, code: int
) -> None:
    line = f"{' '.join(COMMAND)} run nowhere.toml {more}"
    done = shell(line, tmp_path)
    assert done.returncode == code, done.stderr


def test_output_that_cannot_be_written_is_an_error_of_the_environment(
    tmp_path: Path, store: Path
) -> None:
    file = scenario_file(tmp_path, replications=1)
    line = f"{' '.join(COMMAND)} run {file} --out kept --json >/dev/full"
    for more, said in (("", "sojourn: output: No space left on device\n"), ("2>/dev/full", "")):
        done = shell(f"{line} --force {more}", tmp_path)
        assert done.returncode == 3, done.stderr
        assert done.stderr.endswith(said)
        assert json.loads((tmp_path / "kept" / "manifest.json").read_text("utf-8"))["complete"]
    # The tables were printed nowhere: the runs stay in the store, and the second command used them.
    assert len(segments(store)) == 1


def test_characters_that_the_terminal_lacks_are_escaped(tmp_path: Path) -> None:
    file = scenario_file(tmp_path, replications=2)
    done = shell(f"PYTHONIOENCODING=ascii {' '.join(COMMAND)} run {file}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert r"\xb1" in done.stdout
    line = f"SOJOURN_STORE=$(printf 'b\\xff') {' '.join(COMMAND)} store ls"
    done = shell(line, tmp_path)
    assert done.stdout == "run store b\\udcff: no runs\n", done.stderr


BLOCKED = textwrap.dedent("""
    import sys
    from sojourn.cli import process

    process.install()
    from sojourn import _core

    text = 'duration = "20000s"\\nlinks.up = { rate = "1gbit", qdisc = "pfifo" }'
    text += '\\nlinks.down = "unlimited"\\ntraffic = [{ type = "tcp", direction = "up" }]'
    scenario = _core.Scenario.from_toml(text)
    process.on_exit("what is said", patient=sys.argv[1] == "patient")
    process.ready()
    print("ready", flush=True)
    _core.run_one(scenario, 0)  # Asks nobody whether to go on.
""")


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_call_that_does_not_return(by: signal.Signals) -> None:
    code, err, elapsed = blocked("impatient", by)
    assert (code, err) == (128 + by, "sojourn: what is said\n")
    assert 0.5 < elapsed < 2.5


def test_a_second_signal_ends_what_the_first_waits_for() -> None:
    code, err, elapsed = blocked("patient", signal.SIGINT, wait_s=2.0)
    assert (code, err) == (130, "sojourn: what is said\n")
    assert elapsed > 2.0, "the first signal waits for an orderly end"


def blocked(how: str, by: signal.Signals, *, wait_s: float = 0.0) -> tuple[int, str, float]:
    """Signal a process that is inside a long call, twice if `wait_s` is given."""
    with subprocess.Popen(
        [sys.executable, "-c", BLOCKED, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        sent = time.monotonic()
        process.send_signal(by)
        if wait_s:
            time.sleep(wait_s)
            process.send_signal(by)
        _, err = process.communicate(timeout=30)
        return process.returncode, err, time.monotonic() - sent


@pytest.mark.slow
def test_ctrl_c_ends_a_scenario_of_20000_links(tmp_path: Path, store: Path) -> None:
    links = "\n".join(f'[links.l{n}]\nrate = "1mbit"\nqdisc = "pfifo"' for n in range(20_000))
    traffic = '[[traffic]]\ntype = "ping"\npath = ["l1"]\n'
    (tmp_path / "many.toml").write_text(f'duration = "100s"\n{traffic}{links}', encoding="utf-8")
    for moment in (1.0, 3.0, 6.0):
        process = subprocess.Popen(
            [*COMMAND, "run", "many.toml"],
            cwd=tmp_path,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for_handler(process.pid, signal.SIGINT)
        time.sleep(moment)
        assert process.poll() is None
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130, err
        assert time.monotonic() - sent < 2.5, f"after {moment} s"
        assert "Traceback" not in err
    # If the watchdog ended the process, its segment has no run; the next start removes it.
    _core.RunStore(store)
    assert segments(store) == []
