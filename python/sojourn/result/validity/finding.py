"""A finding on a result, and the verdict that follows from all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from sojourn.deferred import Deferred
from sojourn.presentation.model import Paragraph, Styled, Table

if TYPE_CHECKING:
    from sojourn.presentation import html
else:
    # Needed only to show findings in a notebook.
    html = Deferred("sojourn.presentation.html")


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A limitation of the result.

    Parameters
    ----------
    severity
        An error invalidates conclusions, a warning weakens them, a note is information.
    text
        What was measured, with its number.
    of_arms
        Whether it is about several differences between arms, which an experiment may have chosen.
    """

    severity: Severity
    text: str
    of_arms: bool = False

    @property
    def weakens(self) -> bool:
        """Whether it limits conclusions: an error or a warning."""
        return self.severity is not Severity.NOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """The findings on a result.

    Parameters
    ----------
    findings
        Errors first, then warnings, then notes.
    """

    findings: Sequence[Finding]

    @property
    def verdict(self) -> str:
        """``"invalid"`` with an error, ``"weak"`` with a warning, else ``"valid"``."""
        severities = {finding.severity for finding in self.findings}
        if Severity.ERROR in severities:
            return "invalid"
        return "weak" if Severity.WARNING in severities else "valid"

    @property
    def error(self) -> str | None:
        """The first error; None without one."""
        errors = (one.text for one in self.findings if one.severity is Severity.ERROR)
        return next(errors, None)

    def _repr_html_(self) -> str:
        """Return verdict and findings as HTML, for notebooks."""
        rows = [[finding.severity, finding.text] for finding in self.findings]
        table = [Table(["severity", "finding"], rows, words=2)] if rows else []
        return html.fragment([Paragraph([Styled("validity:"), f" {self.verdict}"]), *table])


def error(text: str) -> Finding:
    """Make a finding that invalidates conclusions."""
    return Finding(severity=Severity.ERROR, text=text)


def warning(text: str) -> Finding:
    """Make a finding that weakens conclusions."""
    return Finding(severity=Severity.WARNING, text=text)


def note(text: str) -> Finding:
    """Make a finding that is information."""
    return Finding(severity=Severity.NOTE, text=text)
