"""Write ``docs/qdiscs/worst-cases.md`` from the scenario files in ``docs/qdiscs/worst_cases``.

``--search`` searches for the worst case of each queue again, as ``make worst-cases`` does;
``--check`` reports whether the page is stale.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sojourn.search.adversary import (
    AdversaryPlan,
    Counterexample,
    NeverLosesError,
    adversary,
    read,
)
from sojourn.search.objectives import times

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "qdiscs" / "worst-cases.md"
FOLDER = ROOT / "docs" / "qdiscs" / "worst_cases"
#: Each queue with the queue that it is compared with.
PAIRS = (
    ("fq_codel", "cake"),
    ("pfifo", "fq_codel"),
    ("codel", "fq_codel"),
    ("pie", "fq_codel"),
    ("cake", "fq_codel"),
    ("dualpi2", "fq_codel"),
    ("fq_pie", "fq_codel"),
    ("sfq", "fq_codel"),
)
HEAD = """\
# Worst cases

For each queue, the scenario in which it loses most against another queue, as `sojourn adversary` found it.
`make worst-cases` searches again and writes this page.

Each search tries {trials} combinations of rate (1 to 100 Mbit/s), RTT (5 to 300 ms), loss, jitter, numbers of flows,
congestion controls and UDP rate of a download link, with one seed. The worst trial is then simplified as long as it
keeps 90 % of the regret. The regret is the logarithm of the ratio of the powers of both queues; the power is the
goodput divided by the 99th percentile of the ping. A factor of 2 means that the queue has half the power of the other
one in the same runs. The intervals (95 %) are from {runs} runs with seeds that neither the search nor the
simplification used. A search finds a bad case, not always the worst one.

| queue | against | power smaller by a factor of | scenario |
|---|---|---|---|
"""  # noqa: E501 - the text of a page


def main() -> int:
    """Search, write or check.

    Returns
    -------
    int
        The exit status: 1 if ``--check`` found a stale page, or if there are no worst cases.
    """
    parser = argparse.ArgumentParser(description="Write docs/qdiscs/worst-cases.md.")
    parser.add_argument("--search", action="store_true", help="search for the worst cases again")
    trials = AdversaryPlan.trials
    parser.add_argument("--trials", type=int, default=trials, help="trials per search")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    arguments = parser.parse_args()
    if arguments.search:
        for queue, against in PAIRS:
            FOLDER.mkdir(exist_ok=True)
            file = FOLDER / f"{queue.split()[0]}.toml"
            try:
                result = adversary(loser=queue, against=against, trials=arguments.trials)
            except NeverLosesError as error:
                # The queue loses nowhere: the page says so.
                file.unlink(missing_ok=True)
                print(f"{queue}: {error}", flush=True)
                continue
            result.write(file)
            print(f"{queue}: {result!r}", flush=True)
    text = page()
    if text is None:
        print(
            f"docs/qdiscs/worst_cases: no worst cases; expected files such as {PAIRS[0][0]}.toml, "
            "which make worst-cases writes",
            file=sys.stderr,
        )
        return 1
    if arguments.check:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/qdiscs/worst-cases.md is stale; run tools/worst_cases.py", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


def page() -> str | None:
    """Compose the page; None if no file has a worst case."""
    files = [FOLDER / f"{queue.split()[0]}.toml" for queue, _ in PAIRS]
    cases = [read(file) if file.exists() else None for file in files]
    found = next((one for one in cases if one is not None), None)
    if found is None:
        return None
    head = HEAD.format(trials=found.trials, runs=found.scenario.checked.replications)
    rows = (
        f"| `{queue}` | `{against}` | it lost in no trial | |\n" if one is None else row(one)
        for one, (queue, against) in zip(cases, PAIRS, strict=True)
    )
    return head + "".join(rows)


def row(one: Counterexample) -> str:
    """Write the row of a worst case."""
    low, high = times(one.regret_low), times(one.regret_high)
    ends = times(one.regret) if low == high else f"{times(one.regret)} [{low}, {high}]"
    name = one.arm.split()[0]
    found = "; ".join(described(one))
    return f"| `{one.arm}` | `{one.against}` | {ends} | [{found}](worst_cases/{name}.toml) |\n"


def described(one: Counterexample) -> Iterator[str]:
    """Describe the link, the path and the traffic of a worst case."""
    document = json.loads(one.scenario.checked.to_json())
    down = document["links"]["down"]
    yield f"{down['rate']}, RTT {document['rtt']}"
    if "loss" in down:
        yield f"loss {down['loss']}"
    if "jitter" in down:
        yield f"jitter {down['jitter']['spread']}"
    for block in document["traffic"]:
        if block["type"] != "ping":
            yield traffic(block)


def traffic(block: dict[str, Any]) -> str:
    """Describe a group of traffic."""
    if block["type"] == "udp":
        return f"UDP {block['rate']}"
    return f"{block['count']} {block['cc']}"


if __name__ == "__main__":
    sys.exit(main())
