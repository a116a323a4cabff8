"""Processes that store runs, killed at random moments."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import sojourn as sj
from sojourn import _core
from sojourn.execute.runs import begin
from support.shell import environment
from support.stored import scenario_file, segments

CHILD = textwrap.dedent("""
    import os, sys
    import sojourn as sj

    scenario = sj.Scenario.from_file(sys.argv[1])
    # Imported before the first child.
    from sojourn import _core as core
    from sojourn.execute import runs

    for line in sys.stdin:
        folder = line.strip()
        if (child := os.fork()) == 0:
            invocation = runs.begin(core.RunStore(folder), scenario.checked, backend=None,
                                    resume=False)
            tell = lambda *_: os.write(1, b"%d\\n" % invocation.committed)
            core.run(scenario.checked, jobs=2, progress=tell, invocation=invocation)
            tell()
            os.write(1, b"end\\n")
            os._exit(0)
        os.write(1, b"pid %d\\n" % child)
        os.waitpid(child, 0)
        os.write(1, b"dead\\n")
""")


def test_killed_runs_lose_nothing_that_was_committed(tmp_path: Path) -> None:
    """``SOJOURN_KILLS`` is the number of kills: 15 by default, 500 in ``make test-full``."""
    kills = int(os.environ.get("SOJOURN_KILLS", "15"))
    file = scenario_file(tmp_path, replications=150)
    scenario = sj.Scenario.from_file(file)
    server = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=environment(),
    )
    assert server.stdin is not None
    assert server.stdout is not None
    chance = random.Random(1)  # noqa: S311 - for the moments of the kills
    cut = 0
    for number in range(kills):
        folder = tmp_path / f"store{number}"
        print(folder, file=server.stdin)
        pid = int(server.stdout.readline().removeprefix("pid "))
        time.sleep(chance.uniform(0.0, 0.7))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        lines = iter(server.stdout.readline, "dead\n")
        committed = max((int(line) for line in lines if line.strip().isdigit()), default=0)
        invocation = begin(_core.RunStore(folder), scenario.checked, backend=None, resume=True)
        found = len(invocation.finished)
        assert found >= committed, f"kill {number}: {committed} committed, {found} found"
        parts = [(run, invocation.read(run)) for run in invocation.finished]
        whole = [(run, part) for run, part in parts if part is not None]
        assert len(whole) == found, f"kill {number}: a run is damaged"
        assert _core.Outcome.assemble(scenario.checked, whole).finished == found
        cut += 0 < found < scenario.runs
        invocation.discard()
        assert segments(folder) == [], f"kill {number}"
    server.stdin.close()
    server.stdout.close()
    assert server.wait(timeout=30) == 0
    assert cut > 0, "no kill hit a run that had stored a part"
