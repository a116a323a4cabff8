"""The shape of the package: its public names, its layers, and no circles of imports."""

import ast
import re
from pathlib import Path

from generators import architecture

import sojourn as sj

ROOT = Path(sj.__file__).parent
# A package imports from those before it, never from those behind it.
LAYERS = (
    "_core",
    "deferred",
    "document",
    "files",
    "folder",
    "markup",
    "storage",
    "bibliography",
    "controls",
    "queues",
    "testing",
    "traffic",
    "scenario",
    "expressions",
    "result",
    "expectations",
    "host",
    "exchange",
    "plot",
    "report",
    "sweeps",
    "advice",
    "search",
    "rfc7928_suite",
    "agreement",
    "studies",
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


def imports(file: Path, known: dict[str, Path]) -> set[str]:
    """List the modules of the package that a file imports, at any depth of its code."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{file}: relative import"
            if node.module.split(".")[0] != "sojourn":
                continue
            base = node.module.removeprefix("sojourn").removeprefix(".")
            for item in node.names:
                below = f"{base}.{item.name}" if base else item.name
                found.add(below if below in known or below == "_core" else base)
        elif isinstance(node, ast.Import):
            found |= {
                item.name.removeprefix("sojourn").removeprefix(".")
                for item in node.names
                if item.name.split(".")[0] == "sojourn"
            }
    return found


def test_the_public_names_are_those_of_the_committed_list() -> None:
    committed = (Path(__file__).parents[1] / "data" / "public_names.txt").read_text().split()
    assert sorted(sj.__all__) == committed
    assert all(hasattr(sj, name) for name in committed)


def test_no_modules_import_each_other_in_a_circle() -> None:
    # A package, its `__init__`, is a module like any other, whatever it re-exports.
    known = modules()
    edges = {name: imports(file, known) - {name} for name, file in known.items()}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"circle of imports: {' -> '.join((*above, name))}"
        if name not in done:
            for other in sorted(edges.get(name, ())):
                visit(other, (*above, name))
            done.add(name)

    for name in sorted(known):
        visit(name, ())
    assert len(done) >= len(known) > len(LAYERS)


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
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and f"{node.module}".split(".")[0] == "sojourn"
        for item in node.names
        # The extension, which the package has for itself.
        if item.name.startswith("_") and item.name != "_core"
    ]
    assert private == []


def test_every_module_has_a_docstring_and_at_most_500_lines() -> None:
    assert faults(modules()) == []


def test_a_module_without_docstring_or_with_501_lines_is_found(tmp_path: Path) -> None:
    short, bare, long = (tmp_path / name for name in ("short.py", "bare.py", "long.py"))
    short.write_text('"""Short."""\n' + "x = 1\n" * 499, encoding="utf-8")
    bare.write_text("x = 1\n", encoding="utf-8")
    long.write_text('"""Long."""\n' + "x = 1\n" * 500, encoding="utf-8")
    assert faults({"short": short, "bare": bare, "long": long}) == [
        "bare has no docstring",
        "long has 501 lines",
    ]


def faults(files: dict[str, Path]) -> list[str]:
    """List the modules without a docstring and those of more than 500 lines."""
    found = []
    for name, file in files.items():
        text = file.read_text(encoding="utf-8")
        if not ast.get_docstring(ast.parse(text)):
            found.append(f"{name} has no docstring")
        if len(text.splitlines()) > 500:
            found.append(f"{name} has {len(text.splitlines())} lines")
    return found


def test_no_package_and_public_name_are_the_same() -> None:
    packages = {name.split(".")[0] for name in modules()}
    assert packages & set(sj.__all__) == {"testing"}


def test_the_module_map_has_every_module_of_python_once() -> None:
    checked = 0
    for initial in [ROOT / "__init__.py", *ROOT.glob("*/__init__.py")]:
        files = [file for file in initial.parent.glob("*.py") if not file.stem.startswith("__")]
        table = on_the_map(initial.parent.relative_to(ROOT.parents[1]).as_posix())
        names = []
        for row in re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE):
            # `first` … `last`: one row for the generated modules of a package.
            first, *last = re.findall(r"`(\w+)`", row)
            names += generated_between(files, first, *last) if last else [first]
        assert sorted(names) == sorted(file.stem for file in files), initial.parent
        checked += len(names)
    packages = {name for name in modules() if name in LAYERS and (ROOT / name).is_dir()}
    assert checked == len(modules()) - len(packages) - len({"", "__main__"})


def on_the_map(place: str) -> str:
    """Return the section of a folder from the map of modules."""
    text = (ROOT.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    _, section = text.split(f"\n### `{place}`\n")
    return re.split(r"\n### |\n<!-- end", section)[0]


def generated_between(files: list[Path], first: str, last: str) -> list[str]:
    """List the generated modules from the first name to the last, which are among them."""
    marked = [file for file in files if architecture.GENERATED in file.read_text(encoding="utf-8")]
    names = [file.stem for file in marked]
    assert {first, last} <= set(names)
    return [name for name in names if first <= name <= last]


def test_the_module_map_has_the_modules_of_rust_but_those_of_tests() -> None:
    rust = on_the_map("crates/qdisc")
    assert rust.count("| `fair::cocoa` |") == 1
    # `cargo test` alone compiles it.
    assert "trajectory" not in rust
    assert all(on_the_map(place) for place in architecture.OTHERS)


def test_a_module_of_tests_is_found_by_its_declaration(tmp_path: Path) -> None:
    (tmp_path / "queue.rs").write_text(
        '#[cfg(test)]\n#[path = "x.rs"]\nmod tests;\nmod law;\n', encoding="utf-8"
    )
    (tmp_path / "lib.rs").write_text("mod queue;\n#[cfg(test)]\nmod oracle;\n", encoding="utf-8")
    found = architecture._test_modules(tmp_path)  # noqa: SLF001 - what the map leaves out
    assert found == {tmp_path / "queue" / "tests", tmp_path / "oracle"}
