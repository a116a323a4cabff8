"""Keep the generated files of `papers/` current: recorded verdicts, figures, READMEs, tables.

    python tools/studies.py --write OUT --scale quick|full   # OUT: of `sojourn reproduce all`
    python tools/studies.py --readme                         # write READMEs and tables again
    python tools/studies.py --check                          # exit with 1 if one is stale
    python tools/studies.py --compare OUT                    # compare with the recorded quick runs

`--write` copies the verdicts of each study in OUT to `papers/STUDY/quick.json` or `full.json`,
merges the times of its runs into `runtime.json` and, of full runs, copies the figures.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from generators.files import File, replace_between
from PIL import Image

from sojourn.studies import calibration, outputs, readme, record, runtime
from sojourn.studies import study as studies
from sojourn.studies.study import Scale, Study

ROOT = Path(__file__).parents[1]
PAPERS = "papers"
BEGIN = "<!-- begin generated: studies -->"
END = "<!-- end generated: studies -->"
# Pages with the table of all studies, and the directory of the studies relative to them.
TABLES = {"README.md": "papers/", "papers/README.md": ""}
# Widest figure, in pixels, and its colours.
WIDEST = 1400
COLOURS = 256


def loaded(root: Path) -> list[Study]:
    """Read all studies."""
    folder = root / PAPERS
    return [studies.load(folder / name) for name in studies.names(folder)]


def generated(root: Path, found: list[Study]) -> Iterator[File]:
    """Yield the READMEs, the tables and the texts in recorded verdicts, as they should be."""
    rows = []
    for study in found:
        place = study.folder.relative_to(root)
        records = {
            name: record.with_texts(study, one)
            for name in record.FILES
            if (one := record.load(study.folder / name)) is not None
        }
        for name, one in records.items():
            yield File(f"{place}/{name}", outputs.as_json(one).encode())
        best = next(iter(records.values()), None)
        rows.append((study, best))
        yield File(f"{place}/{readme.README}", readme.write(study, best).encode())
    for path, folder in TABLES.items():
        page = (root / path).read_text(encoding="utf-8")
        table = f"\n{readme.overview(rows, folder)}\n"
        yield File(path, replace_between(page, BEGIN, END, table, where=path).encode())


def check(root: Path) -> int:
    """Name every file that is stale, and every record that belongs to other claims."""
    found = loaded(root)
    stale = [file.path for file in generated(root, found) if not file.is_current(root)]
    for path in stale:
        print(f"{path} is stale: run `python tools/studies.py --readme`", file=sys.stderr)
    wrong = 0
    for study in found:
        for name in record.FILES:
            one = record.load(study.folder / name)
            for text in [] if one is None else record.disagreements(study, one):
                target = "studies-update" if name == record.QUICK else "studies-full"
                place = f"{PAPERS}/{study.name}/{name}"
                print(f"{place}: {text}: run `make {target}`", file=sys.stderr)
                wrong += 1
        searched = calibration.load(study.folder / calibration.FILE)
        for text in [] if searched is None else calibration.disagreements(study, searched):
            command = f"sojourn reproduce {study.name} --calibrate"
            print(f"{PAPERS}/{study.name}: {text}: run `{command}`", file=sys.stderr)
            wrong += 1
    return 1 if stale or wrong else 0


def compare(root: Path, out: Path) -> int:
    """Compare verdicts with those of the recorded quick runs; name what differs."""
    differing = 0
    for study in loaded(root):
        before = record.load(study.folder / record.QUICK)
        after = record.load(out / study.name / record.FILE)
        if before is None or after is None:
            missing = record.QUICK if before is None else record.FILE
            found = [f"no {missing}"]
        else:
            found = record.differences(before, after)
        for text in found:
            print(f"{study.name}: {text}", file=sys.stderr)
        differing += bool(found)
    if differing:
        print("after a deliberate change of results: `make studies-update`", file=sys.stderr)
    return min(differing, 1)


def write(root: Path, out: Path, scale: Scale, *, modified: bool) -> None:
    """Copy verdicts, times and figures of the studies in a directory."""
    found = [study for study in loaded(root) if (out / study.name / record.FILE).is_file()]
    if not found:
        message = f"{out}: no {record.FILE} of a study; expected the --out of sojourn reproduce all"
        raise SystemExit(message)
    for study in found:
        one = record.load(out / study.name / record.FILE)
        if one is None or one["scale"] != scale:
            message = f"{out / study.name}: not of {scale} scale"
            raise SystemExit(message)
        changed = [build for build in one["builds"] if build.endswith("-dirty)")]
        if scale == "full" and changed and not modified:
            message = (
                f"{out / study.name}: results of {', '.join(changed)}; expected a build "
                "without local changes, or --modified"
            )
            raise SystemExit(message)
        (study.folder / f"{scale}.json").write_text(outputs.as_json(one), encoding="utf-8")
        times = runtime.load(study.folder / runtime.FILE)
        times[scale] = runtime.load(out / study.name / runtime.FILE)[scale]
        text = json.dumps(times, indent=1, sort_keys=True) + "\n"
        (study.folder / runtime.FILE).write_text(text, encoding="utf-8")
        if scale == "full":
            copy_figures(out / study.name / readme.FIGURES, study.folder / readme.FIGURES)


def copy_figures(source: Path, target: Path) -> None:
    """Copy figures with few colours, and remove those that are no longer drawn."""
    target.mkdir(exist_ok=True)
    for old in target.glob("*.png"):
        old.unlink()
    for file in sorted(source.glob("*.png")):
        (target / file.name).write_bytes(compressed(file))


def compressed(file: Path) -> bytes:
    """Write an image with a palette, narrower if it is wide."""
    with Image.open(file) as image:
        drawn = image.convert("RGB")
    if drawn.width > WIDEST:
        height = round(drawn.height * WIDEST / drawn.width)
        drawn = drawn.resize((WIDEST, height), Image.Resampling.LANCZOS)
    data = BytesIO()
    # Unlike the default, this method keeps the colours of thin lines apart.
    reduced = drawn.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    reduced.save(data, "PNG", optimize=True)
    return data.getvalue()


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write, check or compare; return the exit status."""
    parser = argparse.ArgumentParser(description="Generated files of papers/.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", type=Path, metavar="OUT", help="copy what OUT contains")
    what.add_argument("--readme", action="store_true", help="write READMEs and tables again")
    what.add_argument("--check", action="store_true", help="exit with 1 if a file is stale")
    what.add_argument("--compare", type=Path, metavar="OUT", help="compare with quick.json")
    parser.add_argument("--scale", choices=["quick", "full"], help="with --write: scale of OUT")
    parser.add_argument(
        "--modified", action="store_true", help="with --write: also of builds with local changes"
    )
    options = parser.parse_args(arguments)
    if bool(options.write) != bool(options.scale):
        parser.error("--write and --scale need each other")
    if options.check:
        return check(root)
    if options.compare:
        return compare(root, options.compare)
    if options.write:
        write(root, options.write, options.scale, modified=options.modified)
    for file in generated(root, loaded(root)):
        if not file.is_current(root):
            file.write(root)
            print(f"wrote: {file.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
