"""Whatever is wrong: one line on stderr that names the place, an exit code, no traceback."""

import re
from pathlib import Path

import pytest

import sojourn as sj
from support import preloaded
from support.refusals import VALID, refused
from support.shell import Command, environment


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ('rate = "10mbit"', 'rate = "10"', ["links.up.rate", "unit|mbit"]),
        ('rate = "10mbit"', 'rate = "-10mbit"', ["links.up.rate", "-10mbit"]),
        ('rate = "10mbit"', "rate = 10", ["links.up.rate"]),
        ('rtt = "50ms"', 'rtt = "50mbit"', ["rtt", "50mbit"]),
        ('rtt = "50ms"', 'rrt = "50ms"', ["rrt", "rtt"]),
        ('duration = "5s"', 'duration = "1s"', ["warmup", "less than the duration"]),
        ('qdisc = "codel"', 'qdisc = "codel target 9000000s"', ["qdisc", "target", "range"]),
        ('qdisc = "codel"', 'qdisc = "kodel"', ["qdisc", "codel"]),
        ('direction = "up"', "path = ['middle']", ["middle", "up"]),
        ('direction = "up"', 'direction = "sideways"', ["direction", "sideways"]),
        ('direction = "up"', 'direction = "up"\ncount = 0', ["count"]),
        ('direction = "up"', 'direction = "up"\nspeed = 3', ["speed"]),
        ('type = "tcp"', 'type = "sctp"', ["type", "sctp"]),
        ('duration = "5s"', "duration = [", ["line 3"]),
        ('duration = "5s"', "", ["duration"]),
    ],
)
def test_a_wrong_scenario_file(
    sojourn: Command, tmp_path: Path, before: str, after: str, parts: list[str]
) -> None:
    assert before in VALID
    (tmp_path / "wrong.toml").write_text(VALID.replace(before, after, 1), encoding="utf-8")
    refused(sojourn("run", "wrong.toml"), 2, r"wrong\.toml", *parts)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("duration", ["path=value"]),
        ("", ['^sojourn: -s "": expected path=value']),
        ("links.middle.rate=5mbit", ["middle", "up"]),
        ("traffic[7].count=2", ["7"]),
        ("replications=many", ["replications"]),
        ("replications=0", ["replications"]),
        ("links.up.qdisc.limits=5", ["links.up.qdisc.limits", "limit"]),
        ("links.up.qdisc.target=5", ["links.up.qdisc.target", "5ms|unit"]),
        ("links.up.rate.burst=5", ["links.up.rate", "single value"]),
        ("links.up.rate=fast", ["links.up.rate", "fast"]),
        ("traffic[0]=5", [r"traffic\[0\]: 5 is not a table"]),
        ("traffic[*].speed=3", [r"traffic\[0\]", "speed"]),
        ("traffic[*]=3", [r"traffic\[0\]: 3 is not a table"]),
        ("links.up.medium.type=wifi", ['unknown key "medium"', r"whole table links\.up\.medium"]),
        ("links.upp.rate=3mbit", ['unknown key "upp"; expected down or up']),
        ("traffic[0].count.x=3", [r"traffic\[0\]\.count is a single value without keys"]),
        ("traffic.0.count.x=3", [r"set traffic\[0\]\.count itself"]),
        (
            "traffic[0].cc.beta=3",
            [r"traffic\[0\]\.cc\.beta: cubic: beta 3 is out of range; expected 1"],
        ),
        ("traffic[*].cc.betta=3", ['cubic: unknown parameter "betta"; did you mean "beta"']),
        ("traffic.0.cc.beta.x=3", [r"set traffic\[0\]\.cc\.beta as a whole"]),
        ("links.up.qdisc.tarqet=5ms", ['did you mean "target"']),
        ("links.up.qdisc.target.x=5ms", ["set links.up.qdisc.target as a whole"]),
        ("traffic[0.cc=bbr", ["invalid path; expected one such as links"]),
        ('links.up.medium={type="wifi"', ["links.up.medium", "TOML"]),
        ('links.up.medium={type="lte"}', ["links.up.medium", "lte"]),
    ],
)
def test_a_wrong_change(sojourn: Command, tmp_path: Path, change: str, parts: list[str]) -> None:
    (tmp_path / "right.toml").write_text(VALID, encoding="utf-8")
    refused(sojourn("run", "right.toml", "-s", change), 2, *parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["run", "absent.toml"], ["absent.toml", "No such file"]),
        (
            ["run", "sqm"],
            [
                "^sojourn: cannot read sqm: No such file or directory; expected a scenario file, ",
                " which 'sojourn compare --generate' prints, and for a router with SQM ",
                " 'sojourn import /etc/config/sqm'$",
            ],
        ),
        (
            ["compare", "sqm"],
            [
                '^sojourn: unknown queue "sqm"; scripts that set up cake or fq_codel: use one of ',
                " these, or 'sojourn import /etc/config/sqm'$",
            ],
        ),
        (["run", "."], ["directory"]),
        (["compare", "--link", "10"], ["10/1mbit"]),
        (["compare", "--link", "10/1parsec"], ["parsec"]),
        (["advise", "--link", "vdsl"], ["^sojourn: --link vdsl: a preset; .* as --preset$"]),
        (
            ["compare", "--link", "vdsl"],
            ["^sojourn: --link vdsl: a preset; expected rates .*, or the preset as --preset$"],
        ),
        (["compare", "--rtt", "50"], ["rtt", "unit|ms"]),
        (["compare", "--traffic", "rrul_ef"], ["rrul_ef", "rrul_be"]),
        (["compare", "--traffic", "tcp_0up"], ["tcp_0up"]),
        (["compare", "--traffic", "voip", "--cc", "dctcp"], ["cc dctcp", "voip"]),
        (["compare", "--traffic", "udp_flood", "--cc", "bbr"], ["cc bbr", "udp_flood"]),
        (["compare", "--traffic", "ledbat_1up", "--cc", "bbr"], ["cc bbr", "ledbat_1up"]),
        (["compare", "--traffic", "voip+udp_flood", "--ecn"], ["ecn", "no connection"]),
        (["compare", "--duration", "10s"], ["warmup"]),
        (
            ["compare", "--duration", "4s", "--warmup", "1s"],
            ["^sojourn: --duration 4s: too short; expected more than 5s, when tcp up starts$"],
        ),
        (
            ["compare", "--duration", "15s"],
            ["^sojourn: --duration 15s: too short; expected more than the 15s of --warmup$"],
        ),
        (["compare", "--duration", "5s"], ["--duration 5s: too short"]),
        (["compare", "--duration", "5"], ["duration", "the unit is missing"]),
        (["compare", "--traffic", "tpc_4up"], ['did you mean "tcp_4up"']),
        (["compare", "--out", ""], ["^sojourn: .*--out.*: empty; expected a path$"]),
        (["compare", "--report="], ["--report.*: empty; expected a path$"]),
        (["run", ""], ["FILE.*: empty; expected a path$"]),
        (["report", ""], ["DIR.*: empty; expected a path$"]),
        (["plot", ""], ["DIR.*: empty; expected a path$"]),
        (["plot"], ["^sojourn: DIR: missing; expected sojourn plot "]),
        (["report", ".", "--report", ""], ["--report.*: empty; expected a path$"]),
        (["stats", ""], ["DIR.*: empty; expected a path$"]),
        (["reproduce", "cocoa", "--out", ""], ["--out.*: empty; expected a path$"]),
        (["reproduce", "--papers", ""], ["--papers.*: empty; expected a path$"]),
        (["compare", "--replications", "0"], ["replications"]),
        (["compare", "--replications", "five"], ["--replications"]),
        (["compare", "--jobs", "0"], ["--jobs"]),
        (["compare", "--jobs", "9" * 30], ["--jobs"]),
        (["compare", "--seed", "9" * 30], ["--seed"]),
        (["compare", "codel", "codel"], ["twice"]),
        (["compare", "codel target"], ["target"]),
        (
            ["compare", "fq_codel", "target", "13ms", "pie"],
            ["^sojourn: unknown queue \"target\"; quote .* such as 'fq_codel target 13ms'$"],
        ),
        (["compare", "codel", "noecn"], ["such as 'codel noecn'$"]),
        (["compare", "pfifo", "target", "13ms"], ['unknown queue "target"; (?!quote)']),
        (["compare", "--seed", "-1"], ["seed"]),
        (
            ["compare", "--on", "x"],
            [r"^sojourn: --on x: unknown; expected sim(,| or) live(,? (or )?linux-\S+)*$"],
        ),
        (["run", "absent.toml", "--on", "x"], ["--on x: unknown"]),
        (["compare", "--on", "x", "--dry-run"], ["--on x: unknown"]),
        (
            ["compare", "--nonsense"],
            ["^sojourn: --nonsense: unknown option; sojourn compare --help-all lists the options$"],
        ),
        (
            ["compare", "--output", "x"],
            [r"^sojourn: --output: unknown option; did you mean --out\?$"],
        ),
        (
            ["run", "x.toml", "--metrics", "x"],
            ["^sojourn: --metrics: unknown option; sojourn run --help-all lists the options$"],
        ),
        (
            ["agree", "valid.toml", "--on", "sim,lnux"],
            [
                '^sojourn: --on sim,lnux: unknown place "lnux"; expected sim',
            ],
        ),
        (
            ["agree", "valid.toml", "--on", "sim"],
            ["^sojourn: --on sim: nothing to compare with; expected, for example, sim"],
        ),
        (
            ["agree", "valid.toml", "--on", ""],
            ['^sojourn: --on "": nothing to compare with; expected, for example, sim'],
        ),
        (
            ["live", "valid.toml"],
            [
                "^sojourn: valid.toml: is a scenario file, not a program; ",
                "; expected sojourn run valid.toml --on live$",
            ],
        ),
        (
            ["live", "--view", ":x", "--", "true"],
            [
                "^sojourn: --view :x: not a port; expected ADDRESS:PORT or :PORT, ",
            ],
        ),
        (
            ["interop", "aqm", "--delay=15ms", "--logs", "x", "--bandwidth=10Mbps"],
            [
                "^sojourn: --delay: is an option of the scenario; quote the scenario with its ",
                ' options: "aqm --delay=15ms --bandwidth=10Mbps"$',
            ],
        ),
        (["interop", "aqm", "b"], ['^sojourn: unexpected argument "b"; expected sojourn interop ']),
        (
            ["interop", "aqm --delay=15ms", "--veiw"],
            ["^sojourn: --veiw: unknown option; did you mean --view"],
        ),
        (
            ["kernel", "build", "valid.toml"],
            [
                "^sojourn: SOURCE valid.toml: not a .tar file; expected 6.1, 6.12, or a directory",
            ],
        ),
        (["kernel", "build", ""], ['^sojourn: SOURCE "": empty; expected 6.1, 6.12, or a ']),
        (["compare", "--rtt"], ["^sojourn: --rtt: no value given; expected one$"]),
        (["compare", "--ecn=1"], ["^sojourn: --ecn: takes no value$"]),
        (
            ["compare", "--replications", "x"],
            ["^sojourn: --replications x: expected a whole number"],
        ),
        (["run"], [r"^sojourn: FILE: missing; expected sojourn run \[OPTIONS\] \{FILE\}$"]),
        (["schema", "x"], ['^sojourn: unexpected argument "x"; expected sojourn schema ']),
        (["export", "x"], ["^sojourn: --format: missing; expected --format NAME$"]),
        (
            ["nonsense"],
            ['^sojourn: unknown command "nonsense"; expected one of demo, compare, run, '],
        ),
        (["cmpare"], [r'^sojourn: unknown command "cmpare"; did you mean "compare"\?$']),
        (["qdiscs", "kodel"], ["kodel", "codel"]),
        (["reproduce", "nothing"], ["nothing", "residential"]),
        (["reproduce", "--new", "../x"], ["--new ../x: not a name for a study; expected lower"]),
        (["reproduce", "--new", ""], ["--new.*: not a name for a study"]),
        (["reproduce", "all", "--calibrate"], ["--calibrate requires a single study"]),
        (["reproduce", "floq", "--calibrate", "--figure", "4"], ["expected no --figure"]),
        (["reproduce", "predict", "--calibrate"], [r"predict has no \[calibration.NAME\]"]),
    ],
)
def test_a_wrong_command_line(
    sojourn: Command, tmp_path: Path, arguments: list[str], parts: list[str]
) -> None:
    (tmp_path / "valid.toml").write_text(VALID, encoding="utf-8")
    refused(sojourn(*arguments), 2, *parts)


def test_a_folder_that_cannot_be_written_is_reported_before_the_run(
    sojourn: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    long = ["compare", "--replications", "100"]
    refused(sojourn(*long, "--out", "file/kept"), 3, "file/kept")
    refused(sojourn(*long, "--report", "file/report.html"), 3, "file/report.html")
    refused(sojourn(*long, "--out", "/proc/kept"), 3, "/proc/kept")


def write_arms(folder: Path, **arms: tuple[str, str] | None) -> None:
    """Write ``arms.toml``: a valid scenario with arms; each has the path and value that it sets."""
    text = VALID
    for name, change in arms.items():
        text += f'[[arms]]\nname = "{name}"\n'
        if change is not None:
            text += 'set."{}" = "{}"\n'.format(*change)
    (folder / "arms.toml").write_text(text, encoding="utf-8")


def test_a_change_that_every_arm_undoes_is_refused(sojourn: Command, tmp_path: Path) -> None:
    write_arms(tmp_path, codel=("links.up.qdisc", "codel"), pie=("links.up.qdisc", "pie"))
    refused(sojourn("run", "arms.toml", "-s", "links.up.qdisc=sfq"), 2, "links.up.qdisc", "arm")
    assert sojourn("run", "arms.toml", "--dry-run", "-s", "links.down.qdisc=sfq").returncode == 0


def test_the_arms_that_a_change_does_not_reach_are_noted(sojourn: Command, tmp_path: Path) -> None:
    fast, pie = ("links.up.qdisc.target", "1ms"), ("links.up.qdisc", "pie")
    write_arms(tmp_path, base=None, fast=fast, pie=pie)
    dry = ["run", "arms.toml", "--dry-run", "-s"]
    done = sojourn(*dry, "links.up.qdisc.target=7ms")
    assert done.returncode == 0
    assert done.stderr == (
        "note: -s links.up.qdisc.target: no effect on the arms that set this value themselves: "
        '"fast", "pie"\n'
    )
    assert sojourn(*dry, "links.up.rate=2mbit").stderr == ""


def test_a_change_of_one_group_that_every_arm_undoes_for_all_is_refused(
    sojourn: Command, tmp_path: Path
) -> None:
    write_arms(tmp_path, bbr=("traffic[*].cc", "bbr"))
    refused(sojourn("run", "arms.toml", "-s", "traffic[0].cc=reno"), 2, "traffic", "arm")
    assert sojourn("run", "arms.toml", "--dry-run", "-s", "traffic[0].count=2").returncode == 0


def test_a_report_in_a_file_and_a_folder_without_studies(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    refused(sojourn("compare", "--report", "file/x.html"), 3, "file is not a directory")
    (tmp_path / "empty").mkdir()
    refused(sojourn("reproduce", "residential", "--papers", "empty"), 3, "no studies in empty")
    refused(sojourn("reproduce", "--papers", "absent"), 3, "absent is not a directory")


def test_a_folder_with_other_files_is_left_alone(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("precious", encoding="utf-8")
    refused(sojourn("compare", "--replications", "100", "--out", "thesis"), 3, "thesis")
    assert (tmp_path / "thesis" / "chapter.tex").read_text(encoding="utf-8") == "precious"


def test_what_is_no_result_cannot_be_reported_on(
    sojourn: Command, tmp_path: Path, result: sj.Result
) -> None:
    refused(sojourn("report", "absent"), 3, "absent")
    (tmp_path / "empty").mkdir()
    refused(sojourn("report", "empty"), 3, "manifest.json")
    result.save(tmp_path / "kept")
    for name in ("flows.parquet", "manifest.json"):
        damaged = tmp_path / "kept" / name
        whole = damaged.read_bytes()
        damaged.write_bytes(whole[: len(whole) // 2])
        refused(sojourn("report", "kept"), 4, re.escape(name))
        damaged.write_bytes(whole)
    assert sojourn("report", "kept").returncode == 0
    refused(sojourn("report", "kept", "--report", "kept"), 3, "it is a directory")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("run", "b\udcff.toml"), "FILE b\ufffd.toml"),
        (("run", "right.toml", "--pcap", "b\udcff.pcapng"), "--pcap b\ufffd.pcapng"),
        (("run", "right.toml", "--out=b\udcff"), "--out b\ufffd"),
    ],
)
def test_names_that_are_not_utf_8_are_refused_before_a_run(
    sojourn: Command, tmp_path: Path, words: tuple[str, ...], name: str
) -> None:
    for file in ("right.toml", "b\udcff.toml"):
        (tmp_path / file).write_text(VALID, encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    refused(sojourn(*words), 2, f"^sojourn: {name}: not UTF-8; expected text in UTF-8$")
    assert sorted(tmp_path.iterdir()) == before


def test_directories_and_files_around_may_have_names_that_are_not_utf_8(tmp_path: Path) -> None:
    folder = tmp_path / "b\udcff"
    (folder / "kept").mkdir(parents=True)
    (folder / "right.toml").write_text(VALID, encoding="utf-8")
    sweep = ("sweep", "right.toml", "-p", "rtt=10ms,20ms", "--replications", "1")
    for words, said in (
        (("run", "right.toml", "--out", "out", "--report", "r.html"), ""),
        ((*sweep, "--shared", "kept"), ""),
        (("store", "ls", "kept"), f"run store {tmp_path}/b\ufffd/kept"),
        (("store", "verify", "kept"), "b\ufffd.parquet"),
    ):
        done = preloaded.run(words, folder=folder, environment=environment(), timeout=60)
        assert done.returncode == (4 if words[1] == "verify" else 0), done.stderr
        assert said in done.stdout + done.stderr
        for stored in list(folder.glob("kept/runs/**/*.parquet"))[:1]:
            stored.with_name("b\udcff.parquet").write_text("no rows")
