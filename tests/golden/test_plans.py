"""Small plans, reviewed: one for each thing that a review reports, as ``plans.yaml`` has it.

``shown`` are lines of the Markdown report, ``json`` what a program reads of it. RECORD=1 writes
both anew; read the difference before committing it. Of jobs that a plan finds, each runs.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.golden.test_reviews import without_digests
from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import CheckpointObservation, JobObservation, Observations
from vertex_training_cli.review import formats, jobs, report

PAGE: Final = Path(__file__).with_name("page.html")
FILE: Final = Path(__file__).with_name("plans.yaml")
CASES: Final[dict[str, Any]] = yaml.load(FILE.read_text(), yaml.CSafeLoader)
RUNNING: Final = JobObservation("RUNNING", 7200, 1.5, "loss 0.3", CheckpointObservation(90))
PICTURE: Final = re.compile(r"```mermaid.*?```", re.DOTALL)
#: Beginnings of lines that recorded changes of large stacks show, or that are the same in each.
ELSEWHERE: Final = (
    *(
        "## ",
        "**Ready:**",
        "**Not ready:**",
        "1. ",
        "2. ",
        "| subject",
        "| Approval",
        "| Created",
        "| job |",
        "|---",
        "No entries for: ",
        "Unknown, because the preview failed: ",
        "<sub>",
        "<details",
    ),
    *(
        "</details",
        "No policy pack",
        "### ",
        "Sources of the prices",
        "Prices: ",
        "No other changes",
        "| change |",
    ),
    *("| Policies | no policy", "Current states of jobs", "```"),
)
#: A slot of a schedule, which depends on the time of the test.
SLOT: Final = re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\d\b")
#: What the Markdown report has as well, in words.
IN_WORDS: Final = frozenset(
    {
        *("version", "verdict", "answers", "outcome", "stack", "project", "region", "source"),
        *("expected", "notes", "warnings", "errors", "changes", "policies"),
    }
)


def event(op: str, *told: Any) -> plans.Event:
    """An event of the engine of a line in ``given``."""
    if op in ("error", "warning", "info"):
        return plans.said(op, *told)
    if op == "policy":
        return plans.violation(*told)
    if op == "summary":
        return plans.summary(told[0], **told[1])
    type_, name, old, new, *more = told
    made = plans.step(op, type_, name, with_texts(old), with_texts(new))
    metadata = made["resourcePreEvent"]["metadata"]
    for key, value in (more[0] if more else {}).items():
        metadata[key] = metadata[key] | value if key in ("old", "new") else value
    return made


def with_texts(inputs: Any) -> Any:
    """Inputs with the messages that the program writes as JSON."""
    texts = {
        key: json.dumps(inputs[key])
        for key in ("request", "container")
        if isinstance((inputs or {}).get(key), dict)
    }
    return inputs if inputs is None else inputs | texts


def review(given: list[Any], config: dict[str, Any] | None) -> report.ReviewReport:
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in (config or {}).items()}
    lines = plans.lines(*(event(*each) for each in given), config=texts or None)
    plan = events.parse(lines, "dev")
    ids = (step.old.id for step in plan.steps if step.old and step.old.id)
    observed = Observations(dict.fromkeys(ids, RUNNING))
    made = report.build(plan, source="here", observed=observed)
    return report.with_problems(made, jobs.same_requests(made.jobs))


def shown(made: report.ReviewReport) -> str:
    """Lines of the Markdown report that say something that none before them says."""
    kept = list[str]()
    for line in PICTURE.sub("", formats.to_markdown(made)).splitlines():
        says = line.strip(" -")
        if says and not line.startswith(ELSEWHERE) and not any(says in each for each in kept):
            kept.append(SLOT.sub("(slot)", line))
    return "\n".join(kept)


def read(made: report.ReviewReport) -> dict[str, Any]:
    """What a program reads of a plan, beside what it reads of one that changes nothing."""
    nothing = formats.json_document(review([], None))
    found = json.loads(SLOT.sub("(slot)", formats.to_json(made)))
    kept = {key: value for key, value in found.items() if key not in IN_WORDS}
    return {key: value for key, value in kept.items() if value != nothing.get(key)}


def record(name: str, made: report.ReviewReport) -> None:
    """Write the file with the results of this case anew."""
    CASES[name] |= {"shown": shown(made), "json": read(made)}
    entries = list[str]()
    for title, case in CASES.items():
        rows = [f"    - {json.dumps(each)}" for each in case["given"]]
        body = [
            f"{title}:",
            *([f"  config: {json.dumps(case['config'])}"] if case.get("config") else []),
        ]
        body += [
            "  given:" if rows else "  given: []",
            *rows,
            "  shown: |-",
            *(f"    {line}" for line in case["shown"].splitlines()),
        ]
        entries.append("\n".join([*body, f"  json: {json.dumps(case['json'])}"]))
    FILE.write_text("\n".join(entries) + "\n")


@pytest.mark.parametrize("name", CASES)
def test_a_plan_is_reported_as_recorded(name: str) -> None:
    case = CASES[name]
    made = review(case["given"], case.get("config"))
    if os.environ.get("RECORD"):
        record(name, made)
    assert shown(made) == case["shown"]
    assert read(made) == case["json"]
    assert formats.to_html(made)


def test_the_page_of_a_plan_is_as_recorded() -> None:
    """It lists jobs, an endpoint, two accounts and a bucket that everybody reads."""
    page = formats.to_html(review(CASES["accounts-that-act-as-accounts"]["given"], None))
    body = without_digests(page[page.index("<body>") :])
    if os.environ.get("RECORD"):
        PAGE.write_text(body)
    assert body == PAGE.read_text()
