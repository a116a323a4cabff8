"""The bibliography: complete, without unused entries, and as `sojourn cite` prints it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn import _core, bibliography
from sojourn.studies import study as studies
from support.shell import ROOT, Command, completed

QUEUES: list[dict[str, Any]] = json.loads(_core.qdisc_catalogue())
CONTROLS: list[dict[str, Any]] = json.loads(_core.cc_catalogue())
PROFILES = [(entry["name"], profile) for entry in QUEUES for profile in entry["profiles"]]
ENTRY = re.compile(r"^@(\w+)\{([\w-]+),$", re.MULTILINE)
NETWORK = """
duration = "1s"
replications = 1
links = {up = {rate = "10mbit", qdisc = "pfifo"}, down = "unlimited"}
"""


def keys(bibtex: str) -> list[str]:
    return [key for _, key in ENTRY.findall(bibtex)]


def used(text: str) -> dict[str, list[str]]:
    """What a scenario of one pfifo link and this text uses, without what every TCP uses."""
    document = json.loads(sj.Scenario.from_toml(NETWORK + text).checked.to_json())
    every = bibliography.table()["transport"]["tcp"]
    found = bibliography.of_scenario(document).of
    return {key: purposes for key, purposes in found.items() if key not in every}


@pytest.mark.parametrize(("name", "profile"), PROFILES)
def test_every_queue_and_profile_has_a_work(name: str, profile: str) -> None:
    assert bibliography.of_queue(f"{name} profile {profile}").of


@pytest.mark.parametrize("name", [entry["name"] for entry in CONTROLS])
def test_every_congestion_control_has_a_work(name: str) -> None:
    assert bibliography.of_control(name).of


def test_every_study_of_the_package_has_its_work() -> None:
    names = studies.names(studies.studies_folder(None))
    assert names
    assert all(bibliography.of_study(name).of for name in names)


def test_every_key_has_an_entry_and_every_entry_is_used() -> None:
    found = {
        key for section in bibliography.table().values() for row in section.values() for key in row
    }
    assert found | {bibliography.TOOL} == set(bibliography.works())
    text = (ROOT / "python/sojourn/references.bib").read_text(encoding="utf-8")
    assert keys(text) == list(bibliography.works())


def test_every_row_names_something_that_exists() -> None:
    table = bibliography.table()
    assert {row.split()[0] for row in table["queue"]} <= {entry["name"] for entry in QUEUES}
    assert set(table["control"]) == {entry["name"] for entry in CONTROLS}
    starts = {start for entry in CONTROLS for start in entry["slow_starts"]}
    assert set(table["slow_start"]) == starts - {"standard"}
    schema = _core.scenario_schema()
    for section in ("on_ce", "after_idle", "traffic", "http", "profile"):
        assert all(f'"{row}"' in schema for row in table[section]), section


def test_every_row_of_a_queue_applies_to_a_queue_of_the_catalogue() -> None:
    purposes = {
        purpose
        for name, profile in PROFILES
        for given in bibliography.of_queue(f"{name} profile {profile}").of.values()
        for purpose in given
    }
    for text in ("red gentle", "red_ns2 adaptive", "dualpi2 nqb", "dualpi2 queue_protection"):
        purposes |= {one for given in bibliography.of_queue(text).of.values() for one in given}
    assert purposes == {f"queue {row}" for row in bibliography.table()["queue"]}


def test_entries_have_what_a_bibliography_needs() -> None:
    for work in bibliography.works().values():
        assert {"author", "title"} <= set(work.fields), work.key
        assert all(bibliography._balanced(value) for value in work.fields.values())  # noqa: SLF001
        number = work.key.removeprefix("rfc")
        if number.isdigit():
            assert work.fields["doi"] == f"10.17487/RFC{number}"
            assert work.fields["howpublished"] == f"RFC {number}"
            assert work.fields["url"] == f"https://www.rfc-editor.org/info/rfc{number}"
        assert re.fullmatch(r"10\.\d{4,5}/\S+", work.fields.get("doi", "10.1000/none"))
        assert not re.search(r"[^\x20-\x7e]", work.bibtex.replace("\n", ""))


def test_the_entry_of_sojourn_agrees_with_the_citation_file() -> None:
    stated = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    fields = {
        name: bibliography.plain_text(text) for name, text in bibliography.tool().fields.items()
    }
    assert f'title: "{fields["title"]}"' in stated
    assert f'name: "{fields["author"]}"' in stated
    assert f"version: {_core.version()}\n" in stated
    assert fields["note"].startswith(f"Version {_core.version()} (")


def test_the_reference_to_an_rfc_in_a_catalogue_is_in_the_bibliography() -> None:
    for entry in [*QUEUES, *CONTROLS]:
        of = bibliography.of_queue if entry in QUEUES else bibliography.of_control
        found = of(entry["name"]).of
        for number in re.findall(r"RFC (\d+)", entry["source"]):
            # QUIC brings its own control.
            assert f"rfc{number}" in found or number == "9002", entry["name"]


def test_inner_queues_and_presets_are_cited() -> None:
    nested = bibliography.of_queue("prio leaf (drr leaf codel profile linux) / nlred").of
    assert {"shreedhar1996drr", "rfc8289", "zhou2006nlred"} <= set(nested)
    assert "queue codel linux" in nested["linux61"]
    assert "floyd2001ared" in bibliography.of_queue("ared").of
    assert "floyd2001ared" not in bibliography.of_queue("red").of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('traffic = [{type = "udp", rate = "1mbit", direction = "up"}]', set()),
        ('traffic = [{type = "ping", direction = "up"}]', {"hoiland2017flent"}),
        ('traffic = [{type = "tcp", direction = "up", cc = "reno"}]', {"rfc5681"}),
        (
            'traffic = [{type = "tcp", direction = "up", cc = "reno", count = 2}]',
            {"rfc5681", "jain1984fairness"},
        ),
        (
            'traffic = [{type = "tcp", direction = "up", cc = "cubic"}]',
            {"rfc9438", "ha2008cubic", "ha2011hystart"},
        ),
        (
            'traffic = [{type = "tcp", direction = "up", cc = "cubic", slow_start = "standard"}]',
            {"rfc9438", "ha2008cubic"},
        ),
        (
            'traffic = [{type = "quic", direction = "up", cc = "cubic"}]',
            {"rfc9438", "ha2008cubic", "rfc9406", "rfc9000", "rfc9002"},
        ),
        (
            'traffic = [{type = "tcp", direction = "up", cc = "reno", ecn = true}]',
            {"rfc5681", "rfc3168"},
        ),
        (
            'traffic = [{type = "tcp", direction = "up", cc = "reno", after_idle = "validate"}]',
            {"rfc5681", "rfc7661"},
        ),
        (
            'traffic = [{type = "tcp", direction = "up", cc = "reno", profile = "ns-2"}]',
            {"rfc5681", "ns2"},
        ),
        (
            'traffic = [{type = "tcp", direction = "up", cc = "dctcp", on_ce = "end-slow-start"}]',
            {"rfc8257", "alizadeh2010dctcp", "rfc3168", "rfc8511"},
        ),
        (
            'traffic = [{type = "tcp", direction = "up", cc = "prague"}]',
            {"tcpprague07", "draftprague04", "rfc9331", "rfc9768"},
        ),
        (
            'traffic = [{type = "web", direction = "up", cc = "reno", page = "large", http = "3"}]',
            {"rfc5681", "rfc7928", "rfc9114", "rfc9000", "rfc9002"},
        ),
    ],
)
def test_a_scenario_cites_what_it_uses(text: str, expected: set[str]) -> None:
    assert set(used(text)) == expected, used(text)


def test_links_arms_and_replications_are_cited() -> None:
    text = """
    traffic = [{type = "tcp", name = "bulk", direction = "up", cc = "reno"}]
    arms = [{name = "a", set = {"links.up.qdisc" = "sfb", "traffic.bulk.cc" = "vegas"}}]
    """.replace("    ", "")
    assert {"feng2001sfb", "brakmo1995vegas"} <= set(used(text))
    lossy = sj.Link(
        rate="1mbit",
        qdisc="pfifo",
        loss=sj.GilbertElliott(to_bad="1%", to_good="25%"),
    )
    scenario = sj.Scenario(
        links={"up": lossy, "down": "unlimited"},
        traffic=[sj.Udp(direction="up", rate="1mbit")],
        rtt="10ms",
        duration="1s",
        replications=2,
    )
    found = bibliography.of_scenario(json.loads(scenario.checked.to_json())).of
    assert set(found) == {"linux61", "gilbert1960burst", "elliott1963burst", "efron1993bootstrap"}


def test_without_an_argument_the_command_cites_itself_and_says_what_else(
    sojourn: Command,
) -> None:
    done = sojourn("cite")
    assert done.returncode == 0, done.stderr
    assert keys(done.stdout) == ["sojourn"]
    assert "sojourn cite results/mine" in done.stderr


def test_a_result_is_cited_with_the_build_that_produced_it(
    sojourn: Command, result: sj.Result, tmp_path: Path
) -> None:
    result.save(tmp_path / "study" / "one")
    result.save(tmp_path / "study" / "two")
    for folder in ("study/one", "study"):
        done = sojourn("cite", folder)
        assert done.returncode == 0, done.stderr
        assert keys(done.stdout)[0] == "sojourn"
        assert f"note = {{Version {result.build}}}," in done.stdout
        assert "% queue fq_codel\n@misc{rfc8290," in done.stdout
        assert len(keys(done.stdout)) == len(set(keys(done.stdout)))


def test_a_scenario_file_names_and_json(sojourn: Command, file: Path) -> None:
    done = sojourn("cite", str(file), "sfq limit 10", "bbr", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    found = {entry["key"]: entry for entry in document}
    assert {"sojourn", "rfc8289", "mckenney1990sfq", "cardwell2016bbr"} <= set(found)
    assert found["mckenney1990sfq"]["used_for"] == ["queue sfq"]
    assert found["rfc8289"]["fields"]["author"].startswith("Nichols, Kathleen and ")


def test_a_study_is_cited_with_its_work_and_what_its_scenarios_use(sojourn: Command) -> None:
    done = sojourn("cite", "floq")
    assert done.returncode == 0, done.stderr
    assert "study floq" in done.stdout
    assert {"rfc8289", "rfc8033"} <= set(keys(done.stdout))


def test_the_output_of_a_study_is_cited_with_its_work(
    sojourn: Command, result: sj.Result, tmp_path: Path
) -> None:
    record = {"title": "x", "scale": "quick", "totals": {}, "claims": []}
    for name in ("floq", "mine"):
        result.save(tmp_path / "results" / name / "scenarios" / "one")
        text = json.dumps({"study": name, **record})
        (tmp_path / "results" / name / "verdicts.json").write_text(text, encoding="utf-8")
    for folder in ("results/floq", "results"):
        done = sojourn("cite", folder)
        assert done.returncode == 0, done.stderr
        assert "% study floq" in done.stdout
        assert "% queue fq_codel\n@misc{rfc8290," in done.stdout
    assert 'note: results/mine: the study "mine" does not come with Sojourn' in done.stderr


CITATION = """
title = "Mine"
[citation]
key = "me2026"
type = "article"
author = "A. Me"
title = "{title}"
year = 2026
"""


def test_the_citation_of_a_study_of_the_user(sojourn: Command, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "claims.csv").touch()
    (folder / "study.toml").write_text(CITATION.replace("{title}", "{B}"))
    done = sojourn("cite", "mine")
    assert done.returncode == 0, done.stderr
    assert keys(done.stdout) == ["sojourn", "me2026"]
    fields = "  author = {A. Me},\n  title = {{B}},\n  year = {2026},\n"
    assert f"% study mine\n@article{{me2026,\n{fields}}}" in done.stdout
    (folder / "study.toml").write_text(CITATION.replace("{title}", "{B"))
    done = sojourn("cite", "mine")
    assert done.returncode == 3
    assert done.stderr == (
        "sojourn: mine/study.toml: citation.title: expected a name of letters and balanced braces\n"
    )


def test_a_work_of_the_bibliography_is_recognised_by_its_title() -> None:
    title = "AFCD: an approximated-fair and controlled-delay queuing for high speed networks"
    given = bibliography.citation({"key": "other", "title": title}, "study.toml")
    assert bibliography.same(given) is bibliography.works()["xue2013afcd"]
    assert bibliography.same(bibliography.citation({"key": "other"}, "study.toml")).key == "other"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("cubci", 'unknown name "cubci"; did you mean "cubic"?'),
        ("", 'unknown name ""; expected the directory of a result'),
        ("codel target x", "target"),
    ],
)
def test_what_is_unknown_is_refused(sojourn: Command, argument: str, message: str) -> None:
    done = sojourn("cite", argument)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


def test_the_shell_completes_what_can_be_cited(tmp_path: Path) -> None:
    assert "floq" in completed("cite", "flo", cwd=tmp_path)
    assert completed("cite", "dct", cwd=tmp_path) == ["dctcp"]
