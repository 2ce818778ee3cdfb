"""Write a report as JUnit XML, which CI servers show: a suite for each subject, a case a turn."""

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from longtable.evaluation.reports.eval_report import Report
from longtable.evaluation.turn_results import TurnResult, tally_of

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(report: Report) -> str:
    """Return the report as XML. A wrong or lucky answer is a failure, a turn without an answer an
    error, a turn that is not scored is skipped.
    """
    root = Element("testsuites", name="longtable eval")
    for label, results in report.subjects.items():
        tally = tally_of(results)
        suite = SubElement(
            root,
            "testsuite",
            name=_text(label),
            tests=str(len(results)),
            failures=str(tally.wrong + tally.lucky),
            errors=str(tally.failed),
            skipped=str(tally.unscored),
            time=f"{tally.seconds:.3f}",
        )
        for result in results:
            _add_case(suite, result)
    indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _add_case(suite: Element, result: TurnResult) -> None:
    case = SubElement(
        suite,
        "testcase",
        classname=_text(result.dialogue),
        name=_text(f"{result.turn}: {result.question}"),
        time=f"{result.seconds:.3f}",
    )
    if result.place:
        file, _, line = result.place.rpartition(":")
        case.set("file", _text(file or result.place))
        if line.isdigit():
            case.set("line", line)
    kinds = {"wrong": "failure", "lucky": "failure", "failed": "error", "unscored": "skipped"}
    if result.verdict in kinds:
        message = result.error or f"{result.verdict}: {result.check}"
        inside = SubElement(case, kinds[result.verdict], message=_text(message))
        inside.text = _text(f"gold: {result.gold}\nanswer: {result.sql or result.text}")


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
