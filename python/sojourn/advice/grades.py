"""Grades: thresholds of what users experience, each with its source."""

from dataclasses import dataclass

from sojourn.result.catalogue import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The grades of a measure."""

    metric: Metric
    steps: tuple[tuple[str, float], ...]
    worst: str
    higher: bool
    meaning: str
    source: str

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters, the best first."""
        return (*(letter for letter, _ in self.steps), self.worst)

    def grade(self, value: float | None) -> str:
        """Grade a value; a missing value has the worst grade.

        Examples
        --------
        >>> PING.grade(12.0), PING.grade(400.0), PING.grade(None)
        ('A', 'F', 'F')
        """
        if value is not None:
            for letter, bound in self.steps:
                if value >= bound if self.higher else value < bound:
                    return letter
        return self.worst

    def below_best(self, value: float | None) -> int:
        """Count the grades between the best one and that of a value."""
        return self.letters.index(self.grade(value))


PING = Scale(
    metric=Metric(
        column="ping_increase_ms_p99",
        label="game ping",
        unit="ms",
        digits=0,
    ),
    steps=(("A+", 5.0), ("A", 30.0), ("B", 60.0), ("C", 200.0), ("D", 400.0)),
    worst="F",
    higher=False,
    meaning="increase over the idle line: A+ below 5 ms, A 30 ms, B 60 ms, C 200 ms, D 400 ms",
    source="DSLReports, Bufferbloat Grades (dslreports.com/faq/17930), which grade means",
)
CALL = Scale(
    metric=Metric(column="mos", label="call", unit="MOS", digits=2),
    steps=(("A", 4.34), ("B", 4.03), ("C", 3.6), ("D", 3.1)),
    worst="F",
    higher=True,
    meaning="A from 4.34 (very satisfied), B 4.03 (satisfied), C 3.60 (some dissatisfied), D 3.10",
    source="ITU-T G.107 Annex B and G.109",
)
PAGE = Scale(
    metric=Metric(column="page_s", label="web page", unit="s", digits=1),
    steps=(("A", 2.5), ("C", 4.0)),
    worst="F",
    higher=False,
    meaning="A up to 2.5 s (good), C up to 4 s (needs improvement)",
    source="Google, Core Web Vitals: Largest Contentful Paint; here for a page of 512 kB",
)
RPM = Scale(
    metric=Metric(column="rpm", label="responsiveness", unit="RPM", digits=0),
    steps=(("A+", 6000.0), ("A", 1000.0), ("C", 300.0)),
    worst="F",
    higher=True,
    meaning="A+ from 6000 (excellent), A 1000 (good), C 300 (fair)",
    source="draft-ietf-ippm-responsiveness-06, section 1.2",
)
SCALES = (PING, CALL, PAGE, RPM)
