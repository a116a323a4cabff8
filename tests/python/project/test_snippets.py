"""The snippets of the documents are executed: Python, TOML, commands and Rust."""

import json
import re
import shlex
import shutil
import subprocess
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import sojourn as sj
from sojourn import _core, cli
from sojourn.cli import process
from sojourn.cli.app import app
from sojourn.scenario.files import split
from sojourn.studies import claims, manifest, study
from support.shell import DOCUMENTS, ROOT

# Of a plug-in, which test_external_queue builds and runs.
EXTERNAL = {"docs/howto/external_queue.md", "examples/external-queue/README.md"}
# Describes the files of studies.
STUDIES = "docs/howto/write_study.md"
HEAD = 'duration = "60s"\nrtt = "20ms"\n'
LINK = '[links.{}]\nrate = "10mbit"\nqdisc = "pfifo"\n'
TRAFFIC = '[[traffic]]\ntype = "{}"\ndirection = "up"\n'
# What the Rust of a document must be taken from.
COMPILED = [
    *sorted((ROOT / "examples/external-queue/src").glob("*.rs")),
    ROOT / "crates/qdisc/src/testing/tutorial.rs",
]
# The doctests of sojourn-path include this document.
DOCTEST = "docs/howto/test_suite.md"
ELIDED = "{ /* … */ }"

# Commands that are cheap with --dry-run.
_DRY = {"run", "sweep", "advise", "tune", "sensitivity", "adversary"}

Run = Callable[[list[str]], tuple[int, str, str]]


def snippets(language: str) -> list[tuple[str, str]]:
    """Every fenced block of a language in the documents, with the name of its file."""
    return [
        (str(path.relative_to(ROOT)), textwrap.dedent(block))
        for path in DOCUMENTS
        for _, block in re.findall(
            rf"^( *)```{language}\n(.*?)^\1```",
            path.read_text(encoding="utf-8"),
            re.DOTALL | re.MULTILINE,
        )
    ]


def commands(text: str) -> list[list[str]]:
    """The arguments of each ``sojourn`` command in a shell block."""
    lines = re.findall(r"^sojourn\b *(.*)", text.replace("\\\n", " "), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def scripts() -> dict[str, list[list[str]]]:
    """The commands of each document, in their order: one may read what another wrote."""
    found: dict[str, list[list[str]]] = {}
    for file, block in snippets("sh"):
        found.setdefault(file, []).extend(commands(block))
    return {file: lines for file, lines in found.items() if lines}


def whole(fragment: str) -> str:
    """Make a scenario of a fragment: keys of a scenario, a link or a TCP connection, or tables."""
    found = tomllib.loads(split(fragment)[0])
    if "duration" in found:
        return fragment
    known = _core.scenario_keys()
    if found.keys() <= set(known["scenario"]):
        text = HEAD + fragment
    elif found.keys() <= set(known["link"]):
        text = HEAD + LINK.format("up") + fragment
    else:
        text = HEAD + TRAFFIC.format("tcp") + fragment
    missing = [name for name in ("up", "down") if name not in tomllib.loads(text).get("links", {})]
    text = "\n".join([text, *(LINK.format(name) for name in missing)])
    for page in found.get("pages", {}):
        text += TRAFFIC.format("web") + f'page = "{page}"\n'
    return text if "[[traffic]]" in text else text + TRAFFIC.format("ping")


def rust_lines(text: str) -> list[str]:
    """The lines of Rust without indentation, empty ones left out."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def is_compiled(block: str, code: list[str]) -> bool:
    """Whether the lines of a block stand in the code in their order, without gaps but elisions."""
    return any(_follows(rust_lines(block), code[at:]) for at in range(len(code)))


def _follows(wanted: list[str], code: list[str]) -> bool:
    at, gap = 0, False
    for line in wanted:
        elided = line.endswith(ELIDED)
        right = line.removesuffix(ELIDED) + "{" if elided else line
        while gap and at < len(code) and code[at] != right:
            at += 1
        if at >= len(code) or code[at] != right:
            return False
        at, gap = at + 1, elided
    return True


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process, in an empty folder beside the papers and examples."""
    monkeypatch.chdir(tmp_path)
    for part in ("papers", "examples"):
        (tmp_path / part).symlink_to(ROOT / part)

    # The signals of this process are for pytest.
    monkeypatch.setattr(process, "install", lambda: None)

    def command(words: list[str]) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["sojourn", *words])
        code = cli.main()
        out, err = capsys.readouterr()
        return code, out, err

    return command


def parse(words: list[str]) -> None:
    """Have the real command parse its arguments, executing nothing."""
    root: Any = typer.main.get_command(app)
    context = root.make_context("sojourn", list(words))
    if context.args or context._protected_args:  # noqa: SLF001 - where click keeps the command
        rest = [*context._protected_args, *context.args]  # noqa: SLF001 - as above
        name, command, rest = root.resolve_command(context, rest)
        command.make_context(name, rest, parent=context)


def check(words: list[str], run: Run) -> None:
    """Run a command as far as that is cheap."""
    target = words[words.index(">") + 1] if ">" in words else None
    plain = words[: words.index(">")] if ">" in words else words
    parse(plain)
    # The files of the test are those of the reader.
    if plain[:2] == ["reproduce", "all"] or plain[0] == "test":
        return
    # All scenarios take seconds in the quick form, and minutes in the full one.
    if plain[0] in {"rfc7928", "rfc9743", "cc-cases"} and "--list" not in plain:
        return
    if plain[0] == "reproduce" and len(plain) > 1 and plain[1] != "--new":
        assert (study.studies_folder(None) / plain[1]).is_dir(), plain
        assert plain[1] in run(["reproduce"])[1].split(), plain
        return
    dry = plain[0] in _DRY or (plain[0] == "compare" and "--generate" not in plain)
    code, out, err = run([*plain, "--dry-run"] if dry and "--dry-run" not in plain else plain)
    assert code == 0, (words, err)
    if target is not None:
        Path(target).write_text(out, encoding="utf-8")


def test_there_are_snippets_of_every_language() -> None:
    assert {file for file, _ in snippets("python")} >= {"README.md", "docs/howto/overhead.md"}
    assert len(snippets("toml")) > 20
    assert len(snippets("rust")) >= 4
    assert sum(len(lines) for lines in scripts().values()) > 15


@pytest.mark.parametrize(("file", "snippet"), snippets("python"))
def test_python_in_documents_runs(
    file: str, snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, file, "exec"), {})  # noqa: S102 - our own documents


def assert_stands_alone(manifest: str, folder: Path) -> None:
    """Check that Cargo resolves a manifest in a copy of the example outside the repository."""
    copy = folder / "queue"
    shutil.copytree(ROOT / "examples/external-queue", copy)
    shutil.copy(ROOT / "Cargo.lock", copy)
    (copy / "Cargo.toml").write_text(manifest.replace("../sojourn/", f"{ROOT}/"), encoding="utf-8")
    command = ["cargo", "metadata", "--offline", "--format-version", "1"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packages = {package["name"] for package in json.loads(done.stdout)["packages"]}
    assert {"ramp", "sojourn-plugin", "sojourn-qdisc"} <= packages


@pytest.mark.parametrize(("file", "snippet"), snippets("toml"))
def test_toml_in_documents_is_read(file: str, snippet: str, tmp_path: Path) -> None:
    if file in EXTERNAL:
        assert_stands_alone(snippet, tmp_path)
    elif file == DOCTEST:
        (crate,) = tomllib.loads(snippet)["dev-dependencies"].items()
        folder = ROOT / crate[1]["path"].removeprefix("../sojourn/")
        manifested = tomllib.loads((folder / "Cargo.toml").read_text(encoding="utf-8"))
        assert manifested["package"]["name"] == crate[0]
    elif file == STUDIES:
        (tmp_path / "study.toml").write_text(snippet, encoding="utf-8")
        assert manifest.load(tmp_path / "study.toml").figure
    else:
        assert sj.Scenario.from_toml(whole(snippet)).runs > 0, file


def test_the_claims_in_the_guide_are_read(tmp_path: Path) -> None:
    ((_, snippet),) = [
        one for one in snippets("text") if one[0] == STUDIES and one[1].startswith("id,source,")
    ]
    (tmp_path / "claims.csv").write_text(snippet, encoding="utf-8")
    assert [len(claim.lines) for claim in claims.load(tmp_path / "claims.csv")] == [1, 3, 1]


@pytest.mark.parametrize(
    "fragment",
    [
        'cc = "cubic bta 1"',
        'loss = { model = "gilbert-elliott", to_bad = "1" }',
        '[links.up]\nrate = "20mbit"\nqdisc = "kodel"',
        '[[pages.shop.objects]]\nname = "document"\nsize = "20kb"',
        "colour = 1",
    ],
)
def test_a_wrong_fragment_is_refused(fragment: str) -> None:
    with pytest.raises(sj.ScenarioError):
        sj.Scenario.from_toml(whole(fragment))


@pytest.mark.parametrize("file", scripts())
def test_commands_in_documents_run(file: str, run: Run) -> None:
    for words in scripts()[file]:
        if file in EXTERNAL:
            parse(words)
            assert all((ROOT / word).is_file() for word in words if word.endswith(".toml")), words
        else:
            check(words, run)


@pytest.mark.parametrize(
    "line",
    [
        "sojourn",
        "sojourn predict",
        "sojourn compare kodel",
        "sojourn compare codel --lnk 1mbit",
        "sojourn run absent.toml",
        "sojourn qdiscs kodel",
        "sojourn reproduce nothing",
        "sojourn report",
    ],
)
def test_a_wrong_command_is_found(line: str, run: Run) -> None:
    (words,) = commands(line)
    with pytest.raises((AssertionError, typer.exceptions.TyperException, IndexError)):
        check(words, run)


@pytest.mark.parametrize(("file", "snippet"), snippets("rust"))
def test_rust_in_documents_is_compiled(file: str, snippet: str) -> None:
    code = [rust_lines(path.read_text(encoding="utf-8")) for path in COMPILED]
    if file == DOCTEST:
        assert DOCTEST in (ROOT / "crates/path/src/lib.rs").read_text(encoding="utf-8")
        return
    assert any(is_compiled(snippet, lines) for lines in code), file


def test_rust_that_no_file_has_is_found() -> None:
    code = rust_lines("fn f() {\n    1\n}\n\nfn g() {\n    2\n}\n")
    assert is_compiled("fn f() {\n    1\n}\n", code)
    assert is_compiled("fn f() { /* … */ }\nfn g() { /* … */ }\n", code)
    assert not is_compiled("fn f() {\n    2\n}\n", code)
    assert not is_compiled("fn f() { /* … */ }\nfn h() { /* … */ }\n", code)
