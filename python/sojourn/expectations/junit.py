"""Judgements as JUnit XML, which CI systems read."""

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

from sojourn import _core
from sojourn.expectations.judging import Judgement
from sojourn.result.derived_files import Kind

VERDICTS = Kind(
    name="file of verdicts",
    mark=b"<testsuite",
    named="verdicts are XML; expected a name such as results.xml",
)


def junit(suites: Mapping[str, Sequence[Judgement]]) -> bytes:
    """Write judgements as JUnit XML.

    A failure has the type ``fail`` or ``undecided``.
    """
    root = ET.Element("testsuites")
    for name, judgements in suites.items():
        not_passed = sum(one.verdict != "pass" for one in judgements)
        counts = {"tests": f"{len(judgements)}", "failures": f"{not_passed}"}
        suite = ET.SubElement(root, "testsuite", {"name": _text(name), **counts})
        for one in judgements:
            where = "; ".join(filter(None, [one.place, one.arm]))
            attributes = {
                "classname": _text(f"{name}: {where}"),
                "name": _text(one.expectation.title),
            }
            case = ET.SubElement(suite, "testcase", attributes)
            if one.verdict != "pass":
                message = _text(described(one))
                failure = ET.SubElement(case, "failure", {"type": one.verdict, "message": message})
                failure.text = message
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def described(one: Judgement) -> str:
    """Write what was measured and required on one line."""
    sign = one.expectation.sides[1]
    if one.measured is None or one.required is None:
        return f"{one.verdict}: {one.reason}"
    interval = "" if one.low is None else f" [{one.low:.4g}, {one.high:.4g}]"
    reason = f"; {one.reason}" if one.reason else ""
    text = f"{one.measured:.4g}{interval}, expected {sign} {one.required:.4g}"
    return f"{one.verdict}: {text} ({one.runs} runs){reason}"


def _text(text: str) -> str:
    """Escape control characters, which XML cannot contain."""
    return _core.printable(text)
