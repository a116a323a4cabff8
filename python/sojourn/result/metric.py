"""The declaration of a metric."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

Kind = Literal["run", "study", "study_group", "group", "class", "application"]
Role = Literal["headline", "compared", "detail", "minor"]
# The most important first.
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of a run, of a group of flows or of a group of applications."""

    column: str
    label: str
    unit: str
    digits: int
    kind: Kind = "run"
    description: str = ""
    shown: bool = True
    role: Role = "detail"

    @property
    def rank(self) -> int:
        """Place of the role in the order of importance, from 0."""
        return ROLES.index(self.role)

    @property
    def heading(self) -> str:
        """Label and unit, for the heading of a column."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label

    def named(self, column: str) -> "Metric | None":
        """Return the metric of `column`, if this declaration describes it."""
        if column == self.column:
            return self
        before, brace, rest = self.column.partition("{")
        placeholder, _, after = rest.partition("}")
        fits = len(column) > len(before) + len(after)
        if not (brace and fits and column.startswith(before) and column.endswith(after)):
            return None
        name = column[len(before) : len(column) - len(after)]
        return replace(self, column=column, label=self.label.replace(f"{{{placeholder}}}", name))
