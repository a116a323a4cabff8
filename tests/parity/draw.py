"""Draws congestion windows and smoothed RTTs, ours beside the kernel's.

usage: draw.py DIR      (writes DIR/cwnd_<congestion control>.png)

The numbers are those of `sojourn-parity --series`: the first repetition, every 0.5 s.
"""

import subprocess
import sys
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

SCENARIOS = {
    "Reno": {
        "R4_reno_100m_100ms_fq_codel": "100 Mbit/s, 100 ms, FQ-CoDel",
        "R8_reno_10m_100ms_codel": "10 Mbit/s, 100 ms, CoDel",
    },
    "CUBIC": {
        "R1_100m_100ms_codel": "100 Mbit/s, 100 ms, CoDel",
        "R1_10m_100ms_codel": "10 Mbit/s, 100 ms, CoDel",
    },
    "HighSpeed": {
        "R8_highspeed_100m_100ms_codel": "100 Mbit/s, 100 ms, CoDel",
        "R8_highspeed_100m_10ms_pfifo1000": "100 Mbit/s, 10 ms, FIFO of 1000 packets",
    },
    "DCTCP": {
        "R8_dctcp_100m_100ms_red_step": "100 Mbit/s, 100 ms, RED with a step",
        "R8_dctcp_10m_100ms_red_step": "10 Mbit/s, 100 ms, RED with a step",
    },
    "BBR": {
        "R4_bbr_100m_100ms_pfifo1000": "100 Mbit/s, 100 ms, FIFO of 1000 packets",
        "R8_bbr_10m_100ms_codel": "10 Mbit/s, 100 ms, CoDel",
    },
}
COLUMNS = (("window [segments]", 1, 2), ("smoothed RTT [ms]", 3, 4))
"""What a panel shows, and the columns of the table with ours and the kernel's."""


def series(name: str) -> list[list[float | None]]:
    """Return the rows of the table."""
    command = [
        "cargo",
        "run",
        "--release",
        "--quiet",
        "-p",
        "sojourn-parity",
        "--",
        "--series",
        name,
    ]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in text.splitlines()[2:])
    return [[None if word == "-" else float(word) for word in row[:5]] for row in rows]


def draw(cc: str, names: dict[str, str], path: Path) -> None:
    """Draw one figure: a row of axes per scenario."""
    figure = Figure(figsize=(9.0, 2.4 * len(names) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(names), len(COLUMNS), squeeze=False)
    for across, (name, title) in zip(panels, names.items(), strict=True):
        rows = series(name)
        time = [row[0] for row in rows]
        for axes, (label, ours, linux) in zip(across, COLUMNS, strict=True):
            axes.plot(
                time,
                [row[linux] for row in rows],
                label="Linux 6.1",
                color="#0072B2",
                linewidth=2.4,
                alpha=0.5,
            )
            axes.plot(
                time, [row[ours] for row in rows], label="Sojourn", color="#D55E00", linewidth=1.0
            )
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
            axes.set_xlim(0, time[-1])
            axes.set_title(title, fontsize=8)
            axes.grid(visible=True, color="#DDDDDD", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[-1]:
        axes.set_xlabel("time [s]")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, title=cc)
    figure.savefig(path, dpi=110)


def main(folder: Path) -> None:
    """Draw the figure of each control into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for cc, names in SCENARIOS.items():
        draw(cc, names, folder / f"cwnd_{cc.lower()}.png")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
