"""``sojourn doctor``: check whether this machine supports live runs."""

import json as js
from dataclasses import asdict

from sojourn.cli import tables
from sojourn.cli.options import Json
from sojourn.cli.session import ENVIRONMENT, say
from sojourn.host import checks, facts

HEAD = ("check", "finding", "verdict", "remedy")


def doctor(*, json: Json = False) -> int:
    """Check whether this machine supports live runs, and suggest remedies."""
    found = checks.assess(facts.read())
    if json:
        print(js.dumps([asdict(check) for check in found], indent=2))
    else:
        rows = [[one.name, one.finding, one.verdict, one.remedy] for one in found]
        tables.print_table(HEAD, rows, title="live runs on this machine", words=len(HEAD))
    if checks.possible(found):
        say("live runs are possible")
        return 0
    missing = ", ".join(
        one.name for one in found if one.required and one.verdict is checks.Verdict.MISSING
    )
    say(f"live runs are not possible: {missing}")
    return ENVIRONMENT
