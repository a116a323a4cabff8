"""Modules that are imported on first use."""

import subprocess
import sys

import pytest

import sojourn as sj
from sojourn.deferred import Deferred


def test_a_deferred_module_has_its_names_or_those_of_a_list() -> None:
    assert Deferred("math").sqrt(9.0) == 3.0
    listed = Deferred("math", names=("sqrt",))
    assert listed.sqrt(9.0) == 3.0
    with pytest.raises(AttributeError, match="no attribute 'cos'; imported on first use: math"):
        _ = listed.cos
    with pytest.raises(ModuleNotFoundError, match="no_module"):
        _ = Deferred("no_module").name


def test_a_package_has_names_of_several_modules() -> None:
    several = Deferred("math", "cmath", names=("sqrt", "isclose", "polar"))
    assert several.sqrt(9.0) == 3.0
    assert several.polar(1.0) == (1.0, 0.0)
    assert sj.queues.Cake is sj.Cake
    with pytest.raises(ImportError, match="CoDell"):
        from sojourn.queues import CoDell  # noqa: F401, PLC0415


def test_importing_sojourn_or_its_core_imports_nothing_else() -> None:
    program = (
        "import sys; before = set(sys.modules)\n"
        "import sojourn\nfrom sojourn import _core\nassert sojourn.__version__\n"
        "others = {name for name in sys.modules if name.partition('.')[0] not in "
        "sys.stdlib_module_names}\nprint(sorted(others - before))\n"
        "assert sojourn.CoDel\nprint('matplotlib' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    own = ["sojourn", "sojourn._core", "sojourn.deferred"]
    assert done.stdout.splitlines() == [f"{own}", "False"]


def test_the_package_lists_public_names_only() -> None:
    assert set(dir(sj)) == {*sj.__all__, "__version__"}
    assert sj.plot_cdf.__module__ == "sojourn.plot.figures"
    with pytest.raises(AttributeError, match="module 'sojourn' has no attribute 'CoDell'"):
        _ = sj.CoDell
