"""Writes the report as Markdown for a pull request, as an HTML page, and as JSON for programs.

GitHub accepts 65,536 characters in a comment. A longer report is shortened level by level.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jinja2
from markupsafe import Markup, escape

from vertex_training.catalog.costs import PoolCost
from vertex_training.customjob.rules.batch import Offer
from vertex_training.errors import Location, Problem
from vertex_training_cli.engine.plan import Diagnostic, JobObservation, PolicyViolation
from vertex_training_cli.review import headline
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.headline import answers, is_partial, verdict
from vertex_training_cli.review.jobs import JobChange, RungRequest
from vertex_training_cli.review.parts import (
    Change,
    Finding,
    Quote,
    block,
    code,
    label,
    shortened,
    visible,
)
from vertex_training_cli.review.report import ReviewReport
from vertex_training_cli.review.sections import sections

#: Maximum bytes of a report, to leave space for the text that a workflow adds to a comment.
LIMIT: Final = 64_000


@dataclass(frozen=True, slots=True)
class Verbosity:
    """Level of detail of a report. ``LEVELS`` are in descending order."""

    fields: int
    """Number of fields shown of a changed resource or job; the rest is counted."""
    others: int
    """Number of other changes listed by name."""
    draw: bool
    shorter: int = 0
    """Display of jobs: a table (0), a line per job (1), or only names (2)."""

    @property
    def items(self) -> int:
        """Maximum number of entries in a list, except in lists of jobs."""
        return max(20, self.others)


LEVELS: Final = (
    Verbosity(fields=200, others=1000, draw=True),
    Verbosity(fields=20, others=200, draw=True),
    Verbosity(fields=5, others=40, draw=True),
    Verbosity(fields=0, others=20, draw=False),
    Verbosity(fields=0, others=0, draw=False, shorter=1),
    Verbosity(fields=0, others=0, draw=False, shorter=2),
)


def to_markdown(report: ReviewReport, limit: int = LIMIT) -> str:
    """Return the report, shortened to at most ``limit`` bytes."""
    text, comment = "", template("comment.md.j2")
    content = _content(report, code, lambda words: f"**{words}**")
    for level in LEVELS:
        text = comment.render(content, level=level, is_whole=level is LEVELS[0])
        if len(text.encode()) <= limit:
            return text
    # Thousands of jobs or mistakes: the most important lines come first.
    head = text.encode()[: limit - 100].decode(errors="ignore").rpartition("\n")[0]
    return f"{head}\n\nCut at the comment size limit. `--format html` writes the full report.\n"


def _content(report: ReviewReport, quote: Quote, strong: Callable[[str], str]) -> dict[str, Any]:
    return {
        "report": report,
        "verdict": headline.verdict(report, quote),
        "subject": headline.subject(report, quote),
        "readiness": headline.readiness(report),
        "commands": headline.commands(report),
        "rows": headline.rows(report, quote),
        "without_row": headline.without_row(report, quote),
        "sections": sections(report, quote, strong),
    }


#: Mark around a value or emphasized words -> tag. Marks are private-use characters of Unicode,
#: which ``visible`` spells out in values, so that no value can create a tag.
TAGS: Final = {"\ue000": "<code>", "\ue001": "</code>", "\ue002": "<strong>", "\ue003": "</strong>"}


def to_html(report: ReviewReport) -> str:
    """Return the complete report as a page. The template engine escapes every value."""
    content = _content(report, _quoted, lambda words: f"\ue002{words}\ue003")
    return template("page.html.j2").render(content)


def _quoted(value: str, _length: int = 0) -> str:
    shown = visible(value)
    return f"\ue000{shown}\ue001" if shown else ""


def _tagged(text: str) -> Markup:
    return Markup(str(escape(text)).translate(str.maketrans(TAGS)))


@functools.cache
def template(name: str) -> jinja2.Template:
    """Return the compiled template of the comment or of the page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vertex_training_cli.review", "."),
        autoescape=name == "page.html.j2",
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "visible": visible,
        "tagged": _tagged,
        # For use in an attribute.
        "untagged": lambda text: text.translate(dict.fromkeys(map(ord, TAGS))),
        "kind": lambda part: type(part).__name__,
        "value": lambda value: "(absent)" if value is None else code(value),
        "block": block,
        "label": label,
        "shortened": shortened,
    }
    return environment.get_template(name)


#: Increased when a key changes its meaning or is removed; new keys may come at any time.
VERSION: Final = 1
#: Keys of an endpoint in JSON, as in ``KEYS``.
_ENDPOINT: Final = (
    "name model action before after machine reachBefore=reach_before reach account? "
    "monthlyUsdBefore=cost_before.monthly monthlyUsd=cost.monthly price=cost.rate metrics"
)
#: Class -> its keys in JSON, if they differ from its fields. ``key=path`` reads the value at
#: another path; ``key?`` writes null for an empty value.
KEYS: Final[Mapping[type, str]] = {
    ReviewReport: (
        "stack project region source digest expected? jobs unseenImages=unseen_images images "
        "otherImages=other_images models endpoints snapshots watching reservations reachability "
        "unjudgedTypes=unjudged "
        "destroyed protected objects=folders changes unchanged problems errors notes warnings "
        "preflight?"
    ),
    JobChange: (
        "name action region strategy reservation? account network? images pools ladder? "
        "idleStop?=idle_stop "
        "hourlyUsd=cost.hourly timeoutSeconds=cost.timeout defaultTimeout=cost.default_timeout "
        "worstCaseUsd=cost.worst_case worstCaseUsdBefore=cost_before.worst_case offers "
        "previousState?=previous_state now differences"
    ),
    Offer: (
        "backend worstCaseUsd=cost.worst_case timeoutSeconds=cost.timeout attempts=cost.attempts "
        "refusal?"
    ),
    RungRequest: "rung=number what strategy reservation? worstCaseUsd=cost.worst_case",
    PoolCost: (
        "index machineType=machine_type acceleratorType?=accelerator acceleratorCount=count "
        "machines hourlyUsd=hourly price=rate"
    ),
    JobObservation: (
        "state seconds usdSoFar=cost lastLine?=last_line checkpointSeconds=checkpoint.seconds"
    ),
    IamBinding: "member role kind target condition? public=is_public reason?",
    PolicyViolation: "policy pack level severity? resource?=urn message",
    Problem: "where=location what=statement got=value hint rule",
}


def to_json(report: ReviewReport) -> str:
    """Return the report as one JSON document."""
    return json.dumps(json_document(report), indent=2, ensure_ascii=False) + "\n"


def json_document(report: ReviewReport) -> dict[str, Any]:
    """Return the report as plain data. Money is in USD; null means an unknown price."""
    document = {
        "version": VERSION,
        "verdict": verdict(report),
        "answers": answers(report, lambda text, _=0: text),
        "outcome": report.outcome.name.lower().replace("_", "-"),
        "exitCode": int(report.outcome),
        "complete": not is_partial(report),
        "worstCaseUsd": round(report.worst_case, 2),
        "unpricedJobs": [job.name for job in report.unpriced],
        **_plain(report),
        "endpoints": _plain(report.endpoints, _ENDPOINT),
        "destroyed": _plain(report.destroyed, "name type replaced takes refused"),
        "objects": _plain(report.folders, "name added changed removed"),
        "rights": {verb: _plain(getattr(report, verb)) for verb in ("gained", "lost", "kept")},
        "access": {"gained": _plain(report.access_gained), "lost": _plain(report.access_lost)},
        "policies": {
            "packs": list(report.packs),
            "count": report.policies,
            "levels": dict(report.levels),
            "violations": _plain(report.violations),
        },
    }
    if report.schedules:
        document["schedules"] = _plain(report.schedules)
    for kind, findings in report.risks.items():
        section, _, key = kind.key.rpartition(".")
        if key:
            names_alone = not kind.fields and all(type(e) is Finding for e in findings)
            listed = [e.name if names_alone else _plain(e, kind.fields) for e in findings]
            (document[section] if section else document)[key] = listed
    document["otherImages"] = _plain(report.other_images, "name version=new uri jobs")
    for image in (*document["images"], *document["otherImages"]):
        image["origin"] = report.origins.get(image["uri"])
    return document


def _plain(value: Any, keys: str = "") -> Any:
    if isinstance(value, list | tuple | set):
        return [_plain(item, keys) for item in value]
    if isinstance(value, Diagnostic):
        return value.message
    if isinstance(value, Location):
        return str(value)
    if isinstance(value, Change):
        names = list(vars(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
    else:
        return value
    camel = {name: re.sub(r"_([a-z])", lambda match: match[1].upper(), name) for name in names}
    all_keys = " ".join(f"{key}={name}" for name, key in camel.items())
    plain: dict[str, Any] = {}
    for word in (keys or KEYS.get(type(value)) or all_keys).split():
        key, _, path = word.partition("=")
        name = key.removesuffix("?")
        inner = _plain(_at(value, path or name))
        plain[name] = None if key != name and not inner else inner
    if isinstance(value, JobChange) and value.cost.trials is not None:
        # ``hourlyUsd`` covers all parallel trials.
        plain["trials"] = {"max": value.cost.trials, "parallel": value.cost.parallel}
    return plain


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name) if value is not None else None
    return value
