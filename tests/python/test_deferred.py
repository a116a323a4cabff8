"""Modules that are imported on first use."""

import subprocess
import sys

import pytest

import sojourn as sj
from sojourn.deferred import Deferred


def test_a_deferred_module_has_its_names_or_those_of_a_list() -> None:
    assert Deferred("math").sqrt(9.0) == 3.0
    listed = Deferred("math", ("sqrt",))
    assert listed.sqrt(9.0) == 3.0
    with pytest.raises(AttributeError, match="no attribute 'cos'; math is imported on first use"):
        _ = listed.cos
    with pytest.raises(ModuleNotFoundError, match="no_module"):
        _ = Deferred("no_module").name


def test_importing_sojourn_or_its_core_imports_nothing_else() -> None:
    program = (
        "import sys, sojourn\nfrom sojourn import _core\nassert sojourn.__version__\n"
        "print(sorted({'polars', 'matplotlib', 'numpy', 'sojourn.public'} & set(sys.modules)))\n"
        "assert sojourn.CoDel\nprint('matplotlib' in sys.modules, 'polars' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "False True"]


def test_the_package_lists_public_names_only() -> None:
    assert set(dir(sj)) == {*sj.__all__, "__version__"}
    assert sj.plot_cdf.__module__ == "sojourn.plot.figures"
    with pytest.raises(AttributeError, match="module 'sojourn' has no attribute 'CoDell'"):
        _ = sj.CoDell
