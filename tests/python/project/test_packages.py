"""The shape of the package: its public names, its layers, its sizes, no circles of imports."""

import ast
import inspect
import re
import types
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from generators import modules as module_list

import sojourn as sj
from sojourn import gym

ROOT = Path(sj.__file__).parent
# Lines of a file: above the first, look for the place where a concept ends; the second fails.
SOFT, HARD = 700, 1_000
# A package imports from those before it, never from those behind it. The test of a package that is
# missing here names its place.
LAYERS = (
    "_core",
    "errors",
    "bottleneck",
    "deferred",
    "document",
    "arguments",
    "files",
    "presentation",
    "storage",
    "bibliography",
    "controls",
    "queues",
    "testing",
    "traffic",
    "scenario",
    "expressions",
    "result",
    "execute",
    "expectations",
    "host",
    "exchange",
    "live",
    "plot",
    "report",
    "sweeps",
    "advice",
    "search",
    "suites",
    "rfc7928_suite",
    "control_suite",
    "agreement",
    "studies",
    "gym",
    "public",
    "cli",
)


def modules() -> dict[str, Path]:
    """Name every module of the package, by its path below ``sojourn``; the root itself is ""."""
    named = {}
    for file in ROOT.rglob("*.py"):
        parts = file.relative_to(ROOT).with_suffix("").parts
        named[".".join(part for part in parts if part != "__init__")] = file
    return named


@cache
def parsed(file: Path) -> ast.Module:
    """Parse a file, once for all tests."""
    return ast.parse(file.read_text(encoding="utf-8"))


def imports(file: Path, known: dict[str, Path]) -> set[str]:
    """List the modules of the package that a file imports, at any depth of its code.

    A name that a package re-exports belongs to the module that the package has it from.
    """
    found = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{file}: relative import"
            if node.module.split(".")[0] != "sojourn":
                continue
            base = node.module.removeprefix("sojourn").removeprefix(".")
            found |= {origin(base, item.name, known) for item in node.names}
        elif isinstance(node, ast.Import):
            found |= {
                item.name.removeprefix("sojourn").removeprefix(".")
                for item in node.names
                if item.name.split(".")[0] == "sojourn"
            }
    return found


def origin(module: str, name: str, known: dict[str, Path]) -> str:
    """Return the module that ``from module import name`` reads."""
    below = f"{module}.{name}" if module else name
    if below in known or below == "_core":
        return below
    file = known.get(module)
    if file is None or file.name != "__init__.py":
        return module
    for node in parsed(file).body:
        if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith("sojourn."):
            for item in node.names:
                if (item.asname or item.name) == name:
                    return origin(f"{node.module}".removeprefix("sojourn."), item.name, known)
    return module


def test_the_public_names_are_those_of_the_committed_list() -> None:
    committed = (Path(__file__).parents[1] / "data" / "public_names.txt").read_text().split()
    assert sorted(sj.__all__) == committed
    assert all(hasattr(sj, name) for name in committed)


def test_no_siblings_import_each_other_in_a_circle() -> None:
    known = modules()
    assert circles({name: imports(file, known) for name, file in known.items()}) == []


def circles(edges: dict[str, set[str]]) -> list[str]:
    """List the circles among the children of each package, taken with all that is below them.

    A package and its children may import each other: `__init__` owns what they share.
    """
    siblings: dict[str, dict[str, set[str]]] = {}
    for name, targets in edges.items():
        for target in targets - {name}:
            ours, theirs = name.split("."), target.split(".")
            pairs = zip(ours, theirs, strict=False)
            shared = next((at for at, (a, b) in enumerate(pairs) if a != b), None)
            if shared is not None:
                graph = siblings.setdefault(".".join(ours[:shared]), {})
                graph.setdefault(ours[shared], set()).add(theirs[shared])
    found = []
    for package, graph in siblings.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            found.append(f"sojourn.{package}: {' <- '.join(error.args[1])}")
    return found


def test_a_circle_is_found_between_siblings_but_not_with_their_package() -> None:
    edges = {"a": {"a.low"}, "a.low": {"a"}, "a.high": {"b"}, "b": {"c.x"}, "c.x": set[str]()}
    assert circles(edges) == []
    assert circles(edges | {"a.low": {"a.high"}, "a.high": {"a.low"}}) == [
        "sojourn.a: low <- high <- low"
    ]
    # Through modules of which no two import each other.
    assert circles(edges | {"c.y": {"a.low"}}) == ["sojourn.: a <- c <- b <- a"]


def test_a_name_that_a_package_re_exports_belongs_to_its_module(tmp_path: Path) -> None:
    package, user = tmp_path / "__init__.py", tmp_path / "user.py"
    package.write_text("from sojourn.a.inner import Thing\n", encoding="utf-8")
    user.write_text("from sojourn.a import Thing, other\n", encoding="utf-8")
    known = {"a": package, "a.inner": tmp_path / "inner.py", "a.user": user}
    assert imports(user, known) == {"a.inner", "a"}


def test_the_layers_are_the_packages_of_today() -> None:
    known = modules()
    edges: dict[str, set[str]] = {}
    for name, file in known.items():
        edges.setdefault(name.split(".")[0], set()).update(
            other.split(".")[0] for other in imports(file, known)
        )
    missing = edges.keys() - {*LAYERS, "", "__main__"}
    places = {
        name: f"behind {max(edges[name] & set(LAYERS), key=LAYERS.index, default='the start')}"
        for name in missing
    }
    assert places == {}, f"missing in LAYERS: {places}"
    assert set(LAYERS) - edges.keys() == {"_core"}, "LAYERS has names of no package"


def test_packages_import_only_from_lower_layers() -> None:
    known = modules()
    checked = 0
    for name, file in known.items():
        layer = name.split(".")[0]
        if layer in {"", "__main__"}:
            continue
        for other in imports(file, known):
            imported = other.split(".")[0]
            assert imported, f"{name} imports from sojourn itself"
            assert LAYERS.index(imported) <= LAYERS.index(layer), f"{name} imports {other}"
            checked += 1
    assert checked > len(known)


def test_modules_import_no_private_names_of_each_other() -> None:
    private = [
        f"{name} imports {item.name} of {node.module}"
        for name, file in modules().items()
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ImportFrom) and f"{node.module}".split(".")[0] == "sojourn"
        for item in node.names
        # The extension, which the package has for itself.
        if item.name.startswith("_") and item.name != "_core"
    ]
    assert private == []


def test_every_module_has_a_docstring_and_a_size_within_the_limit() -> None:
    assert faults(modules()) == []


def test_a_module_without_docstring_or_above_the_limit_is_found(tmp_path: Path) -> None:
    short, bare, long = (tmp_path / name for name in ("short.py", "bare.py", "long.py"))
    short.write_text('"""Short."""\n' + "x = 1\n" * (HARD - 1), encoding="utf-8")
    bare.write_text("x = 1\n", encoding="utf-8")
    long.write_text('"""Long."""\n' + "x = 1\n" * HARD, encoding="utf-8")
    assert faults({"short": short, "bare": bare, "long": long}) == [
        "bare has no docstring",
        f"long has {HARD + 1} lines; split it where a concept ends, best below {SOFT}",
    ]


def faults(files: dict[str, Path]) -> list[str]:
    """List the modules without a docstring and those above the limit of lines."""
    found = []
    for name, file in files.items():
        text = file.read_text(encoding="utf-8")
        if not ast.get_docstring(ast.parse(text)):
            found.append(f"{name} has no docstring")
        lines = len(text.splitlines())
        # The generated lists of classes grow with the catalogue.
        if lines > HARD and module_list.GENERATED not in text:
            message = f"{name} has {lines} lines; split it where a concept ends, best below {SOFT}"
            found.append(message)
    return found


def test_only_public_names_have_sections_of_parameters() -> None:
    public = set(public_functions())
    described = [
        f"{name}.{function}"
        for name, file in modules().items()
        for function in with_sections(file.read_text(encoding="utf-8"))
    ]
    assert len(public & set(described)) > 100
    internal = sorted(set(described) - public)
    assert internal == [], "one line and types are enough for what no user calls"


def test_sections_of_parameters_are_found_in_functions_and_classes() -> None:
    sections = '"""Do.\n\n    {}\n    ------\n    x\n    """\n'
    text = f"class A:\n  def f(self):\n    {sections.format('Raises')}"
    text += f"def g():\n    {sections.format('Examples')}"
    text += f"class B:\n    {sections.format('Parameters')}"
    assert list(with_sections(text)) == ["A.f", "B"]


def public_functions() -> Iterator[str]:
    """Yield classes, methods and functions that users call, by module and name."""
    values = [getattr(sj, name) for name in sj.__all__ if name != "testing"]
    for module in (sj.testing, gym):
        values += [getattr(module, name) for name in module.__all__]
    for value in values:
        if not isinstance(value, type | types.FunctionType):
            continue
        for base in inspect.getmro(value) if isinstance(value, type) else [value]:
            name = f"{base.__module__.removeprefix('sojourn.')}.{base.__qualname__}"
            yield name
            if isinstance(base, type):
                for method in vars(base):
                    if not method.startswith("_"):
                        yield f"{name}.{method}"


def with_sections(text: str) -> Iterator[str]:
    """Yield functions and classes with a section of parameters, results or exceptions."""
    heading = re.compile(r"^(Parameters|Returns|Raises|Yields)\n-{3,}$", re.MULTILINE)

    def visit(node: ast.AST, above: tuple[str, ...]) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, ast.FunctionDef | ast.ClassDef)
            names = (*above, child.name) if named else above
            if named and heading.search(ast.get_docstring(child) or ""):
                yield ".".join(names)
            yield from visit(child, names)

    yield from visit(ast.parse(text), ())


def test_no_package_and_public_name_are_the_same() -> None:
    packages = {name.split(".")[0] for name in modules()}
    assert packages & set(sj.__all__) == {"testing"}


def test_the_architecture_names_every_crate_and_package_on_one_page() -> None:
    root = ROOT.parents[1]
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    crates = [file.parent.name for file in root.glob("crates/*/Cargo.toml")]
    missing = [name for name in crates if f"\ncrates/{name}/" not in text]
    rows = re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE)
    packages = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    missing += [name for name in LAYERS if (ROOT / name).is_dir() and name not in packages]
    assert missing == []
    assert len(text.splitlines()) <= 200


def test_the_list_of_modules_has_every_module_of_python_once() -> None:
    checked = 0
    for initial in [ROOT / "__init__.py", *ROOT.glob("*/**/__init__.py")]:
        files = [file for file in initial.parent.glob("*.py") if not file.stem.startswith("__")]
        table = listed(initial.parent.relative_to(ROOT.parents[1]).as_posix())
        names = []
        for row in re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE):
            # `first` … `last`: one row for the generated modules of a package.
            first, *last = re.findall(r"`(\w+)`", row)
            names += generated_between(files, first, *last) if last else [first]
        assert sorted(names) == sorted(file.stem for file in files), initial.parent
        checked += len(names)
    packages = [name for name, file in modules().items() if name and file.name == "__init__.py"]
    assert checked == len(modules()) - len(packages) - len({"", "__main__"})


def listed(place: str) -> str:
    """Return the section of a folder from the list of modules."""
    _, section = list_of_modules().split(f"\n## `{place}`\n")
    return section.split("\n## ")[0]


@cache
def list_of_modules() -> str:
    """Return the list of modules, which reads all files."""
    return str(module_list.page(ROOT.parents[1]))


def generated_between(files: list[Path], first: str, last: str) -> list[str]:
    """List the generated modules from the first name to the last, which are among them."""
    marked = [file for file in files if module_list.GENERATED in file.read_text(encoding="utf-8")]
    names = [file.stem for file in marked]
    assert {first, last} <= set(names)
    return [name for name in names if first <= name <= last]


def test_the_list_of_modules_has_those_of_rust_but_those_of_tests() -> None:
    rust = listed("crates/qdisc")
    assert rust.count("| `fair::cocoa` |") == 1
    # `cargo test` alone compiles it.
    assert "trajectory" not in rust
    assert all(listed(place) for place in module_list.OTHERS)


def test_a_module_of_tests_is_found_by_its_declaration(tmp_path: Path) -> None:
    (tmp_path / "queue.rs").write_text(
        '#[cfg(test)]\n#[path = "x.rs"]\nmod tests;\nmod law;\n', encoding="utf-8"
    )
    (tmp_path / "lib.rs").write_text("mod queue;\n#[cfg(test)]\nmod oracle;\n", encoding="utf-8")
    found = module_list._test_modules(tmp_path)  # noqa: SLF001 - what the list leaves out
    assert found == {tmp_path / "queue" / "tests", tmp_path / "oracle"}
