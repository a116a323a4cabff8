"""Sphinx extension: pages generated from the program, and the check that they are complete.

Before the sources are read it writes, into ``docs/reference/generated``,

* ``python.md`` and a page per group of public Python names, for autodoc,
* ``cli.md``, the commands and their options, from the Typer application,
* ``study.md``, the keys of ``study.toml``, from their declarations,
* ``modules.md``, the crates, packages and modules with their first sentences.

After they are read it warns about every name in ``sojourn.__all__`` that no page documents. At the
end it copies the output of ``cargo doc`` to ``rust/``.
"""

import html
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import typer
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from typer.cli import get_docs_for_click

import sojourn
from sojourn import gym
from sojourn.arguments import Plan, declared
from sojourn.cli.app import app as command_line
from sojourn.cli.commands import show_rare
from sojourn.result.tables import ResultTables
from sojourn.search.search_result import SearchResult
from sojourn.studies.manifest import Description

LOGGER = logging.getLogger(__name__)

# The groups of public names by use: file name, title, introduction.
GROUPS = {
    "result": ("Run and compare", "Running a scenario, and what a run yields."),
    "sweep": ("Sweep", "Running a scenario with many values of its parameters."),
    "search": ("Search", "The best values, those that matter, and the worst case."),
    "live": ("Live", "Comparing simulated runs with live ones."),
    "advice": (
        "Advice and RFC 7928",
        "Settings for a router; a queue in the scenarios of the RFC.",
    ),
    "figures": ("Figures", "Figures of a result, drawn with matplotlib."),
    "scenario": ("Scenarios", "What to simulate: links, arms, durations."),
    "traffic": ("Traffic", "Traffic over the links."),
    "queues": ("Queues", "The queue disciplines, with the parameters that `tc` gives them."),
    "controls": ("Congestion controls", "The congestion controls and their parameters."),
    "testing": (
        "Testing",
        "Bottlenecks for protocol stacks, checks for your queues, queues without a simulation.",
    ),
    "exchange": ("Exchange", "Results for other programs, and their measurements."),
    "units": ("Units", "Numbers with a unit, for parameters that need one."),
    "errors": ("Errors", "What is raised when an input is wrong."),
}
# The names with which a reader begins; on each page the other functions follow, then classes.
FIRST = ("run", "compare", "Result", "Scenario", "Link", "Arm", "PythonQueue")


def _group(name: str) -> str:
    """Return the group that a public name belongs to."""
    thing = getattr(sojourn, name)
    if isinstance(thing, ModuleType):
        return name if name in GROUPS else "scenario"
    module = str(getattr(thing, "__module__", ""))
    if isinstance(thing, type) and issubclass(thing, Exception):
        return "errors"
    if name == "qdisc" or (isinstance(thing, type) and issubclass(thing, sojourn.Queue)):
        return "queues"
    for words, group in (
        (("queues",), "queues"),
        (("control", "congestion", "cc"), "controls"),
        (("traffic", "application", "distribution"), "traffic"),
        (("sweeps",), "sweep"),
        (("search",), "search"),
        (("advice", "rfc7928", "control_suite"), "advice"),
        (("agreement",), "live"),
        (("result", "execute"), "result"),
        (("exchange",), "exchange"),
        (("bottleneck",), "testing"),
        (("quantities",), "units"),
        (("figure", "plot"), "figures"),
    ):
        if any(part.startswith(words) for part in module.split(".")[1:]):
            return group
    return "scenario"


def _directive(name: str) -> str:
    """Return the autodoc directive for a public name."""
    thing = getattr(sojourn, name)
    if isinstance(thing, ModuleType):
        # The names that follow are those of the package again.
        back = ".. currentmodule:: sojourn\n"
        return f".. automodule:: sojourn.{name}\n   :members:\n\n{back}"
    if isinstance(thing, type):
        kind = "autoexception" if issubclass(thing, Exception) else "autoclass"
        # What a result inherits is documented with it: its base class is private.
        is_result = issubclass(thing, ResultTables | SearchResult)
        bases = "inherited-members" if is_result else "show-inheritance"
        return f".. {kind}:: {name}\n   :members:\n   :{bases}:\n"
    kind = "autofunction" if callable(thing) else "autodata"
    return f".. {kind}:: {name}\n"


def _python_page(title: str, introduction: str, names: Iterable[str]) -> str:
    entries = "\n".join(_directive(name) for name in names)
    summary = "".join(f"   {name}\n" for name in names)
    return (
        f"# {title}\n\n{introduction}\n\n```{{eval-rst}}\n.. currentmodule:: sojourn\n\n"
        f".. autosummary::\n   :nosignatures:\n\n{summary}\n{entries}```\n"
    )


def _gym_page() -> str:
    """Return the page of the module that needs Gymnasium, whose names `sojourn` does not have."""
    entries = "".join(
        f".. {'autoclass' if isinstance(getattr(gym, name), type) else 'autofunction'}:: {name}\n"
        f"{'   :members:' if isinstance(getattr(gym, name), type) else ''}\n\n"
        for name in gym.__all__
    )
    return (
        "# sojourn.gym\n\n[Reinforcement learning](../../howto/gym.md) has examples.\n\n"
        "```{eval-rst}\n.. currentmodule:: sojourn.gym\n\n" + entries + "```\n"
    )


def _write_python(folder: Path) -> None:
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    names = [*FIRST, *(name for name in sojourn.__all__ if name not in FIRST)]
    for name in sorted(
        names, key=lambda name: name not in FIRST and isinstance(getattr(sojourn, name), type)
    ):
        groups[_group(name)].append(name)
    written = []
    for group, names in groups.items():
        if names:
            title, introduction = GROUPS[group]
            _write(folder / f"{group}.md", _python_page(title, introduction, names))
            written.append(f"* [{title}]({group}.md): {introduction}")
    _write(folder / "gym.md", _gym_page())
    written.append("* [sojourn.gym](gym.md): environments for reinforcement learning.")
    pages = "\n".join(written)
    entries = "\n".join([*(group for group, names in groups.items() if names), "gym"])
    _write(
        folder / "python.md",
        "# Python API\n\n"
        "`import sojourn as sj`. The names on these pages are the public API; what they promise "
        "is in the [policy](../../policy.md).\n\n"
        f"{pages}\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n",
    )


def _write_cli(folder: Path) -> None:
    command: Any = typer.main.get_command(command_line)
    command.commands = {name: one.load() for name, one in command.commands.items()}
    for one in command.commands.values():
        for each in (one, *getattr(one, "commands", {}).values()):
            show_rare(each)
            # Typer cuts longer summaries in the list of commands.
            each.short_help = each.help.partition("\n\n")[0]
    context = typer.Context(command, info_name="sojourn")
    text = get_docs_for_click(obj=command, ctx=context, name="sojourn")
    _write(folder / "cli.md", text.replace("# `sojourn`", "# Command line", 1))


def _write_study(folder: Path) -> None:
    parts = "".join(f"\n## {header}\n\n{text}" for header, text in _tables(Description, ""))
    _write(
        folder / "study.md",
        "# Keys of study.toml\n\n[Writing a study](../../howto/write_study.md#studytoml) shows "
        f"them in an example.\n{parts}",
    )


def _tables(plan: type[Plan], path: str) -> Iterator[tuple[str, str]]:
    """Yield the header of a table and of those within it, and the table of their keys."""
    keys = declared(plan)
    rows = "".join(
        f"| `{one.name}` | {' or '.join(one.choices) or one.expected.lower()} | "
        f"{'required' if one.is_required else one.argument.unset or one.default or ''} | "
        f"{one.argument.help} |\n"
        for one in keys
    )
    head = "| key | value | default | meaning |\n|---|---|---|---|"
    yield f"`{path}`" if path else "At the top of the file", f"{plan.__doc__}\n\n{head}\n{rows}"
    for one in keys:
        if one.table is not None:
            outer = f"{path.strip('[]')}.".lstrip(".")
            inner = f"[{outer}{one.name}]" if one.items else f"{outer}{one.name}.NAME"
            yield from _tables(one.table, f"[{inner}]")


def _write_modules(folder: Path, root: Path) -> None:
    sys.path.insert(0, str(root / "tools"))
    from generators import modules  # noqa: PLC0415 - a package of the tools

    _write(folder / "modules.md", modules.page(root))


def _write(path: Path, text: str) -> None:
    """Write a file unless it is up to date, so that an unchanged page is not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _generate(app: Sphinx, _config: Config) -> None:
    folder = Path(app.srcdir) / "docs" / "reference" / "generated"
    folder.mkdir(exist_ok=True)
    _write_python(folder)
    _write_cli(folder)
    _write_study(folder)
    _write_modules(folder, Path(app.srcdir))


def _hide_decisions(app: Sphinx, _doctree: object) -> None:
    """Keep records of decisions out of the navigation and the search; contributors have links."""
    name = app.env.docname
    if name.startswith("docs/adr/"):
        app.env.metadata[name].update(orphan=True, nosearch=True)


def _check_complete(_app: Sphinx, environment: BuildEnvironment) -> None:
    documented = {entry[0] for entry in environment.get_domain("py").get_objects()}
    for name in sojourn.__all__:
        if f"sojourn.{name}" not in documented:
            LOGGER.warning("sojourn.%s is public and no page documents it", name)
        elif not getattr(sojourn, name).__doc__:
            LOGGER.warning("sojourn.%s is public and has no docstring", name)


def _copy_rustdoc(app: Sphinx, error: Exception | None) -> None:
    """Put the output of ``cargo doc`` beside the site, with a page that lists the crates."""
    built = Path(app.srcdir) / "target" / "doc"
    if error is not None or not built.is_dir():
        return
    target = Path(app.outdir) / "rust"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(built, target)
    items = []
    for manifest in sorted(Path(app.srcdir).glob("crates/*/Cargo.toml")):
        package = tomllib.loads(manifest.read_text(encoding="utf-8"))["package"]
        library = package["name"].replace("-", "_")
        if (target / library).is_dir():
            about = html.escape(package.get("description", ""))
            items.append(f'<li><a href="{library}/index.html">{library}</a>: {about}</li>')
    (target / "index.html").write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Rust crates of Sojourn</title>'
        f"<h1>Rust crates of Sojourn</h1><ul>{''.join(items)}</ul></html>\n",
        encoding="utf-8",
    )


def _write_lab(app: Sphinx, error: Exception | None) -> None:
    """Put the simulator beside the scripts of the lab; without it, the page says so."""
    if error is not None:
        return
    sys.path.insert(0, str(Path(app.srcdir) / "tools"))
    import lab  # noqa: PLC0415 - a tool

    target = Path(app.outdir) / "_static" / "lab" / "generated.js"
    _write(target, lab.script(lab.MODULE) if lab.MODULE.exists() else lab.NO_SCRIPT)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension to Sphinx."""
    app.connect("config-inited", _generate)
    app.connect("doctree-read", _hide_decisions)
    app.connect("env-check-consistency", _check_complete)
    app.connect("build-finished", _copy_rustdoc)
    app.connect("build-finished", _write_lab)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
