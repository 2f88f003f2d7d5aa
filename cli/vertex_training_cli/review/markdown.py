"""The report as Markdown for a pull request: what matters first, the rest folded.

GitHub takes 65,536 characters a comment. A longer report is folded harder, level by level, until
it fits; jobs are never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import usd
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.review import cells, picture
from vertex_training_cli.review.escaping import block, code
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.headline.answers import answers
from vertex_training_cli.review.images import changes as image_changes
from vertex_training_cli.review.jobs import JobChange
from vertex_training_cli.review.report import ResourceChange, ReviewReport
from vertex_training_cli.review.verdict import returned, totals, verdict

#: Of a comment, with room for what a workflow puts around it.
LIMIT: Final = 64_000


@dataclass(frozen=True, slots=True)
class Verbosity:
    """How much a report shows. ``LEVELS`` go from everything to the least."""

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


LEVELS: Final = (
    Verbosity(fields=200, others=1000, draw=True, table=True),
    Verbosity(fields=20, others=200, draw=True, table=True),
    Verbosity(fields=5, others=40, draw=True, table=True),
    Verbosity(fields=0, others=20, draw=False, table=True),
    Verbosity(fields=0, others=0, draw=False, table=False),
    Verbosity(fields=0, others=0, draw=False, table=False, lines=False),
)


def render(report: ReviewReport, limit: int = LIMIT) -> str:
    """The report in at most ``limit`` bytes, so that it has at most as many characters."""
    text = ""
    for verbosity in LEVELS:
        text = "\n".join(_lines(report, verbosity)) + "\n"
        if len(text.encode()) <= limit:
            return text
    # Thousands of jobs or of mistakes: what comes first is what matters most.
    head = text.encode()[: limit - 100].decode(errors="ignore").rpartition("\n")[0]
    return f"{head}\n\nThe rest does not fit; `--format html` tells it.\n"


def _lines(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    yield f"## Review of stack {code(report.stack)}"
    yield ""
    yield f"**{verdict(report, code)}**"
    yield ""
    yield from _answers(report)
    yield from _problems(report, verbosity)
    yield from _jobs(report, verbosity)
    yield from _images(report, verbosity)
    yield from _notes(report, verbosity)
    yield from _grants(report, verbosity)
    yield from _access(report, verbosity)
    yield from _reachability(report, verbosity)
    yield from _losses(report, verbosity)
    yield from _policies(report, verbosity)
    yield from _rest(report, verbosity)
    yield from _warnings(report, verbosity)
    if verbosity.draw and (drawn := picture.mermaid(picture.graph(report))):
        yield from _folded("The stack after this change", ["```mermaid", drawn, "```"])
    if verbosity is not LEVELS[0]:
        yield "Shortened to fit into a comment: `--format html` and `--format json` tell all of it."
        yield ""
    yield _footer(report)


def _answers(report: ReviewReport) -> Iterator[str]:
    """What an approver asks; questions with nothing to say share a line."""
    found = answers(report, code)
    rows = [(each.question, each.text) for each in found if each.phrases]
    yield from _table(("question", "answer"), rows)
    if nothing := [each.question for each in found if not each.phrases]:
        yield from ("", f"Nothing: {', '.join(nothing)}.")
    yield ""


def _problems(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    if report.problems:
        yield "### What is wrong"
        yield ""
        yield block("\n".join(_some([str(each) for each in report.problems], verbosity)))
        yield ""
    elif report.errors:
        yield "### Why the preview failed"
        yield ""
        lines = [line for error in report.errors for line in error.message.splitlines()]
        yield block("\n".join(_some(lines, verbosity)))
        yield ""


def _jobs(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    changed = [job for job in report.jobs if job.action != "keep"]
    kept = len(report.jobs) - len(changed)
    if not report.jobs:
        return
    yield "### Jobs"
    if changed:
        yield ""
    if verbosity.table and changed:
        yield from _table(cells.JOB_COLUMNS, (_cells(job) for job in changed))
    elif verbosity.lines:
        yield from (
            f"- {job.action} {code(job.name)}: {usd(job.cost.worst_case)}" for job in changed
        )
    else:
        for action in dict.fromkeys(job.action for job in changed):
            names = ", ".join(job.name for job in changed if job.action == action)
            yield f"- {action}: {code(names, LIMIT)}"
    if kept:
        yield ""
        yield f"Unchanged: {kept}."
    yield ""
    yield from _filled_in(changed, verbosity)
    yield from _observed(report, verbosity)
    if any(job.submits for job in changed):
        lines = [f"{cells.prices(report)} {costs.NOT_INCLUDED}"]
        yield from _folded(cells.PRICES, lines)
    for job in changed:
        if job.differences and verbosity.fields:
            summary = f"What differs in job {code(job.name)}"
            yield from _folded(summary, _fields(job.differences, verbosity.fields))


def _filled_in(jobs: Sequence[JobChange], verbosity: Verbosity) -> Iterator[str]:
    """What the stack file says in place of the job files."""
    found = [job for job in jobs if job.filled_in]
    for job in found[: verbosity.items]:
        yield f"- {code(job.name)}: `jobDefaults` fill in {code(', '.join(job.filled_in), LIMIT)}"
    if found:
        yield ""


def _observed(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    """The jobs that exist, as they are now."""
    seen = [(job.name, job.now) for job in report.jobs if job.now]
    for name, now in seen[: verbosity.items]:
        line = f"; last line: {code(now.last_line)}" if now.last_line else ""
        yield f"- {code(name)}: {cells.progress(now)}{line}"
    if len(seen) > verbosity.items:
        yield f"- {len(seen) - verbosity.items} more"
    if seen:
        yield ""
    if report.not_observed:
        yield f"Jobs were not looked at: {code(report.not_observed, 400)}"
        yield ""


def _images(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    if report.unseen_images:
        text = "; ".join(_some(report.unseen_images, verbosity))
        yield f"Images of submitted jobs were not looked up: {code(text, 400)}"
        yield ""
    if report.images:
        yield "### Images"
        yield ""
        shown = report.images[: verbosity.items]
        rows = (map(code, image_changes.cells(change, report.origins)) for change in shown)
        yield from _table(image_changes.COLUMNS, (tuple(row) for row in rows))
        if rest := len(report.images) - len(shown):
            yield ""
            yield f"And {rest} more."
        yield ""
    others = report.other_images[: verbosity.items]
    if others:
        rows_of = (tuple(map(code, image_changes.line(each, report.origins))) for each in others)
        lines = [f"- {name}: {origin} ({jobs})" for name, origin, jobs in rows_of]
        lines += _more(report.other_images, verbosity)
        yield from _folded(f"Other images that jobs run: {len(report.other_images)}", lines)


def _cells(job: JobChange) -> tuple[str, ...]:
    name, action, *rest = cells.job_cells(job)
    # Words of ours stand as they are, names and values as code.
    lines = ("<br>".join(code(line) for line in cell if line) for cell in rest)
    return (code(name[0]), action[0], *lines)


def _grants(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    if not (report.gained or report.lost):
        return
    rows = [("gained", binding) for binding in report.gained] + [("lost", r) for r in report.lost]
    table = list(
        _table(cells.RIGHT_COLUMNS, (_binding_row(verb, binding) for verb, binding in rows))
    )
    yield "### Rights"
    yield ""
    if len(rows) > verbosity.items:
        summary = f"{len(report.gained)} gained, {len(report.lost)} lost; {verbosity.items} of them"
        yield from _folded(summary, table[: 2 + verbosity.items])
    else:
        yield from table
        yield ""


def _binding_row(verb: str, binding: IamBinding) -> tuple[str, ...]:
    member = "**everybody** " * binding.is_public + code(cells.member(binding))
    # The name of an input, where it is none of those that have a word.
    kind = binding.kind if binding.kind.isascii() and binding.kind.isalpha() else code(binding.kind)
    on = f"{kind} {code(cells.target(binding))}"
    if binding.condition:
        on += f"<br>only if {code(binding.condition)}"
    return verb, member, code(binding.role), on, binding.reason


def _access(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    found = cells.accesses(report)
    if not found:
        return
    rows = (
        (verb, code(who), may, f"{kind} {code(name)}", code(account))
        for verb, who, may, kind, name, account in found[: verbosity.items]
    )
    yield "### Access to data, by acting as an account"
    yield ""
    yield from _table(cells.ACCESS_COLUMNS, rows)
    yield from ("", *_more(found, verbosity), "")


def _reachability(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    if not report.reachability:
        return
    yield "### Reachability"
    yield ""
    for change in report.reachability[: verbosity.items]:
        yield f"- **{change.verb}** {code(change.what, 400)}"
        yield from (f"  {line}" for line in _fields(change.differences, verbosity.fields))
    yield from (*_more(report.reachability, verbosity), "")


def _losses(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    kept_less = (report.losses, report.returned, report.raised)
    found = (report.refusals, report.destroyed, *kept_less, report.unprotected)
    if not any(found):
        yield from _protected(report, verbosity)
        return
    yield "### Destroyed and protected"
    yield ""
    for refusal in report.refusals[: verbosity.items]:
        yield f"- not possible like this: {code(refusal.name)} {refusal.what}"
    yield from _more(report.refusals, verbosity)
    yield from _less_kept(report, verbosity)
    for each in report.destroyed[: verbosity.items]:
        verb, takes = cells.destruction(each)
        yield f"- {verb}: {code(each.name)} ({code(each.type)}){takes}"
    yield from _more(report.destroyed, verbosity)
    for name in report.unprotected:
        yield f"- {code(name)} loses its protection"
    yield ""
    yield from _protected(report, verbosity)


def _protected(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    """Folded: they are the same in report after report."""
    if report.protected:
        names = ", ".join(_some([code(name) for name in report.protected], verbosity))
        summary = f"Protected, Pulumi refuses to destroy them: {len(report.protected)}"
        yield from _folded(summary, [names])


def _less_kept(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    """Data that is kept less, and limits that limit less."""
    for each in report.losses[: verbosity.items]:
        yield f"- data of {code(each.name)}, {each.what}: {each.old} → {each.new}"
    yield from _more(report.losses, verbosity)
    for machines in returned(report, code)[: verbosity.items]:
        yield f"- machines given back, and may not be had again: {machines}"
    yield from _more(report.returned, verbosity)
    for limit in report.raised[: verbosity.items]:
        yield f"- limit {code(limit.path)}: {code(limit.old or '')} → {code(limit.new or '')}"
    yield from _more(report.raised, verbosity)


def _policies(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    given = cells.levels(report)
    if not (report.violations or report.packs or given):
        return
    yield from ("### Policies", "", cells.policies(report), "")
    if given:
        words = _some([f"{code(name)} {code(level)}" for name, level in given], verbosity)
        yield from (f"Not mandatory in this stack: {', '.join(words)}.", "")
    rows = (
        (each.level, code(each.policy), code(each.urn.rpartition("::")[2]), code(each.message, 400))
        for each in report.violations[: verbosity.items]
    )
    if report.violations:
        yield from _table(cells.POLICY_COLUMNS, rows)
        yield from ("", *_more(report.violations, verbosity), "")


def _rest(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    if not (report.changes or report.folders or report.unchanged):
        return
    lines: list[str] = []
    for folder in report.folders[: verbosity.others]:
        lines.append(f"- objects below {code(folder.name)}: {folder.counts}")
    lines += _more(report.folders[verbosity.others :], verbosity)
    for change in report.changes[: verbosity.others]:
        lines += _change(change, verbosity)
    if (left := len(report.changes) - verbosity.others) > 0:
        lines.append(f"- and {left} more")
    summary = f"Everything else: {totals(report)}; {report.unchanged} unchanged"
    yield from _folded(summary, lines or ["Nothing else changes."])


def _change(change: ResourceChange, verbosity: Verbosity) -> Iterator[str]:
    yield f"- {change.op} {code(change.name)} ({code(change.type)})"
    if change.op != "create":
        yield from (f"  {line}" for line in _fields(change.fields, verbosity.fields))
        if change.paths:
            yield f"  - differs in the cloud: {code(', '.join(change.paths), 400)}"


def _notes(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    """Folded: they are the same in report after report. The first words of each are not."""
    lines = [line for note in report.notes for line in note.message.splitlines()]
    if lines:
        begins = _some([code(words) for words in cells.beginnings(report)], verbosity)
        summary = f"To know: {'; '.join(begins)}"
        yield from _folded(summary, [block("\n".join(_some(lines, verbosity)))])


def _warnings(report: ReviewReport, verbosity: Verbosity) -> Iterator[str]:
    if report.warnings:
        lines = _some([each.message for each in report.warnings], verbosity)
        yield from _folded(f"Warnings: {len(report.warnings)}", [block("\n".join(lines))])


def _fields(fields: Sequence[FieldDifference], most: int) -> Iterator[str]:
    for each in fields[:most]:
        old = "(absent)" if each.old is None else code(each.old)
        new = "(absent)" if each.new is None else code(each.new)
        yield f"- {code(each.path)}: {old} → {new}"
    if most and len(fields) > most:
        yield f"- and {len(fields) - most} more fields"


def _some(lines: Sequence[str], verbosity: Verbosity) -> list[str]:
    """The first of these lines, and how many there are beyond."""
    left = len(lines) - verbosity.items
    return [*lines[: verbosity.items], *([f"and {left} more"] if left > 0 else [])]


def _more(items: Sequence[object], verbosity: Verbosity) -> Iterator[str]:
    if (left := len(items) - verbosity.items) > 0:
        yield f"- and {left} more"


def _folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    # The empty lines make GitHub read what is inside as Markdown.
    yield from (f"<details><summary>{summary}</summary>", "", *lines, "", "</details>", "")


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _footer(report: ReviewReport) -> str:
    where = f"project {code(report.project)}, {code(report.region)}; " if report.project else ""
    return f"<sub>{where}{report.source}. Plan {code(report.digest)}</sub>"
