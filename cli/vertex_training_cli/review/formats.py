"""Writes the report as Markdown for a pull request, as an HTML page, and as JSON for programs.

GitHub accepts 65,536 characters in a comment. A longer report is shortened level by level.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jinja2
from markupsafe import Markup, escape

from vertex_training.catalog.costs import PoolCost
from vertex_training.customjob.offers import Offer
from vertex_training.errors import Location, Problem
from vertex_training_cli.engine.plan import Diagnostic, JobObservation, PolicyViolation
from vertex_training_cli.engine.values import FieldDifference
from vertex_training_cli.review import headline
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.headline import answers, is_partial, verdict
from vertex_training_cli.review.jobs import JobChange, RungRequest
from vertex_training_cli.review.parts import (
    Change,
    Differences,
    Entry,
    Finding,
    Fold,
    Graph,
    Listing,
    Paragraph,
    Part,
    ReportSection,
    Table,
    Verbatim,
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
#: Kind of a node -> Mermaid's brackets around its label.
SHAPES: Final = {"bucket": ('[("', '")]'), "secret": ('[/"', '"/]'), "account": ('(["', '"])')}


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
    text = ""
    report_sections = sections(report, code, lambda words: f"**{words}**")
    for verbosity in LEVELS:
        text = "\n".join(_lines(report, report_sections, verbosity)) + "\n"
        if len(text.encode()) <= limit:
            return text
    # Thousands of jobs or mistakes: the most important lines come first.
    head = text.encode()[: limit - 100].decode(errors="ignore").rpartition("\n")[0]
    return f"{head}\n\nCut at the comment size limit. `--format html` writes the full report.\n"


def _lines(
    report: ReviewReport, report_sections: list[ReportSection], verbosity: Verbosity
) -> Iterator[str]:
    ready, why = headline.readiness(report)
    yield f"## Review of stack {headline.subject(report, code)}"
    yield from ("", f"**{ready}:** {why}.", "")
    remaining = headline.commands(report)
    yield from (f"{number}. {code(command)}" for number, command in enumerate(remaining, start=1))
    yield from ("",) if remaining else ()
    yield from (f"**{headline.verdict(report, code)}**", "")
    answered = headline.rows(report, code)
    yield from table_rows(("subject", "change"), ((e.head, "<br>".join(e.lines)) for e in answered))
    if nothing := headline.without_row(report, code):
        yield from ("", nothing)
    yield ""
    for section in report_sections:
        yield from _section(section, verbosity)
    if verbosity is not LEVELS[0]:
        yield "Shortened to the comment size limit; `--format html` writes the full report."
        yield ""
    where = f"project {code(report.project)}, {code(report.region)}; " if report.project else ""
    yield f"<sub>{where}{report.source}. Plan {code(report.digest)}</sub>"


def _section(section: ReportSection, verbosity: Verbosity) -> Iterator[str]:
    body = [line for part in section.parts for line in _part(part, verbosity)]
    if section.fold == "never":
        yield from (f"### {section.title}", "") if section.title else ()
        yield from body
    elif body:
        count = f": {_words(section.count, verbosity)}" if section.count else ""
        yield from _folded(f"{section.title}{count}", body)


def _part(part: Part, verbosity: Verbosity) -> Iterator[str]:
    match part:
        case Paragraph():
            yield from (_words(part, verbosity), "")
        case Verbatim():
            yield from (block("\n".join(shortened(part.lines, verbosity.items))), "")
        case Listing():
            yield from _listing(part, verbosity)
        case Table():
            yield from _table(part, verbosity)
        case Differences():
            if verbosity.fields:
                yield from _folded(part.summary, _fields(part.fields, verbosity.fields))
        case Fold():
            inside = (line for inner in part.parts for line in _part(inner, verbosity))
            yield from (part.comment, "") if part.comment else _folded(part.summary, inside)
        case Graph():
            if verbosity.draw:
                yield from (*_mermaid(part), "```")


def _words(part: Paragraph, verbosity: Verbosity) -> str:
    separator = "; " if part.by_semicolon else ", "
    return f"{part.words}{separator.join(shortened(part.names, verbosity.items))}{part.end}"


def _listing(part: Listing, verbosity: Verbosity) -> Iterator[str]:
    most = verbosity.others if part.minor else verbosity.items
    for group in part.groups:
        for entry in group[:most]:
            yield from _entry(entry, verbosity)
        yield from _more(len(group) - most)
    yield ""


def _entry(entry: Entry, verbosity: Verbosity) -> Iterator[str]:
    yield f"- **{entry.lead}** {entry.text}" if entry.lead else f"- {entry.text}"
    if entry.in_comment:
        yield from (f"  {line}" for line in _fields(entry.fields, verbosity.fields))
    if entry.note:
        yield f"  - {entry.note}"


def _table(part: Table, verbosity: Verbosity) -> Iterator[str]:
    if part.shorter and verbosity.shorter:
        for entry in part.shorter[verbosity.shorter - 1].groups[0]:
            yield from _entry(entry, verbosity)
        yield ""
        return
    most = len(part.rows) if part.shorter else verbosity.items
    rows = (tuple("<br>".join(cell) for cell in row.cells) for row in part.rows[:most])
    yield from (*table_rows(part.columns, rows), "")
    left = _more(len(part.rows) - most)
    yield from (*left, "") if left or part.spaced else ()


def _fields(fields: Sequence[FieldDifference], most: int) -> Iterator[str]:
    for field in fields[:most]:
        old = "(absent)" if field.old is None else code(field.old)
        new = "(absent)" if field.new is None else code(field.new)
        yield f"- {code(field.path)}: {old} → {new}"
    if most and len(fields) > most:
        yield f"- and {len(fields) - most} more fields"


def _more(left: int) -> list[str]:
    return [f"- and {left} more"] if left > 0 else []


def _folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    # GitHub renders the content as Markdown only between empty lines.
    body = list(lines)
    if body[-1:] == [""]:
        body.pop()
    yield from (f"<details><summary>{summary}</summary>", "", *body, "", "</details>", "")


def table_rows(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    columns = tuple(columns)
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _mermaid(drawn: Graph) -> Iterator[str]:
    yield from ("```mermaid", "flowchart LR")
    ids = {node: f"n{number}" for number, node in enumerate(drawn.nodes)}
    for node, id_ in ids.items():
        before, after = SHAPES.get(node.kind, ('["', '"]'))
        yield f"  {id_}{before}{label(node.text)}{after}"
    for edge in drawn.edges:
        yield f'  {ids[edge.one]} -- "{label(edge.verb)}" --> {ids[edge.other]}'
    if drawn.undrawn:
        yield f'  more["and {drawn.undrawn}"]'
    if new := [str(number) for number, edge in enumerate(drawn.edges) if edge.new]:
        yield f"  linkStyle {','.join(new)} stroke:#8a5a00,stroke-width:3px"


#: Mark around a value or emphasized words -> tag. Marks are private-use characters of Unicode,
#: which ``visible`` spells out in values, so that no value can create a tag.
TAGS: Final = {"\ue000": "<code>", "\ue001": "</code>", "\ue002": "<strong>", "\ue003": "</strong>"}


def to_html(report: ReviewReport) -> str:
    """Return the complete report as a page. The template engine escapes every value."""
    return page_template().render(
        report=report,
        verdict=headline.verdict(report, _quoted),
        subject=headline.subject(report, _quoted),
        readiness=headline.readiness(report),
        commands=headline.commands(report),
        rows=headline.rows(report, _quoted),
        without_row=headline.without_row(report, _quoted),
        sections=sections(report, _quoted, lambda words: f"\ue002{words}\ue003"),
    )


def _quoted(value: str, _length: int = 0) -> str:
    shown = visible(value)
    return f"\ue000{shown}\ue001" if shown else ""


def _tagged(text: str) -> Markup:
    return Markup(str(escape(text)).translate(str.maketrans(TAGS)))


@functools.cache
def page_template() -> jinja2.Template:
    """Return the compiled template of the page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vertex_training_cli.review", "."),
        autoescape=True,
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
    }
    return environment.get_template("page.html.j2")


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
        "answers": {e.question: list(e.phrases) for e in answers(report, lambda text, _=0: text)},
        "outcome": report.outcome.name.lower().replace("_", "-"),
        "exitCode": int(report.outcome),
        "complete": not is_partial(report),
        "worstCaseUsd": round(report.worst_case, 2),
        "unpricedJobs": [job.name for job in report.unpriced],
        **_plain(report),
        "endpoints": [_plain(endpoint, _ENDPOINT) for endpoint in report.endpoints],
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
    others = [_plain(other, "name version=new uri jobs") for other in report.other_images]
    document["otherImages"] = others
    for image in (*document["images"], *document["otherImages"]):
        image["origin"] = report.origins.get(image["uri"])
    return document


def _plain(value: Any, keys: str = "") -> Any:
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
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
