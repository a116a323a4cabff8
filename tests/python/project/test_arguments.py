"""Wrong arguments of all plans: the message names the argument as its caller wrote it."""

import ast
import importlib
import inspect
import pickle
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.core import TyperOption

import sojourn as sj
from sojourn.advice.advice import AdvicePlan
from sojourn.advice.router_config.as_scenario import AroundPlan
from sojourn.agreement.agreement import AgreePlan
from sojourn.arguments import (
    ArgumentError,
    Declared,
    FileSpelling,
    Plan,
    build,
    declared,
    read_table,
    spelled,
)
from sojourn.cli.app import COMMANDS, app
from sojourn.cli.bridge import BridgePlan
from sojourn.cli.interop import InteropPlan
from sojourn.cli.live import LivePlan
from sojourn.cli.search import SearchOutput
from sojourn.cli.session import Output
from sojourn.cli.spaces import Line
from sojourn.control_suite.api import CcCasesPlan, Rfc9743Plan
from sojourn.exchange.exporting import ExportPlan
from sojourn.execute.compare import ComparePlan
from sojourn.execute.run import RunPlan
from sojourn.expectations.expectation import ExpectPlan
from sojourn.rfc7928_suite.api import Rfc7928Plan
from sojourn.search.adversary import AdversaryPlan
from sojourn.search.sensitivity import SensitivityPlan
from sojourn.search.tune import TunePlan
from sojourn.studies.manifest import Description
from sojourn.sweeps.run import SweepPlan
from support.commands import commands
from support.searched import ARMS, TEXT
from support.shell import ROOT

SCENARIO = sj.Scenario.from_toml(TEXT)
VALUES = {"rtt": ["10ms", "20ms"]}
# Per plan: its function, its command, the name of its table, and its other arguments.
PLANS: dict[str, tuple[type[Any], Callable[..., object], str, str | None, dict[str, Any]]] = {
    "sweep": (SweepPlan, sj.sweep, "sweep", "sweep", {"parameters": VALUES}),
    "tune": (
        TunePlan,
        sj.tune,
        "tune",
        "tune",
        {"parameters": VALUES, "objectives": "min drops"},
    ),
    "sensitivity": (
        SensitivityPlan,
        sj.sensitivity,
        "sensitivity",
        None,
        {"parameters": VALUES, "metrics": "drops"},
    ),
    "adversary": (
        AdversaryPlan,
        sj.adversary,
        "adversary",
        None,
        {"parameters": VALUES, "loser": "codel", "against": "pie"},
    ),
    "run": (RunPlan, sj.run, "run", None, {}),
    "compare": (ComparePlan, sj.compare, "compare", None, {}),
    "advise": (AdvicePlan, sj.advise, "advise", None, {}),
    "live": (LivePlan, LivePlan, "live", None, {}),
    "bridge": (BridgePlan, BridgePlan, "bridge", None, {"near": "eth1", "far": "eth2"}),
    "interop": (InteropPlan, InteropPlan, "interop", None, {}),
    "import": (AroundPlan, AroundPlan, "import", None, {}),
    "agree": (AgreePlan, sj.agree, "agree", None, {}),
    "rfc7928": (Rfc7928Plan, sj.rfc7928, "rfc7928", None, {"queues": "codel"}),
    "cc_cases": (CcCasesPlan, sj.cc_cases, "cc-cases", None, {"controls": "bbr3"}),
    "rfc9743": (Rfc9743Plan, sj.rfc9743, "rfc9743", None, {"controls": "cubic"}),
    "export": (
        ExportPlan,
        sj.export,
        "export",
        None,
        {"result": sj.run(SCENARIO), "out": "out", "format": "csv"},
    ),
}
# Options that several commands add to those of their plan.
PARTS: set[type[Plan]] = {Line, Output, SearchOutput}
WITH_FILE = ("sweep", "tune", "sensitivity", "run", "agree")


# Texts that are not of a kind.
OF_NO_KIND = {
    "time": ("20", "x", "", "5mbit", "-1s"),
    "rate": ("20", "x", "", "5ms"),
    "size": ("4x", "", "1ms"),
    "queue": ("codl", "", "codel targt 5ms", "codel target x"),
    "control": ("renno", "", "cubic x 1"),
}


def wrong(one: Declared) -> Iterator[Any]:
    """Yield values that the declaration of an argument refuses."""
    argument = one.argument
    if one.number is not None:
        yield from ("x", True, [1])
        if argument.least is not None:
            yield argument.least - 1
        if argument.above is not None:
            yield argument.above
        if argument.most is not None:
            yield argument.most + 1
    elif one.choices:
        yield from ("x", "", one.choices[0][:-1], 3)
    elif one.is_mapping:
        yield from (3, "x", ["x"])
    elif one.items is not None:
        yield from (3, [3] if one.items is str else ["x"], [True], {"x": 1})
        if argument.least_items:
            yield []
    else:
        yield from (3.5, {"x": 3})
        if bool not in one.members:
            yield True


def tables(plan: type[Plan]) -> set[type[Plan]]:
    """A plan, and those of the tables within it."""
    inner = [one.table for one in declared(plan) if one.table is not None]
    return {plan}.union(*map(tables, inner))


# Modules whose texts have options of other programs, or commands that are written into documents.
FREE = (
    "arguments/",
    "exchange/mahimahi.py",
    "exchange/tc_script.py",
    "host/checks.py",
    "host/kernels.py",
    "presentation/html.py",
    "report/page.py",
    "studies/bundle.py",
    "studies/outputs.py",
    "studies/page.py",
    "studies/readme.py",
    "traffic/program.py",
)
CASES = [
    (name, one, value)
    for name, (plan, *_) in PLANS.items()
    for one in declared(plan)
    for value in (*wrong(one), *OF_NO_KIND.get(f"{one.argument.kind}", ()))
]
# Those of study.toml and [[expect]], which no function has.
OF_FILES = {ExpectPlan, *tables(Description)}
IN_TABLES = [
    (plan, one, value)
    for plan in sorted(OF_FILES, key=lambda plan: plan.__name__)
    for one in declared(plan)
    for value in wrong(one)
]
IN_FILES = [case for case in CASES if PLANS[case[0]][3] is not None and case[1].argument.in_files]


def is_word(one: Declared, value: object) -> bool:
    """Whether a value is a word of the command line."""
    if not one.option.startswith("-") or one.is_mapping or isinstance(value, bool):
        return False
    return isinstance(value, str if one.number is None else str | int | float)


def arguments_of_commands() -> dict[str, list[Declared]]:
    """The arguments that each command has: those of its plans and its own."""
    found = {}
    for members in COMMANDS.values():
        for name, module, function in members:
            loaded = getattr(importlib.import_module(f"sojourn.cli.{module}"), function)
            if isinstance(loaded, typer.Typer):
                found |= {
                    f"{name} {one.name}": one.callback.arguments
                    for one in loaded.registered_commands
                }
            else:
                found[name] = loaded.arguments
    return found


OF_COMMANDS = arguments_of_commands()
# Public classes of which each method that has arguments checks them.
WITH_METHODS = (sj.Result, sj.SweepResult)


def callables() -> dict[str, Callable[..., object]]:
    """The public functions without a plan, and the methods, by name."""
    planned = {function for _, function, *_ in PLANS.values()}
    public = {name: getattr(sj, name) for name in sj.__all__}
    functions = {name: one for name, one in public.items() if inspect.isfunction(one)}
    found = {name: one for name, one in functions.items() if one not in planned}
    for owner in WITH_METHODS:
        for name in vars(owner):
            method = getattr(owner, name)
            if not name.startswith("_") and callable(method):
                found[f"{owner.__name__}.{name}"] = method
    return found


CALLABLES = callables()
# Called by the package only, or without an argument that could be wrong.
UNCHECKED = {"Result.save_claimed"}
SEVERAL = inspect.Parameter.VAR_POSITIONAL
WRONG_TYPES = [
    (name, one, value)
    for name, function in CALLABLES.items()
    for one in getattr(function, "arguments", ())
    for value in (*wrong(one), *OF_NO_KIND.get(f"{one.argument.kind}", ()))
]
WRONG_OPTIONS = [
    (name, one, value)
    for name, arguments in OF_COMMANDS.items()
    for one in arguments
    for value in (*wrong(one), *OF_NO_KIND.get(f"{one.argument.kind}", ()))
    if is_word(one, value)
]


def subclasses(plan: type[Plan]) -> set[type[Plan]]:
    """All plans that inherit from a plan."""
    own = {one for one in plan.__subclasses__() if one.__module__.startswith("sojourn.")}
    return own.union(*(subclasses(one) for one in own))


def test_all_plans_of_functions_and_commands_are_tried() -> None:
    for module in pkgutil.walk_packages(sj.__path__, "sojourn."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    tried = {plan for plan, *_ in PLANS.values()}
    parts = {base for plan in tried for base in plan.__mro__} | PARTS | OF_FILES
    assert {plan.__qualname__ for plan in subclasses(Plan) - parts} == set()
    assert subclasses(Plan) >= tried | PARTS


@pytest.mark.parametrize("name", PLANS)
def test_each_plan_has_ten_wrong_arguments(name: str) -> None:
    assert sum(plan == name for plan, _, _ in CASES) >= 10


@pytest.mark.parametrize(("name", "one", "value"), CASES)
def test_a_function_names_the_argument(name: str, one: Declared, value: object) -> None:
    _, function, _, _, others = PLANS[name]
    scenario = {"scenario": SCENARIO} if name in WITH_FILE else {}
    with pytest.raises(ArgumentError) as error:
        function(**{**scenario, **others, one.name: value})
    assert re.match(rf"{one.name}(: |=.+: )", f"{error.value}"), f"{error.value}"
    assert "--" not in f"{error.value}"
    assert f"{pickle.loads(pickle.dumps(error.value))}" == f"{error.value}"  # noqa: S301


@pytest.mark.parametrize(("name", "one", "value"), IN_FILES)
def test_a_file_names_the_key(name: str, one: Declared, value: object) -> None:
    plan, _, _, table, _ = PLANS[name]
    assert table is not None
    with pytest.raises(ArgumentError) as error:
        read_table(plan, table, {one.name: value})
    assert re.match(rf"{table}\.{one.name}(: | .+: )", f"{error.value}"), f"{error.value}"


@pytest.mark.parametrize(
    ("plan", "one", "value"), IN_TABLES, ids=lambda part: getattr(part, "__name__", None)
)
def test_a_table_of_a_file_names_the_key(plan: type[Plan], one: Declared, value: object) -> None:
    with pytest.raises(ArgumentError) as error:
        build(plan, "table", {one.name: value})
    assert re.match(rf"table\.{one.name}(: | .+: )", f"{error.value}"), f"{error.value}"


@pytest.mark.parametrize(("name", "one", "value"), WRONG_OPTIONS)
def test_every_command_names_the_option(name: str, one: Declared, value: object) -> None:
    words = []
    for other in OF_COMMANDS[name]:
        optional = other.is_list and not other.argument.least_items
        if other.is_required and other.name != one.name and not optional:
            word = next(iter(other.choices), "x")
            words += [word] if other.is_word else [other.option, word]
    with pytest.raises(ArgumentError, match=rf"^{re.escape(one.option)} .*: "):
        app([*name.split(), *words, f"{one.option}={value}"], standalone_mode=False)


def test_options_of_every_command_are_declared() -> None:
    """None is written for Typer alone, whose errors and checks are others."""
    for name, command in commands().items():
        listed = {max(one.opts, key=len) for one in command.params if isinstance(one, TyperOption)}
        declarations = {one.option for one in OF_COMMANDS[name]}
        assert listed <= declarations, name
    tried = {(name, one.option) for name, one, _ in WRONG_OPTIONS}
    assert tried >= {
        ("report", "--max-memory"),
        ("reproduce", "--replications"),
        ("export", "--replication"),
        ("test", "--replications"),
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"on": "dask://h:1"}, "on='dask://h:1': requires shared; expected s3://"),
        ({"shared": "gs://x"}, "shared='gs://x': expected s3://bucket/prefix or a directory"),
        ({"max_replications": 9}, "max_replications: requires until, such as"),
        ({"where": "rtt > 5"}, "where='rtt > 5': compares a time with a plain number"),
        ({"where": '"rtt" > 5ms'}, 'where=\'"rtt" > 5ms\': compares a time with the text "rtt";'),
        ({"until": "dorps ±2"}, "until='dorps ±2': unknown metric \"dorps\"; did you mean"),
        ({"sampling": "lhs"}, "sampling='lhs': expected lhs:COUNT or sobol:COUNT"),
        ({"parameters": {"rtt": "uniform(1ms,2ms)"}}, "parameters['rtt']: a range requires sampl"),
    ],
)
def test_what_a_sweep_requires_is_an_argument_of_the_function(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ArgumentError, match=f"^{re.escape(said)}"):
        sj.sweep(**{"scenario": SCENARIO, "parameters": VALUES, **given})


def test_texts_of_the_user_are_no_placeholders() -> None:
    error = ArgumentError("where", "{until}", "unknown {name}; requires {until}", name="{until}")
    assert f"{error}" == "where='{until}': unknown {until}; requires until"
    with pytest.raises(ArgumentError) as raised, spelled(FileSpelling("sweep")):
        raise error
    assert f"{raised.value}" == 'sweep.where "{until}": unknown {until}; requires sweep.until'


def owner_of(name: str) -> tuple[object, ...]:
    """The object whose method is called; its arguments are checked before it is used."""
    return () if "." not in name or name.endswith(".load") else (object(),)


def test_public_functions_and_methods_check_their_arguments() -> None:
    unchecked = {name for name, one in CALLABLES.items() if not hasattr(one, "arguments")}
    assert unchecked == UNCHECKED
    assert len(CALLABLES) > 30


@pytest.mark.parametrize(("name", "one", "value"), WRONG_TYPES)
def test_a_function_without_a_plan_names_the_argument(
    name: str, one: Declared, value: object
) -> None:
    function, owner = CALLABLES[name], owner_of(name)
    signature = inspect.signature(function)
    others = {
        other.name: None
        for other in list(signature.parameters.values())[len(owner) :]
        if other.default is inspect.Parameter.empty and other.kind is not SEVERAL
    }
    # Arguments are checked in order; those before the wrong one have to be valid.
    valid = {
        "result": object.__new__(sj.Result),
        "path": "x",
        "directory": "x",
        "format": "csv",
        "metric": "drops",
        "baseline": "a",
        "case": "5.1",
        "other": "b",
        "count": 1,
        "rate": "10mbit",
        "queues": {"a": sj.Pfifo()},
        "outcome": object.__new__(sj.Outcome),
    }
    given = {key: valid.get(key) for key in others}
    is_several = signature.parameters[one.name].kind is SEVERAL
    words = [value] if is_several else []
    given |= {} if is_several else {one.name: value}
    with pytest.raises(ArgumentError) as error:
        function(*owner, *words, **given)
    assert re.match(rf"{one.name}(: |=.+: )", f"{error.value}"), f"{error.value}"


@pytest.fixture(scope="module")
def result() -> sj.Result:
    return sj.run(sj.Scenario.from_toml(TEXT + ARMS), replications=1)


@pytest.fixture(scope="module")
def swept(result: sj.Result) -> sj.SweepResult:
    return sj.sweep(result.scenario, VALUES, replications=1)


@pytest.fixture(scope="module")
def folder(result: sj.Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("results")
    result.save(place / "one")
    (place / "two.toml").write_text(TEXT + ARMS, encoding="utf-8")
    return place


OF_RESULTS: list[tuple[Callable[[sj.Result], object], str]] = [
    (lambda of: of.table("runs"), "by='runs': unknown; expected run, group"),  # type: ignore[arg-type]
    (lambda of: of.summary("flow"), "by='flow': unknown; expected run, group"),  # type: ignore[arg-type]
    (lambda of: of.difference("x", "a"), "baseline='x': no finished run of this arm; expected one"),
    (lambda of: of.difference("a", "x"), "other='x': no finished run of this arm; expected one of"),
    (lambda of: of.to_pandas("flow"), "table='flow': unknown table; expected one of"),
    (lambda of: of.to_latex("drop"), "metric='drop': unknown metric; expected some of"),
    (lambda of: of.to_latex(arms=["x"]), "arms='x': no finished run of this arm"),
    (lambda of: of.to_latex(baseline="x"), "baseline='x': no finished run of this arm"),
    (lambda of: of.to_latex(group="x"), "group='x': unknown group; expected one of bulk"),
    (lambda of: of.to_latex(label="a b"), "label='a b': invalid label; expected one such as"),
    (lambda of: sj.export(of, "x", "cvs"), "format='cvs': unknown; expected flent, csv"),
    (lambda of: sj.export(of, "x", "csv", arm="x"), "arm='x': no finished run of this arm"),
    (lambda of: sj.export(of, "x", "csv", replication=9), "replication=9: no finished run; exp"),
    (lambda of: sj.plot_cdf(of, "drp"), "metric='drp': unknown metric; expected one of"),
    (lambda of: sj.plot_cdf(of, "drops", kind="series"), "kind='series': the metric drops is one"),
    (lambda of: sj.plot_series(of, arms=["x"]), "arms='x': no finished run of this arm"),
    (lambda of: sj.plot_series(of, group="x"), "group='x': unknown group; expected one of bulk"),
    (lambda of: sj.plot_ellipse(of, "ping"), "metric='ping': an ellipse cannot show this metric"),
    (lambda of: sj.plot_cdf(of, size=(0, 1)), "size=(0, 1): invalid size; expected width and"),
    (
        lambda of: sj.run(of.scenario, pcap="x.pcapng"),
        "pcap='x.pcapng': requires one arm and one replication; the",
    ),
    (
        lambda of: sj.run(of.scenario, max_memory="1kb"),
        "max_memory='1kb': too little for memory: the process itself (",
    ),
]


@pytest.mark.parametrize(("call", "said"), OF_RESULTS)
def test_wrong_values_for_a_result_name_the_argument(
    call: Callable[[sj.Result], object], said: str, result: sj.Result
) -> None:
    with pytest.raises(ArgumentError, match=f"^{re.escape(said)}"):
        call(result)


OF_SWEEPS: list[tuple[Callable[[sj.SweepResult], object], str]] = [
    (lambda of: of.table("group"), "by='group': unknown; expected run or point"),  # type: ignore[arg-type]
    (lambda of: of.difference("x", "a"), "baseline='x': no finished run of this arm"),
    (lambda of: of.difference("a", "x"), "other='x': no finished run of this arm"),
    (lambda of: of.column("drop"), "metric='drop': unknown metric; did you mean \"drops\"?"),
    (lambda of: of.best("drops", arm="x"), "arm='x': unknown arm; expected one of a, b"),
    (lambda of: of.pivot("drops", rows="rtd"), "rows='rtd': unknown parameter; expected one of"),
    (lambda of: of.pivot("drops", rows="arm", columns="arm"), "columns: the sweep has no second"),
    (lambda of: of.heatmap("drops", y="rtd"), "y='rtd': unknown parameter; expected one of rtt"),
    (lambda of: of.lines("drops", x="rtd"), "x='rtd': unknown parameter; expected one of rtt"),
    (lambda of: of.box("drops", fixed={"rtt": 1}), "fixed['rtt']: no point with 1; expected one"),
    (lambda of: of.box("drops", fixed={"rtd": 1}), "fixed='rtd': unknown parameter; expected"),
    (
        lambda of: sj.sweep(of.scenario, VALUES, max_memory="1kb"),
        "max_memory='1kb': too little for the scenarios and metrics of 2 points",
    ),
]


@pytest.mark.parametrize(("call", "said"), OF_SWEEPS)
def test_wrong_values_for_a_sweep_name_the_argument(
    call: Callable[[sj.SweepResult], object], said: str, swept: sj.SweepResult
) -> None:
    with pytest.raises(ArgumentError, match=f"^{re.escape(said)}"):
        call(swept)


def test_wrong_values_of_a_parking_lot_name_the_argument() -> None:
    with pytest.raises(ArgumentError, match=r"^queues: empty; expected at least one"):
        sj.parking_lot(rate="10mbit", queues={})
    with pytest.raises(ArgumentError, match=r"^rate=.x.: not a rate: it must start"):
        sj.parking_lot(rate="x", queues={"a": sj.Pfifo()})


OF_WORDS = [
    ("export one --format cvs", "--format cvs: unknown; expected flent, csv"),
    ("export one --format csv --arm zz", "--arm zz: no finished run of this arm; expected one"),
    ("export one --format csv --replication 9", "--replication 9: no finished run; expected 0 to"),
    ("stats one --arm zz", "--arm zz: no finished run of this arm; expected one of a, b"),
    ("stats one --replication 9", '--replication 9: not finished in arm "a"; expected one of 0'),
    ("report one --latex - --baseline foo", "--baseline foo: no finished run of this arm"),
    ("report one --latex - --metric foo", "--metric foo: unknown metric; expected some of"),
    ("report one --latex - --group foo", "--group foo: unknown group; expected one of bulk"),
    ("run two.toml --pcap x", "--pcap x: requires one arm and one replication"),
    ("run two.toml --arm zz", "--arm zz: unknown arm; expected one of a, b"),
    ("run two.toml --max-memory 1kb", "--max-memory 1kb: too little for memory: the process"),
    ("run two.toml --max-memory 1kb --dry-run", "--max-memory 1kb: too little for memory: the"),
    ("sweep two.toml -p rtt=1ms,2ms --max-memory 1kb", "--max-memory 1kb: too little for the sc"),
    ("sweep two.toml -p rtt=1,2", "-p rtt: 1 is not a time; expected a unit"),
    ("sweep two.toml -p rtd=1ms,2ms", "-p rtd: unknown key"),
    ("sweep two.toml -p links.*.rat=1mbit,2mbit", "-p links.*.rat: "),
    ("tune two.toml --objective drops --arm a -p rtd=1ms,2ms", "-p rtd: unknown key"),
    ("compare --traffic rrulx", '--traffic rrulx: unknown traffic; did you mean "rrul"?'),
    ("compare --traffic udp_flood --cc bbr", "--cc bbr: no effect: traffic"),
    ("run two.toml --jobs x", "--jobs x: expected a whole number"),
    ("run two.toml --report=", '--report "": empty; expected a path'),
    ("adversary two.toml --loser codell --against pie -p rtt=1ms,9ms", "--loser codell: unknown"),
    ("compare --max-memory 1kb", "--max-memory 1kb: too little for "),
]


@pytest.mark.parametrize(("words", "said"), OF_WORDS)
def test_wrong_values_of_commands_name_the_option(
    words: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(ArgumentError, match=f"^{re.escape(said)}"):
        app(words.split(), standalone_mode=False)


def test_a_wrong_value_of_a_parameter_names_the_argument_and_the_point() -> None:
    scenario = sj.Scenario.from_toml(TEXT + ARMS)
    said = "parameters['rtt']: 1 is not a time; expected a unit, such as \"1s\" (point rtt=1"
    for function in (sj.sweep, partial(sj.tune, objectives="min drops", arm="a")):
        with pytest.raises(ArgumentError, match=f"^{re.escape(said)}"):
            function(scenario, {"rtt": [1, 2]})
    with pytest.raises(ArgumentError, match=r"^parameters\['traffic.bulk.cc'\]: .*unknown cong"):
        sj.sweep(scenario, {"traffic.bulk.cc": ["renno", "cubic"]})
    with pytest.raises(
        ArgumentError, match=r"^parameters\['links.\*.rate'\]: links.down.rate: 1 is"
    ):
        sj.sweep(scenario, {"links.*.rate": [1, 2]})


def test_a_wrong_value_of_a_parameter_names_the_line_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = '[sweep.parameters]\nrtt = ["1ms", "x"]\n'
    (tmp_path / "a.toml").write_text(TEXT + table, encoding="utf-8")
    line = (TEXT + table).splitlines().index('rtt = ["1ms", "x"]') + 1
    said = rf"^a\.toml: sweep\.parameters: rtt: .*not a time.*\(point rtt=x\) \(line {line}\)$"
    with pytest.raises(ArgumentError, match=said):
        app(["sweep", "a.toml"], standalone_mode=False)


def options_in(text: str) -> list[str]:
    """The options in the texts of a module; declarations of arguments name theirs."""
    tree = ast.parse(text)
    declarations = {
        id(keyword.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "option"
    }
    return [
        option
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in declarations
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", node.value)
    ]


def test_no_text_outside_of_the_command_has_an_option() -> None:
    package = ROOT / "python/sojourn"
    found = {
        name: options_in(file.read_text(encoding="utf-8"))
        for file in sorted(package.rglob("*.py"))
        if not (name := file.relative_to(package).as_posix()).startswith("cli/")
    }
    assert len(found) > 100
    having = [name for name, options in found.items() if options]
    assert [name for name in having if not name.startswith(FREE)] == []
    assert [free for free in FREE if not any(name.startswith(free) for name in having)] == []


def test_an_option_in_a_text_is_found() -> None:
    text = 'Argument(help="a", option="--b")\nraise Error(f"{x}: expected --trials, not -p")\n'
    assert options_in(text) == ["--trials"]


@pytest.mark.parametrize(
    ("function", "given", "said"),
    [
        (
            sj.run,
            {"scenario": SCENARIO, "foo": 1},
            "run() got an unexpected keyword argument 'foo'",
        ),
        (
            sj.sweep,
            {"trails": 1, "jobz": 1},
            "sweep() got an unexpected keyword argument 'trails'",
        ),
        (
            sj.tune,
            {"trails": 3},
            "tune() got an unexpected keyword argument 'trails'; did you mean 'trials'?",
        ),
        (sj.sweep, {}, "sweep() missing a required argument: 'scenario'"),
    ],
)
def test_wrong_calls_name_the_function(
    function: Callable[..., object], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError) as error:
        function(**given)
    assert f"{error.value}" == said


def test_numbers_of_numpy_are_numbers() -> None:
    by_name = {one.name: one for one in declared(TunePlan)}
    checked = by_name["trials"].check(np.int64(2))
    assert checked == 2
    assert type(checked) is int
    trials: Any = np.int64(2)
    made = TunePlan(SCENARIO, VALUES, "min drops", trials=trials)
    assert type(made.trials) is int
    with pytest.raises(ArgumentError, match=r"^trials: expected a whole number, not "):
        by_name["trials"].check(np.float32(2))
    with pytest.raises(ArgumentError, match=r"^trials: expected a whole number, not "):
        by_name["trials"].check(np.bool_(1))


def test_fractions_of_numpy_are_numbers() -> None:
    (keep,) = (one for one in declared(AdversaryPlan) if one.name == "keep")
    checked = keep.check(np.float32(0.5))
    assert checked == 0.5
    assert type(checked) is float
    with pytest.raises(ArgumentError, match=r"^keep=2: expected "):
        keep.check(np.int32(2))


def test_shares_are_percentages() -> None:
    given: Any = 95
    with pytest.raises(ArgumentError, match=r"^shares: expected a list of percentages, such as 95"):
        sj.advise(link="10/1mbit", layer="docsis", shares=given)
    given = ["x"]
    with pytest.raises(ArgumentError, match=r"^shares: expected numbers, not "):
        sj.advise(link="10/1mbit", layer="docsis", shares=given)


def test_an_unknown_layer_is_named_once() -> None:
    with pytest.raises(
        ArgumentError, match=r"^layer='x': unknown layer; expected a link layer such as"
    ):
        sj.advise(link="10/1mbit", layer="x")


def test_too_little_memory_for_a_report_names_its_option(folder: Path) -> None:
    with pytest.raises(sj.DamagedResultError, match=r"; see --max-memory$"):
        app(["report", f"{folder / 'one'}", "--max-memory", "1b"], standalone_mode=False)
