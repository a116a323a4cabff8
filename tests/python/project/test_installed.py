"""README, tutorials and notebooks run as shown, from an installed wheel in an empty folder."""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import distribution, metadata, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from support import buckets, clusters, live_probe
from support.shell import ROOT, environment

# Commands that take more than a few seconds, or run in real time.
SLOW = re.compile(r"sojourn (sweep|tune|adversary|live)\b")
# Blocks that the fixture `installed` stands for.
INSTALL = "pip install ."
# What a block names that not every machine has, beside what stands in for it.
CLUSTER, BUCKET = "dask://head:8786", "s3://aqm-team/"
# A result that is not valid fails the script or notebook to which this is added.
JUDGED = """
import sojourn
for _value in list(globals().values()):
    if isinstance(_value, sojourn.Result):
        assert _value.validity.verdict == "valid", _value.validity.findings
"""
# Executes a notebook of the documentation with the kernel of the interpreter that runs this.
EXECUTE = """
import sys
from pathlib import Path
import nbformat
from myst_nb.core.read import read_myst_markdown_notebook
from nbclient import NotebookClient
file, judged = sys.argv[1:]
notebook = read_myst_markdown_notebook(Path(file).read_text(encoding="utf-8"))
notebook.cells.append(nbformat.v4.new_code_cell(judged))
NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
for cell in notebook.cells:
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            print(output.text)
"""
NOTEBOOKS = [
    *sorted((ROOT / "docs" / "tutorials").glob("first_*.md")),
    *sorted((ROOT / "docs" / "notebooks").glob("*.md")),
]


@dataclass(frozen=True)
class Block:
    """A block of code in a document, with the paragraph before it."""

    language: str
    text: str
    before: str

    def commands(self) -> Iterator[tuple[str, str]]:
        """Yield each command with the output that the document shows; "" if it shows none."""
        text = self.text.replace("\\\n", " ")
        if self.language == "sh":
            yield text, ""
            return
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def sections(file: Path) -> dict[str, list[Block]]:
    """The blocks that a reader executes, by the heading above them."""
    found: dict[str, list[Block]] = {}
    for part in re.split(r"^#+ ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        blocks = re.findall(
            r"([^\n]*\n?[^\n]*\n)\n```(sh|console|python)\n(.*?)^```",
            part,
            re.DOTALL | re.MULTILINE,
        )
        kept = [Block(language, text, before) for before, language, text in blocks]
        if kept := [block for block in kept if INSTALL not in block.text]:
            found[part.partition("\n")[0]] = kept
    return found


README = sections(ROOT / "README.md")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel as maturin does for users, with the profile of the built extension."""
    folder = tmp_path_factory.mktemp("wheel")
    # What the Makefile touches when it has built one.
    (stamp, *_) = sorted((ROOT / ".venv").glob(".extension-*"))
    profile = stamp.name.removeprefix(".extension-")
    words = [sys.executable, "-m", "maturin", "build", "--quiet", "--profile", profile]
    words += ["--offline", "--out", f"{folder}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with all extras but that of developers; return the programs.

    Notebooks need that of the documentation.
    """
    extras = {*metadata("sojourn").get_all("Provides-Extra", ())} - {"dev"}
    return environment_with(wheel, tmp_path_factory.mktemp("installed"), extras)


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with the packages that it declares and no others."""
    return environment_with(wheel, tmp_path_factory.mktemp("plain"), set())


def environment_with(wheel: Path, folder: Path, extras: set[str]) -> Path:
    """Install a wheel and link the packages that it needs, which are installed for the tests."""
    python = folder / "venv" / "bin" / "python"
    new = [sys.executable, "-m", "venv", "--without-pip", folder / "venv"]
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    for command in (new, [*pip, "--no-index", "--no-compile", wheel]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for name in needed("sojourn", extras):
        for file in distribution(name).files or ():
            link = packages / file.parts[0]
            if file.parts[0] != ".." and not link.exists():
                link.symlink_to(Path(sysconfig.get_path("purelib")) / file.parts[0])
    return python.parent


def needed(name: str, extras: set[str]) -> set[str]:
    """Return the names of the packages that a package needs, with those that these need."""
    found: set[str] = set()
    waiting = [(name, frozenset(extras))]
    seen = set(waiting)
    while waiting:
        at, of = waiting.pop()
        for text in requires(at) or ():
            one = Requirement(text)
            if one.marker and not any(one.marker.evaluate({"extra": e}) for e in {"", *of}):
                continue
            found.add(one.name)
            more = (one.name, frozenset(one.extras))
            if more not in seen:
                seen.add(more)
                waiting.append(more)
    return found


def execute(
    installed: Path, folder: Path, *command: str | Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of the new environment, with a store of its own."""
    kept = {key: value for key, value in environment().items() if key != "PYTHONPATH"}
    path = os.pathsep.join([str(installed), kept["PATH"]])
    return subprocess.run(
        command,
        cwd=folder,
        env={**kept, **variables, "PATH": path, "SOJOURN_STORE": f"{folder}.store"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def check(done: subprocess.CompletedProcess[str], shown: str = "") -> None:
    """Check the exit code, the validity of the result, and the first lines of the output."""
    assert done.returncode == 0, done.stderr
    findings = re.findall(r"^(?:error|warning): .*", done.stdout + done.stderr, re.MULTILINE)
    # Other processes may delay the datapath of live runs.
    assert not [one for one in findings if "failed check datapath_" not in one]
    assert done.stdout.startswith(shown), done.stdout


@pytest.fixture
def variables(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Start what stands in for a bucket and a cluster, if the section needs it."""
    blocks = README[request.node.callspec.params["section"]]
    text = "".join(block.text for block in blocks)
    with ExitStack() as stack:
        found: dict[str, str] = {}
        if BUCKET in text:
            found = stack.enter_context(buckets.server()).environment
        if CLUSTER in text:
            folder = tmp_path / "cluster"
            folder.mkdir()
            found = {
                **found,
                "CLUSTER": stack.enter_context(clusters.workers(folder, 1, found)).address,
            }
        yield found


def is_slow(section: str) -> bool:
    return any(SLOW.search(block.text) for block in README[section])


@pytest.mark.parametrize(
    "section",
    [
        pytest.param(
            section, marks=[pytest.mark.slow, pytest.mark.timeout(900)] if is_slow(section) else ()
        )
        for section in README
    ],
)
def test_a_section_of_the_readme_runs_as_shown(
    section: str, installed: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    cluster = variables.pop("CLUSTER", "")
    for block in README[section]:
        if block.language == "python":
            named = re.search(r"`(\w+\.py)`", block.before)
            file = folder / (named[1] if named else "block.py")
            file.write_text(block.text, encoding="utf-8")
            check(execute(installed, folder, installed / "python", "-c", block.text + JUDGED))
            continue
        for command, shown in block.commands():
            stood_in = command.replace(CLUSTER, cluster).replace(BUCKET, f"s3://{buckets.BUCKET}/")
            # As a script: errors in the middle of a block end it.
            words = ("bash", "-e", "-o", "pipefail", "-c", stood_in)
            if "sojourn live" in command:
                live_probe.needed()
                live_probe.program("iperf3")

                def measure(words: tuple[str, ...] = words) -> subprocess.CompletedProcess[str]:
                    with live_probe.exclusively():
                        return execute(installed, folder, *words, **variables)

                done = live_probe.measured(measure, lambda done: "error:" not in done.stderr)
            else:
                done = execute(installed, folder, *words, **variables)
            check(done, shown)
    # The demonstration prints no findings.
    for page in folder.glob("*.html"):
        assert 'class="validity valid"' in page.read_text(encoding="utf-8")


def test_all_blocks_of_the_readme_are_found() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = sum(len(blocks) for blocks in README.values())
    assert len(re.findall(r"^```\w+$", text, re.MULTILINE)) == blocks + 1
    assert {block.language for blocks in README.values() for block in blocks} == {
        "console",
        "python",
    }


def test_the_first_commands_need_the_declared_packages_alone(plain: Path, tmp_path: Path) -> None:
    check(execute(plain, tmp_path, plain / "python", ROOT / "tools/try_wheel.py"))
    done = execute(plain, tmp_path, plain / "python", "-c", "import scipy")
    assert "No module named 'scipy'" in done.stderr


def test_the_installed_package_is_the_one_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import sojourn; print(sojourn.__file__)"
    done = execute(installed, tmp_path, installed / "python", "-c", code)
    assert Path(done.stdout.strip()).is_relative_to(installed.parent), done.stderr


@pytest.mark.parametrize(
    "file",
    [
        # A tutorial in make test, all in make test-full.
        *(
            pytest.param(
                file,
                id=file.stem,
                marks=[] if file.stem == "first_comparison" else pytest.mark.slow,
            )
            for file in NOTEBOOKS
        ),
        pytest.param(ROOT / "docs" / "gallery.md", marks=pytest.mark.slow, id="gallery"),
    ],
)
def test_a_notebook_runs_and_its_results_are_valid(
    file: Path, installed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    done = execute(installed, folder, installed / "python", "-c", EXECUTE, file, JUDGED)
    check(done)
    # The text explains columns of the printed table, whose headings are wrapped.
    explained = r"^\| ([A-Za-z ]+)(?:, \w+)? \| (?!meaning)"
    for words in re.findall(explained, file.read_text(encoding="utf-8"), re.MULTILINE):
        assert all(word in done.stdout for word in words.split()), words
    for blocks in sections(file).values():
        for block in blocks:
            for command, shown in block.commands():
                check(execute(installed, folder, "bash", "-e", "-c", command), shown)
