"""The report as Markdown for a pull request: what matters first, the rest folded.

GitHub takes 65,536 characters a comment. A longer report is folded harder, level by level, until
it fits; jobs are never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from infra.catalog import costs
from infra.catalog.costs import usd
from vt.engine.fields import Field
from vt.review import picture, words
from vt.review.jobs import Job
from vt.review.report import Change, Report
from vt.review.rights import Right
from vt.review.text import block, code
from vt.review.verdict import totals, verdict

#: Of a comment, with room for what a workflow puts around it.
LIMIT = 64_000


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is told; the levels below go from everything to the least."""

    fields: int
    """Fields shown of one changed resource or job; what is beyond is counted."""
    others: int
    """Other changes that are listed by name."""
    draw: bool
    """Whether there is a picture."""
    table: bool
    """Whether jobs have a table, or a line each, or only their names."""
    lines: bool = True

    @property
    def items(self) -> int:
        """Entries of any list that is not of jobs."""
        return max(20, self.others)


LEVELS = (
    Detail(fields=200, others=1000, draw=True, table=True),
    Detail(fields=20, others=200, draw=True, table=True),
    Detail(fields=5, others=40, draw=True, table=True),
    Detail(fields=0, others=20, draw=False, table=True),
    Detail(fields=0, others=0, draw=False, table=False),
    Detail(fields=0, others=0, draw=False, table=False, lines=False),
)


def render(report: Report, limit: int = LIMIT) -> str:
    """The report, of at most ``limit`` bytes: never fewer than characters, whoever counts them."""
    text = ""
    for detail in LEVELS:
        text = "\n".join(_lines(report, detail)) + "\n"
        if len(text.encode()) <= limit:
            return text
    # Thousands of jobs or of mistakes: what comes first is what matters most.
    head = text.encode()[: limit - 100].decode(errors="ignore").rpartition("\n")[0]
    return f"{head}\n\nThe rest does not fit; `--format html` tells it.\n"


def _lines(report: Report, detail: Detail) -> Iterator[str]:
    yield f"## Review of stack {code(report.stack)}"
    yield ""
    yield f"**{verdict(report)}**"
    yield ""
    yield from _problems(report, detail)
    yield from _jobs(report, detail)
    yield from _notes(report, detail)
    yield from _rights(report, detail)
    yield from _doors(report, detail)
    yield from _losses(report, detail)
    yield from _policies(report, detail)
    yield from _rest(report, detail)
    yield from _warnings(report, detail)
    if detail.draw and (drawn := picture.mermaid(picture.graph(report))):
        yield from _folded("The stack after this change", ["```mermaid", drawn, "```"])
    if detail is not LEVELS[0]:
        yield "Shortened to fit into a comment: `--format html` and `--format json` tell all of it."
        yield ""
    yield _footer(report)


def _problems(report: Report, detail: Detail) -> Iterator[str]:
    if report.problems:
        yield "### What is wrong"
        yield ""
        yield block("\n".join(_some([str(each) for each in report.problems], detail)))
        yield ""
    elif report.errors:
        yield "### Why the preview failed"
        yield ""
        lines = [line for error in report.errors for line in error.message.splitlines()]
        yield block("\n".join(_some(lines, detail)))
        yield ""


def _jobs(report: Report, detail: Detail) -> Iterator[str]:
    told = [job for job in report.jobs if job.action != "keep"]
    kept = len(report.jobs) - len(told)
    if not report.jobs:
        return
    yield "### Jobs"
    if told:
        yield ""
    if detail.table and told:
        yield from _table(words.JOB_COLUMNS, (_cells(job) for job in told))
    elif detail.lines:
        yield from (f"- {job.action} {code(job.name)}: {usd(job.cost.worst_case)}" for job in told)
    else:
        for action in dict.fromkeys(job.action for job in told):
            names = ", ".join(job.name for job in told if job.action == action)
            yield f"- {action}: `{names}`"
    if kept:
        yield ""
        yield f"Unchanged: {kept}."
    yield ""
    if any(job.submits for job in told):
        yield f"<sub>{words.prices(report)} {costs.NOT_INCLUDED}</sub>"
        yield ""
    for job in told:
        if job.differences and detail.fields:
            summary = f"What differs in job {code(job.name)}"
            yield from _folded(summary, _fields(job.differences, detail.fields))


def _cells(job: Job) -> tuple[str, ...]:
    name, action, *rest = words.job_cells(job)
    # Words of ours stand as they are, names and values as code.
    told = ("<br>".join(code(line) for line in cell if line) for cell in rest)
    return (code(name[0]), action[0], *told)


def _rights(report: Report, detail: Detail) -> Iterator[str]:
    if not (report.gained or report.lost):
        return
    rows = [("gained", right) for right in report.gained] + [("lost", r) for r in report.lost]
    table = list(_table(words.RIGHT_COLUMNS, (_right(verb, right) for verb, right in rows)))
    yield "### Rights"
    yield ""
    if len(rows) > detail.items:
        summary = f"{len(report.gained)} gained, {len(report.lost)} lost; {detail.items} of them"
        yield from _folded(summary, table[: 2 + detail.items])
    else:
        yield from table
        yield ""


def _right(verb: str, right: Right) -> tuple[str, ...]:
    who = "**everybody** " * right.public + code(words.member(right))
    on = f"{right.kind} {code(words.target(right))}"
    if right.condition:
        on += f"<br>only if {code(right.condition)}"
    return verb, who, code(right.role), on, right.reason


def _doors(report: Report, detail: Detail) -> Iterator[str]:
    if not report.doors:
        return
    yield "### Reachability"
    yield ""
    for door in report.doors[: detail.items]:
        yield f"- **{door.verb}** {code(door.what, 400)}"
        yield from (f"  {line}" for line in _fields(door.differences, detail.fields))
    yield from (*_more(report.doors, detail), "")


def _losses(report: Report, detail: Detail) -> Iterator[str]:
    if not (report.losses or report.unprotected or report.protected):
        return
    yield "### Destroyed and protected"
    yield ""
    for loss in report.losses[: detail.items]:
        verb, takes = words.loss(loss)
        yield f"- {verb}: {code(loss.name)} ({code(loss.type)}){takes}"
    yield from _more(report.losses, detail)
    for name in report.unprotected:
        yield f"- {code(name)} loses its protection"
    if report.protected:
        names = ", ".join(_some([code(name) for name in report.protected], detail))
        yield f"- protected, Pulumi refuses to destroy them: {names}"
    yield ""


def _policies(report: Report, detail: Detail) -> Iterator[str]:
    if not (report.violations or report.packs):
        return
    yield "### Policies"
    yield ""
    yield words.policies(report)
    yield ""
    rows = (
        (each.level, code(each.policy), code(each.urn.rpartition("::")[2]), code(each.message, 400))
        for each in report.violations[: detail.items]
    )
    if report.violations:
        yield from _table(words.POLICY_COLUMNS, rows)
        yield from ("", *_more(report.violations, detail), "")


def _rest(report: Report, detail: Detail) -> Iterator[str]:
    if not (report.changes or report.unchanged):
        return
    lines: list[str] = []
    for change in report.changes[: detail.others]:
        lines += _change(change, detail)
    if (left := len(report.changes) - detail.others) > 0:
        lines.append(f"- and {left} more")
    summary = f"Everything else: {totals(report)}; {report.unchanged} unchanged"
    yield from _folded(summary, lines or ["Nothing else changes."])


def _change(change: Change, detail: Detail) -> Iterator[str]:
    yield f"- {change.op} {code(change.name)} ({code(change.type)})"
    if change.op != "create":
        yield from (f"  {line}" for line in _fields(change.fields, detail.fields))
        if change.paths:
            yield f"  - differs in the cloud: {code(', '.join(change.paths), 400)}"


def _notes(report: Report, detail: Detail) -> Iterator[str]:
    lines = [line for note in report.notes for line in note.message.splitlines()]
    if lines:
        yield from ("### To know", "", block("\n".join(_some(lines, detail))), "")


def _warnings(report: Report, detail: Detail) -> Iterator[str]:
    if report.warnings:
        told = _some([each.message for each in report.warnings], detail)
        yield from _folded(f"Warnings: {len(report.warnings)}", [block("\n".join(told))])


def _fields(fields: Sequence[Field], most: int) -> Iterator[str]:
    for each in fields[:most]:
        old = "(absent)" if each.old is None else code(each.old)
        new = "(absent)" if each.new is None else code(each.new)
        yield f"- {code(each.path)}: {old} → {new}"
    if most and len(fields) > most:
        yield f"- and {len(fields) - most} more fields"


def _some(lines: Sequence[str], detail: Detail) -> list[str]:
    """The first of these lines, and how many there are beyond."""
    left = len(lines) - detail.items
    return [*lines[: detail.items], *([f"and {left} more"] if left > 0 else [])]


def _more(items: Sequence[object], detail: Detail) -> Iterator[str]:
    if (left := len(items) - detail.items) > 0:
        yield f"- and {left} more"


def _folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    # The empty lines make GitHub read what is inside as Markdown.
    yield from (f"<details><summary>{summary}</summary>", "", *lines, "", "</details>", "")


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _footer(report: Report) -> str:
    where = f"project {code(report.project)}, {code(report.region)}; " if report.project else ""
    return f"<sub>{where}{report.source}. Plan {code(report.digest)}</sub>"
