"""Arguments of public functions, each declared once as a field of a plan.

A plan is a frozen dataclass whose fields are annotated with :class:`Argument`. From it follow the
signature and the docstring of the Python function (:func:`takes`), the options of the command
(:mod:`sojourn.cli.plans`), the keys of the table in scenario files (:func:`read_table`), their JSON
Schema (:func:`table_schema`) and the checks of types, ranges and choices (:class:`Plan`).

Errors know their argument: an :class:`ArgumentError` is written as the caller wrote the argument,
``trials=0`` in Python, ``--trials 0`` on the command line and ``tune.trials 0`` in a file.
"""

from sojourn.arguments.declaration import (
    Argument,
    Declared,
    Plan,
    build,
    checked,
    declared,
    read_table,
    table_schema,
    takes,
)
from sojourn.arguments.errors import (
    NOT_GIVEN,
    ArgumentError,
    FileSpelling,
    OutputError,
    Spelling,
    in_argument,
    replaceable,
    spelled,
)

__all__ = [
    "NOT_GIVEN",
    "Argument",
    "ArgumentError",
    "Declared",
    "FileSpelling",
    "OutputError",
    "Plan",
    "Spelling",
    "build",
    "checked",
    "declared",
    "in_argument",
    "read_table",
    "replaceable",
    "spelled",
    "table_schema",
    "takes",
]
