"""Queues written in Python that are named by their file: in Python, in files and in commands."""

import json
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn import _core
from sojourn.advice.advice import AdvicePlan, question
from sojourn.execute.compare import ComparePlan, access_link
from sojourn.queues.queue_file import named, with_files
from sojourn.search.adversary import AdversaryPlan, parsed, prepared, read
from sojourn.search.settings import settings
from sojourn.sweeps.run import SweepPlan
from sojourn.sweeps.run import prepared as prepared_sweep
from support.refusals import VALID, refused
from support.shell import Command, shell
from support.stored import COMMAND

FILE = '''"""Tail drop with a limit that a function of the file returns."""

from collections import deque

import sojourn as sj

LIMIT = 20


def limit():
    return LIMIT


class Tail(sj.PythonQueue):
    def __init__(self):
        self.packets = deque()

    def enqueue(self, now, packet):
        if len(self.packets) < limit():
            self.packets.append(packet)
        else:
            packet.drop("overlimit")

    def dequeue(self, now):
        return self.packets.popleft() if self.packets else None


class Half(sj.PythonQueue):
    def dequeue(self, now):
        return None


class Other:
    pass
'''
QUEUE = "./tail.py:Tail"
OBJECTIVE = ("--objective", "min ping_ms_p99")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a queue and a scenario."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tail.py").write_text(FILE, encoding="utf-8")
    (tmp_path / "s.toml").write_text(VALID.replace('"codel"', f'"{QUEUE}"'), encoding="utf-8")
    return tmp_path


class Own(sj.PythonQueue):
    """A queue that is defined here."""

    def enqueue(self, now: float, packet: sj.Packet) -> None:  # noqa: ARG002 - of the base
        """Drop the packet."""
        packet.drop("overlimit")

    def dequeue(self, now: float) -> sj.Packet | None:  # noqa: ARG002 - of the base
        """Return nothing."""
        return None


FORMS = {
    "codel target 13ms": "codel target 13ms",
    QUEUE: "Tail",
    "object": (sj.CoDel(target="13ms"), "codel target 13ms"),
    "class": (sj.CoDel, "codel"),
    "own": (Own, "Own"),
}


def arms(scenario: sj.Scenario) -> list[str]:
    return scenario.checked.arms


def of_compare(queue: Any) -> list[str]:
    return arms(access_link(ComparePlan([queue], traffic="tcp_1up")))


def of_adversary(queue: Any) -> list[str]:
    planned = prepared(AdversaryPlan(loser=queue, against="pfifo"))
    return arms(planned.scenario)[:1]


def of_advise(queue: Any) -> list[str]:
    asked = question(AdvicePlan(queues=queue, preset="vdsl", shares=[90]))
    return [one.name.removesuffix(" 90 %") for one in asked.compared[1:2]]


def of_rfc7928(queue: Any) -> list[str]:
    return [one.queue for one in sj.rfc7928(queue, section="12")]


def of_sweep(queue: Any) -> list[str]:
    planned = prepared_sweep(
        SweepPlan(sj.Scenario.from_file("s.toml"), {"links.up.qdisc": ["pie", queue]})
    )
    return [f"{planned.points[1].values['links.up.qdisc']}"]


@pytest.mark.parametrize("take", [of_compare, of_adversary, of_advise, of_rfc7928, of_sweep])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("folder")
def test_every_function_takes_every_form_of_a_queue(
    take: Callable[[Any], list[str]], form: str
) -> None:
    found = FORMS[form]
    queue, name = found if isinstance(found, tuple) else (form, found)
    assert take(queue) == [name]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("queue", [QUEUE, sj.CoDel, sj.CoDel(), "codel"])
def test_links_arms_and_leaves_take_every_form(queue: Any) -> None:
    text = sj.qdisc(queue).spec if isinstance(queue, str) else "codel"
    assert sj.Link(rate="9mbit", qdisc=queue).document()["qdisc"] == (
        queue if queue == "codel" else text
    )
    assert sj.Drr(leaf=queue).spec.startswith(f"drr leaf {text.split()[0]}")
    changed = sj.Arm(name="a", set={"links.up.qdisc": queue}).document()["set"]
    assert changed["links.up.qdisc"].split()[0] == text.split()[0]
    sj.testing.check_qdisc(queue, cases=1)


REFUSED = [
    ("./absent.py:Tail", "cannot read absent.py: No such file or directory"),
    ("./tail.py", "no class; expected ./tail.py:Tail or ./tail.py:Half"),
    ("./tail.py:Tale", "no class Tale; expected ./tail.py:Tail or ./tail.py:Half"),
    ("./tail.py:Other", "not a subclass of sojourn.PythonQueue: Other; expected ./tail.py:Tail"),
    ("./tail.py:Half", "Half: missing method enqueue; a Python queue must define"),
    ("./tail.py:Tail limit 3", "has no parameters; write a subclass"),
    ("./raises.py:A", "raises.py, line 2: NameError: name 'x' is not defined"),
    ("./syntax.py:A", "syntax.py, line 1: SyntaxError: '\\(' was never closed"),
    ("./exits.py:A", "exits.py, line 1: SystemExit: 3"),
    ("./none.py:A", "no class A; the file has no subclass of sojourn.PythonQueue"),
    ("./folder.py:A", "folder.py: Is a directory|folder.py: .*expected a Python file"),
    ("drr leaf ./tail.py:Tale", "no class Tale; expected ./tail.py:Tail"),
]
FILES = {
    "raises.py": "y = 1\nx + 1\n",
    "syntax.py": "f(\n",
    "exits.py": "raise SystemExit(3)\n",
    "none.py": "",
}


@pytest.mark.parametrize(("queue", "problem"), REFUSED)
def test_what_is_no_queue_is_refused_in_one_line(
    folder: Path, sojourn: Command, queue: str, problem: str
) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "folder.py").mkdir()
    with pytest.raises(sj.ScenarioError, match=problem):
        sj.qdisc(queue)
    done = sojourn("compare", "pie", queue)
    refused(done, 2, problem)
    # A value that is the file and the class of the error stands once.
    once = f'"{queue}": ' if " " in queue else f"{queue}: "
    assert done.stderr.count(once) == 1, done.stderr
    assert f"{once}{queue}: " not in done.stderr
    refused(sojourn("run", "s.toml", "-s", f"links.up.qdisc={queue}"), 2, "links.up.qdisc", problem)
    assert not [name for name in sys.modules if name.startswith("queue_file_raises")]


def test_the_name_depends_on_the_code_and_not_on_the_place(folder: Path) -> None:
    first = sj.qdisc(QUEUE).spec
    (folder / "sub").mkdir()
    other = folder / "sub" / "tail.py"
    other.write_text(FILE, encoding="utf-8")
    assert sj.qdisc("sub/tail.py:Tail").spec == first
    # The function below the class and the number that it reads belong to the code.
    other.write_text(FILE.replace("LIMIT = 20", "LIMIT = 30"), encoding="utf-8")
    second = sj.qdisc("sub/tail.py:Tail").spec
    assert second != first
    assert sj.qdisc(QUEUE).spec == first
    assert named([first, "codel"]) == {"Tail": first, "codel": "codel"}
    assert list(named([first, second])) == [QUEUE, "sub/tail.py:Tail"]
    assert with_files(f"a {first}", folder / "sub") == "a ../tail.py:Tail"
    assert not list(folder.rglob("__pycache__"))


@pytest.mark.usefixtures("folder")
def test_compare_runs_a_queue_of_a_file_on_processes_as_in_one() -> None:
    def runs(jobs: int) -> pl.DataFrame:
        return sj.compare(
            ["pfifo", QUEUE],
            link="10mbit",
            traffic="tcp_1up",
            duration="7s",
            warmup="5s",
            replications=2,
            jobs=jobs,
        ).table()

    found = runs(2)
    assert found.equals(runs(1))
    drops = found.group_by("arm").agg(pl.col("drops").sum()).sort("arm")["drops"]
    assert found["arm"].unique().sort().to_list() == ["Tail", "pfifo"]
    assert drops[0] > drops[1]


def test_compare_in_python_is_the_command(folder: Path, sojourn: Command) -> None:
    words = ["--link", "9/3mbit", "--traffic", "web+tcp_1up", "--rtt", "20ms", "--ecn"]
    done = sojourn("compare", "pie", QUEUE, *words, "--generate")
    assert done.returncode == 0, done.stderr
    plan = ComparePlan(["pie", QUEUE], link="9/3mbit", traffic="web+tcp_1up", rtt="20ms", ecn=True)
    assert f'"links.up.qdisc" = "{QUEUE}"' in done.stdout
    assert sj.Scenario.from_toml(done.stdout, folder) == access_link(plan)


def test_files_of_a_scenario_are_relative_to_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'{VALID}\n[sweep.parameters]\n"links.down.qdisc" = "pie,{QUEUE}"\n'
    (folder / "s.toml").write_text(text.replace('"codel"', f'"{QUEUE}"'), encoding="utf-8")
    name = sj.qdisc(QUEUE).spec
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    link = sj.Scenario.from_file("../s.toml").links["up"]
    assert isinstance(link, sj.Link)
    assert link.qdisc == name
    monkeypatch.chdir(folder)
    (folder / "elsewhere" / "s.toml").write_text(text.replace(QUEUE, f".{QUEUE}"), encoding="utf-8")
    # Worker processes would keep a preloaded command waiting.
    done = shell(f"{' '.join(COMMAND)} sweep elsewhere/s.toml --replications 1", folder)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines() if " ±" in line or "Tail" in line]
    assert "Tail" in done.stdout
    assert "python:" not in done.stdout


def test_commands_take_a_queue_of_a_file(folder: Path, sojourn: Command) -> None:
    for words in (
        ("run", "s.toml", "-s", f"links.down.qdisc={QUEUE}", "--dry-run"),
        ("sweep", "tcp_1up", "-p", f"links.*.qdisc=pie,{QUEUE}", "--dry-run"),
        ("sweep", "tcp_1up", "--qdisc", QUEUE, "-p", "rtt=9ms,20ms", "--dry-run"),
        ("tune", "s.toml", "-p", f"links.down.qdisc=pie,{QUEUE}", "--dry-run", *OBJECTIVE),
        ("adversary", "--loser", QUEUE, "--against", "pie", "--dry-run"),
        ("advise", QUEUE, "--preset", "vdsl", "--dry-run"),
    ):
        done = sojourn(*words)
        assert done.returncode == 0, (words, done.stderr)
    name = sj.qdisc(QUEUE).spec
    assert sojourn("qdiscs", QUEUE).stdout == "Tail: a queue written in Python\nsource: tail.py\n"
    assert json.loads(sojourn("qdiscs", QUEUE, "--json").stdout)["name"] == name
    done = sojourn("run", "s.toml", "-s", "replications=1")
    assert "notice: Tail: queue from outside Sojourn" in done.stderr
    assert "python:" not in done.stderr
    done = sojourn("rfc7928", QUEUE, "--section", "12", "--out", "o")
    assert done.returncode == 0, done.stderr
    assert (folder / "o" / "tail.html").is_file()


def test_reading_a_result_loads_no_file(folder: Path) -> None:
    (folder / "mean.py").write_text("open('loaded', 'w')\n" + FILE, encoding="utf-8")
    found = sj.adversary(
        loser="pfifo", against=QUEUE, trials=2, final_replications=2, replications=1, jobs=1
    )
    name = sj.qdisc(QUEUE).spec
    text = found.worst.to_toml()
    assert name in text
    with pytest.raises(_core.ScenarioError, match="unknown queue"):
        parsed(text.replace(name, "./mean.py:Tail"), "worst.toml")
    with pytest.raises(_core.ScenarioError, match="unknown queue"):
        sj.Scenario.from_json(found.scenario.checked.to_json().replace(name, "./mean.py:Tail"))
    assert not (folder / "loaded").exists()
    found.write("worst.toml")
    assert f'"{QUEUE[2:]}"' in (folder / "worst.toml").read_text(encoding="utf-8")
    assert read("worst.toml").scenario == found.scenario


ODD = "./a \"b'\\c.py:Tail"


def test_names_of_files_with_quotes_and_backslashes_are_escaped(
    folder: Path, sojourn: Command
) -> None:
    (folder / "a \"b'\\c.py").write_text(FILE, encoding="utf-8")
    done = sojourn("compare", "pie", ODD, "--generate")
    assert tomllib.loads(done.stdout)["arms"][1]["set"]["links.up.qdisc"] == ODD
    assert sj.Scenario.from_toml(done.stdout, folder) == access_link(ComparePlan(["pie", ODD]))
    name = sj.qdisc(ODD).spec
    # A literal string, and a comment that is no TOML.
    text = VALID.replace('"codel"', "'./d\\tail.py:Tail' # qdisc = \"\\q\"")
    (folder / "d\\tail.py").write_text(FILE, encoding="utf-8")
    link = sj.Scenario.from_toml(text, folder).links["up"]
    assert isinstance(link, sj.Link)
    assert link.qdisc == sj.qdisc("./d\\tail.py:Tail").spec
    found = settings(sj.Scenario.from_file("s.toml"), {"links.down.qdisc": name})
    assert shlex.split(found.options) == ["-s", f"links.down.qdisc={ODD}"]


def test_output_of_a_file_goes_to_standard_error(folder: Path, sojourn: Command) -> None:
    (folder / "tail.py").write_text(f"print('loaded')\n{FILE}", encoding="utf-8")
    done = sojourn("compare", "pie", QUEUE, "--generate")
    assert tomllib.loads(done.stdout)["name"]
    assert "loaded\n" in done.stderr


def test_a_file_that_fails_does_not_remove_another_of_its_name(folder: Path) -> None:
    sj.qdisc(QUEUE)
    module = sys.modules["queue_file_tail"]
    (folder / "sub").mkdir()
    (folder / "sub" / "tail.py").write_text("1 / 0\n", encoding="utf-8")
    with pytest.raises(sj.ScenarioError, match="ZeroDivisionError"):
        sj.qdisc("sub/tail.py:Tail")
    assert sys.modules["queue_file_tail"] is module


def test_a_new_queue_passes_the_checks_and_differs_from_pfifo(
    tmp_path: Path, sojourn: Command
) -> None:
    done = sojourn("new-queue", "my_ramp")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split("  ")[1] for line in lines[1:]] == [
        "python my_ramp.py",
        "sojourn compare fq_codel ./my_ramp.py:MyRamp",
        "sojourn rfc7928 ./my_ramp.py:MyRamp",
    ]
    checked = subprocess.run(
        [sys.executable, "my_ramp.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert checked.stdout == "MyRamp passes the contract checks\n"
    # At most 100 packets wait, with pfifo 1000.
    result = sj.compare(
        ["pfifo", f"{tmp_path}/my_ramp.py:MyRamp"],
        link="10mbit",
        traffic="tcp_4up",
        duration="7s",
        warmup="5s",
        replications=1,
        jobs=1,
    )
    assert result.table()["ping_ms_p95"].n_unique() == 2
    before = (tmp_path / "my_ramp.py").read_bytes()
    refused(sojourn("new-queue", "my_ramp"), 2, "NAME my_ramp: my_ramp.py exists")
    assert (tmp_path / "my_ramp.py").read_bytes() == before
    names = {
        **dict.fromkeys(("queue", "sojourn", "polars"), "the name of a module"),
        **dict.fromkeys(("a/b", "if"), "not a name"),
        **dict.fromkeys(("true", "none", "False"), "its class|not a name"),
    }
    for name, problem in names.items():
        refused(sojourn("new-queue", name), 2, f"NAME {name}: ({problem})")
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["my_ramp.py"]
    # Python finds this folder, but a file of its name hides no module.
    (tmp_path / "steep").mkdir()
    command = [sys.executable, "-m", "sojourn", "new-queue", "steep"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
