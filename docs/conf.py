"""Configuration of the documentation site: ``make docs`` builds it into target/site.

The source directory is the repository, so that the links between documents work on the site as they
do in the checkout.
"""

import sys
from pathlib import Path

import sojourn

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Sojourn"
author = "The Sojourn developers"
copyright = author  # noqa: A001 - the name that Sphinx reads
version = release = sojourn.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sojourn_reference",
]

root_doc = "docs/index"
include_patterns = [
    "*.md",
    "crates/transport/tests/micro/README.md",
    "docs/**.md",
    "examples/**README.md",
    "kernel/README.md",
    "papers/**README.md",
    "tests/**README.md",
]
exclude_patterns = [
    "target",
    ".venv",
    "results",
    "python",
    "tests/python",
    "**/__pycache__",
]

# A broken link, a reference without target or an undocumented public name is a warning, and
# `make docs` makes every warning an error.
nitpicky = True
nitpick_ignore_regex = [
    # Types of other packages: their documentation is not needed to build ours.
    (
        r"py:.*",
        r"(polars|pl|numpy|np|matplotlib|gymnasium|datetime|pathlib|collections|typing|enum|os)\..*",
    ),
    (r"py:class", r"(Any|Callable|Iterable|Iterator|Mapping|Sequence|Path|Literal|Self)"),
    (r"py:class", r"(DataFrame|Figure|Axes|timedelta|optional|ClassVar.*)"),
]
# Private classes in the signatures of public names.
nitpick_ignore = [
    ("py:class", "sojourn._core.Claim"),
    ("py:class", "sojourn._core.Invocation"),
    ("py:class", "sojourn._core.Outcome"),
    ("py:class", "sojourn._core.Scenario"),
    ("py:class", "sojourn.advice.advice.Question"),
    ("py:class", "sojourn.advice.candidates.Candidate"),
    ("py:class", "sojourn.advice.measures.Scale"),
    ("py:class", "sojourn.agreement.comparison.FailedCheck"),
    ("py:class", "sojourn.document.Brief"),
    ("py:class", "sojourn.document.Table"),
    ("py:class", "sojourn.execute.executor.Executor"),
    ("py:class", "sojourn.gym.tasks.Numbers"),
    ("py:class", "sojourn.queues.base.Entry"),
    ("py:class", "sojourn.queues.base.Text"),
    ("py:class", "sojourn.search.settings.Settings"),
    ("py:class", "sojourn.search.adversary.Counterexample"),
    ("py:class", "sojourn.result.estimates.Estimates"),
    ("py:class", "sojourn.rfc7928_suite.discussion.Discussion"),
    ("py:class", "sojourn.rfc7928_suite.suite.Characterisation"),
    ("py:class", "sojourn.control_suite.evaluation.Evaluation"),
]

# Options such as --strict keep their two hyphens.
smartquotes = False

# MyST
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
# A `$` before a shell command or a price is no formula.
myst_dmath_allow_space = False
myst_dmath_allow_digits = False

# Notebooks are Markdown files with code cells; they run at every build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 120
nb_merge_streams = True

# Python API
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_validation_checks = {"GL08"}  # A public name without a docstring.

# HTML
html_theme = "pydata_sphinx_theme"
html_title = "Sojourn"
html_static_path = ["_static"]
html_css_files = ["sojourn.css"]
# The lab has no sections, and needs the room.
html_sidebars = {"docs/lab": []}
html_extra_path = ["_extra", "../THIRD-PARTY-LICENSES"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
