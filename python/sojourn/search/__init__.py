"""Search the parameters of a scenario: the best settings, sensitivities and the worst case."""

from sojourn.search.adversary_result import AdversaryResult
from sojourn.search.analysing import sensitivity
from sojourn.search.hunting import adversary
from sojourn.search.sensitivity_result import SensitivityResult
from sojourn.search.tune_result import TuneResult
from sojourn.search.tuning import tune

__all__ = [
    "AdversaryResult",
    "SensitivityResult",
    "TuneResult",
    "adversary",
    "sensitivity",
    "tune",
]
