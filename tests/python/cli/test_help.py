"""The help pages: headings, one style, one meaning of each option name, and two lengths."""

import re
from typing import Any

import pytest
from typer.core import TyperOption

import sojourn as sj
from sojourn.cli.app import COMMANDS, app
from sojourn.cli.commands import HELP_ALL, rare
from support.commands import commands

# Options of one name that differ between commands, and why.
DIFFERENT = {
    "--out": "what the directory is for",
    "--replications": "of an arm, a point, a trial, or a trial and arm",
    "--final-replications": "of the trials on the front, or of the two arms",
    "--on": "sweeps and searches also run on clusters",
    "--arm": "a sweep may have several; a search needs one",
    "--parameter": "the values of sweeps and those of searches",
    "--metric": "of a table, of what is printed, or of an analysis",
    "--link": "the rates of a line, or the name of a link",
    "--list": "scenarios, or what can be drawn",
    "--section": "of RFC 7928 or of RFC 9743",
    "--check": "what a suite confirms",
    "--against": "standard controls, or an arm",
    "--group": "classes of queues have metrics, and no series",
    "--max-memory": "of the runs, or of a result that a report loads",
}
METAVAR = re.compile(r"[A-Z]+(?:[:=|/][A-Z]+)*")


def options() -> list[tuple[str, str, TyperOption]]:
    """Each option of each command: words of the command, longest name and option."""
    return [
        (words, max(one.opts, key=len), one)
        for words, command in commands().items()
        for one in command.params
        if isinstance(one, TyperOption)
    ]


def test_options_have_a_heading_a_help_text_and_a_noun() -> None:
    wrong = []
    for words, name, one in options():
        text = one.help or ""
        if one.rich_help_panel is None:
            wrong.append(f"{words} {name}: no heading")
        if not text or not text[0].isupper() or not text.endswith("."):
            wrong.append(f"{words} {name}: not a sentence: {text}")
        if "default" in text.lower():
            wrong.append(f"{words} {name}: the default is part of the help: {text}")
        # In brackets, the value may be left out.
        if not one.is_flag and not METAVAR.fullmatch((one.metavar or "").strip("[]")):
            wrong.append(f"{words} {name}: metavar {one.metavar}")
    assert not wrong, "\n".join(wrong)


def test_numbers_show_their_range_and_defaults_have_one_style(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ranges = 0
    for words, command in commands().items():
        for one in getattr(command.callback, "arguments", ()):
            if one.number is not None and one.option:
                (option,) = (each for each in command.params if each.name == one.name)
                assert one.limits is not None, (words, one.name)
                assert option.help.removesuffix(" Repeatable.").endswith(f"Range: {one.limits}.")
                ranges += 1
    assert ranges > 25
    app(["advise", HELP_ALL], standalone_mode=False, prog_name="sojourn")
    shown = capsys.readouterr().out
    assert "[default: that of the preset]" in shown
    assert "[default: (" not in shown


def test_arguments_are_described_by_a_noun_and_a_sentence() -> None:
    for words, command in commands().items():
        for one in command.params:
            if not isinstance(one, TyperOption):
                assert METAVAR.fullmatch(one.metavar), (words, one.metavar)
                assert one.help.endswith("."), (words, one.help)


def test_an_option_has_one_meaning() -> None:
    found: dict[str, dict[tuple[Any, ...], list[str]]] = {}
    for words, name, one in options():
        # Few users of one command may need what those of another use every day.
        meaning = (one.help, one.metavar)
        found.setdefault(name, {}).setdefault(meaning, []).append(words)
    differing = {name for name, meanings in found.items() if len(meanings) > 1}
    assert not {name: found[name] for name in differing - DIFFERENT.keys()}
    assert differing >= DIFFERENT.keys(), "these no longer differ"


@pytest.mark.parametrize("command", ["compare", "run", "live", "advise"])
def test_the_help_leaves_out_what_few_users_need(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app([command, "--help"], standalone_mode=False, prog_name="sojourn")
    short = capsys.readouterr().out
    app([command, HELP_ALL], standalone_mode=False, prog_name="sojourn")
    whole = capsys.readouterr().out
    left_out = [max(one.opts, key=len) for one in rare(commands()[command])]
    assert len(left_out) >= 3
    for name in left_out:
        assert f"│ {name} " not in short
        assert f"│ {name} " in whole
    last = [line for line in short.splitlines() if line.strip()][-1].strip()
    assert last == f"{len(left_out)} more options: sojourn {command} {HELP_ALL}"
    assert "more options" not in whole


def test_half_of_the_options_are_rare() -> None:
    every = options()
    hidden = [name for _, name, one in every if one.hidden]
    assert 0.45 < len(hidden) / len(every) < 0.6


def test_every_command_prints_its_whole_help(capsys: pytest.CaptureFixture[str]) -> None:
    every = commands()
    for words in ("", "store", *every):
        app([*words.split(), HELP_ALL], standalone_mode=False, prog_name="sojourn")
        whole = capsys.readouterr().out
        assert f"Usage: sojourn {words}".strip() in whole
        for one in every[words].params if words in every else ():
            if isinstance(one, TyperOption):
                assert f" {max(one.opts, key=len)} " in whole, words


def test_the_lines_of_a_description_end_where_the_terminal_does() -> None:
    for words, command in commands().items():
        paragraphs = (command.help or "").split("\n\n")
        assert not any("\n" in one for one in paragraphs), words


def test_the_commands_are_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    app(["--help"], standalone_mode=False)
    shown = capsys.readouterr().out
    for heading, members in COMMANDS.items():
        panel = shown.split(f"─ {heading} ─")[1].split("╰")[0]
        for name, _, _ in members:
            assert f"│ {name} " in panel


def test_every_command_refuses_what_is_not_utf_8() -> None:
    checked = 0
    for words, command in commands().items():
        before: list[str] = []
        for one in command.params:
            if getattr(one, "is_flag", False):
                continue
            is_option = isinstance(one, TyperOption)
            name = max(one.opts, key=len) if is_option else one.metavar
            given = (
                # The value of an option in brackets may be left out.
                [f"{name}=b\udcff"]
                if is_option and f"{one.metavar}".startswith("[")
                else [name, "b\udcff"]
                if is_option
                else [*before, *["b\udcff"] * (one.nargs if one.nargs > 0 else 1)]
            )
            before += [] if is_option else ["x"]
            with pytest.raises(sj.ScenarioError) as error:
                command.make_context(words, given)
            assert str(error.value) == f"{name} b\ufffd: not UTF-8; expected text in UTF-8"
            checked += 1
    assert checked > 150


@pytest.mark.parametrize(
    ("given", "view", "words"),
    [
        (["ping", "--view"], None, ["ping", "--view"]),
        (["--view", "ping", "-c", "1"], "terminal", ["ping", "-c", "1"]),
        (["--view"], "terminal", []),
        (["--view", "--", ":8080"], "terminal", [":8080"]),
        (["--view", ":8080", "ping"], ":8080", ["ping"]),
        (["--view", "[::1]:8080", "ping", "--view", ":1"], "[::1]:8080", ["ping", "--view", ":1"]),
        (["--view", "8080", "--", "ping"], "8080", ["ping"]),
        (["--view", ":x", "--", "ping"], ":x", ["ping"]),
        (["--view=127.0.0.1:8080", "ping"], "127.0.0.1:8080", ["ping"]),
        (["--view=x", "ping"], "x", ["ping"]),
        (["--server", "--view", "ping"], None, ["ping"]),
        (["-s", "a=1", "--view", "localhost:80", "ping"], "localhost:80", ["ping"]),
    ],
)
def test_the_address_of_a_view_may_be_left_out(
    given: list[str], view: str | None, words: list[str]
) -> None:
    parameters = commands()["live"].make_context("live", given).params
    assert (parameters["view"], list(parameters["words"])) == (view, words)


def test_a_view_between_the_words_of_a_bridge_is_an_option() -> None:
    parameters = commands()["bridge"].make_context("bridge", ["a", "--view", "b"]).params
    assert [parameters[name] for name in ("near", "view", "far")] == ["a", "terminal", "b"]
