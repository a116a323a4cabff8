"""``benches/cluster.py`` with few short runs."""

import re
import subprocess
import sys

import pytest

from support.shell import ROOT, environment


@pytest.mark.slow
def test_the_benchmark_compares_threads_and_workers() -> None:
    words = [sys.executable, f"{ROOT / 'benches/cluster.py'}"]
    words += ["--runs", "20", "--pairs", "1", "--duration", "3"]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    found = re.search(
        r"^4 threads: ([\d.]+) s\nDask, 4 workers: ([\d.]+) s\nratio: ([\d.]+)$",
        done.stdout,
        re.MULTILINE,
    )
    assert found is not None, done.stdout + done.stderr
    threads_s, cluster_s, ratio = (float(text) for text in found.groups())
    assert ratio == pytest.approx(cluster_s / threads_s, rel=0.2)
    assert done.returncode == (1 if ratio > 1.1 else 0)
