"""``vt diff``: differences between two stacks, as text or JSON."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.errors import ConfigError
from vertex_training.settings.model import Section, Settings
from vertex_training.stack import Stack, load
from vertex_training_cli.check.checking import shown_from
from vertex_training_cli.engine.values import FieldDifference, diff_fields, redact
from vertex_training_cli.options import Format, project_root

#: Exit code if the stacks differ.
DIFFERENT: Final = 1
#: Version of the JSON format. It increases when a key is removed or changes its meaning.
VERSION: Final = 1
#: Text for a field that one of the stacks does not have.
ABSENT: Final = "(none)"
#: Names that replace the names of both stacks before the comparison. The stack and the project do
#: not exist.
STACK: Final = "vtx"
PROJECT: Final = "vtx-neutral-project"
NUMBER: Final = "970097009700"
#: Text that replaces the id of a request.
REQUEST_ID: Final = "${job.requestId}"


def diff(
    one: Annotated[str, typer.Argument(help="First stack (file Pulumi.ONE.yaml).")],
    other: Annotated[str, typer.Argument(help="Second stack (file Pulumi.OTHER.yaml).")],
    format_: Annotated[Format, typer.Option("--format", "-f", help="Output format.")] = Format.TEXT,
) -> None:
    """Compare the settings of two stacks and the requests of their jobs.

    Differences that follow only from the names of projects and stacks are omitted.

    Exit code, as for diff(1): 0 equal, 1 different, 2 an error.
    """
    root = project_root()
    comparison = compare(load(root, one), load(root, other))
    written = {Format.TEXT: as_text, Format.JSON: as_json}
    print(written[format_](comparison), end="")
    if not comparison.same:
        raise typer.Exit(DIFFERENT)


@dataclass(frozen=True, slots=True)
class JobDifference:
    """A job that only one stack has (``only_in``), or whose requests differ."""

    name: str
    only_in: str = ""
    fields: tuple[FieldDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class StackComparison:
    """The differences from stack ``one`` to stack ``other``."""

    one: str
    other: str
    settings: tuple[FieldDifference, ...]
    jobs: tuple[JobDifference, ...]
    same_jobs: tuple[str, ...]

    @property
    def same(self) -> bool:
        """True if the stacks have no difference."""
        return not (self.settings or self.jobs)


def compare(one: Stack, other: Stack) -> StackComparison:
    """Return the differences between two stacks of one checkout."""
    here, others = _requests_of(one), _requests_of(other)
    jobs, same = list[JobDifference](), list[str]()
    for name in sorted({*here, *others}):
        if name not in here or name not in others:
            jobs.append(
                JobDifference(name, only_in=(one if name in here else other).settings.stack)
            )
        elif fields := diff_fields(here[name], others[name]):
            jobs.append(JobDifference(name, fields=tuple(fields)))
        else:
            same.append(name)
    settings = diff_fields(
        _neutral_settings(one.settings, other.settings),
        _neutral_settings(other.settings, one.settings),
    )
    return StackComparison(
        one.settings.stack, other.settings.stack, tuple(settings), tuple(jobs), tuple(same)
    )


def _requests_of(stack: Stack) -> dict[str, Mapping[str, Any]]:
    names = {"stack": STACK, "project": PROJECT, "project_number": NUMBER}
    renamed = dataclasses.replace(stack, settings=stack.settings.model_copy(update=names))
    verdicts = renamed.check_jobs(shown_from(stack.root))
    if problems := [problem for verdict in verdicts.values() for problem in verdict.errors]:
        raise ConfigError(problems)
    return {
        name: _neutral_request(verdict.request, renamed.references)
        for name, verdict in verdicts.items()
        if verdict.request
    }


def as_text(comparison: StackComparison) -> str:
    """Return lines like ``buckets.data.keepNoncurrentDays: 7 -> 30``, settings first."""
    if comparison.same:
        return f"Stacks {comparison.one} and {comparison.other} differ only in their names.\n"
    lines = [f"{comparison.one} -> {comparison.other}", ""]
    if comparison.settings:
        lines += ["settings:", *(_line(field) for field in comparison.settings), ""]
    for job in comparison.jobs:
        if job.only_in:
            lines += [f"job {job.name}: only in {job.only_in}", ""]
        else:
            lines += [f"job {job.name}:", *(_line(field) for field in job.fields), ""]
    if comparison.same_jobs:
        lines += [f"equal requests in both stacks: {', '.join(comparison.same_jobs)}", ""]
    return "\n".join(lines)


def _line(field: FieldDifference) -> str:
    old, new = (ABSENT if side is None else side for side in (field.old, field.new))
    return f"  {redact(field.path)}: {redact(old)} -> {redact(new)}"


def as_json(comparison: StackComparison) -> str:
    """Return the comparison as JSON; null stands for a missing value."""
    content = {
        "version": VERSION,
        "same": comparison.same,
        **redact(dataclasses.asdict(comparison)),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _neutral_request(request: JobRequest, references: Mapping[str, Any]) -> dict[str, Any]:
    texts = {
        text: _symbol(name, text)
        for name, text in references.items()
        # Other texts may not come from a reference.
        if isinstance(text, str) and (PROJECT in text or NUMBER in text)
    }
    texts |= {request.request_id: REQUEST_ID, STACK: "${stack.name}"}
    longest_first = map(re.escape, sorted(texts, key=len, reverse=True))
    pattern = re.compile(rf"(?<![a-z0-9])(?:{'|'.join(longest_first)})(?![a-z0-9])")
    return _replaced(request.message, lambda text: pattern.sub(lambda match: texts[match[0]], text))


def _symbol(name: str, text: str) -> str:
    versioned = name.startswith(("images.", "packages."))
    return f"${{{name}}} ({text.rpartition('/')[2]})" if versioned else f"${{{name}}}"


def _neutral_settings(own: Settings, other: Settings) -> dict[str, Any]:
    """Return all settings of a stack with references instead of its names.

    A section that only ``own`` has is a text without defaults. Its own jobs are omitted.
    """
    content: dict[str, Any] = {}
    for field, info in type(own).model_fields.items():
        if field == "stack":
            continue
        value, beside = getattr(own, field), getattr(other, field)
        content[info.alias or field] = _dumped(field, value, beside)
    tokens = {own.project: "${stack.project}", own.project_number: "${stack.projectNumber}"}
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, tokens))})(?![\w-])")
    return _replaced(content, lambda text: pattern.sub(lambda match: tokens[match[0]], text))


def _dumped(field: str, value: Any, beside: Any) -> Any:
    if isinstance(value, Section):
        return value.model_dump(mode="json", by_alias=True)
    if not isinstance(value, dict):
        return value
    written: dict[str, Any] = {}
    for key, part in value.items():
        if not isinstance(part, Section):
            written[key] = part
        elif key in beside:
            written[key] = part.model_dump(mode="json", by_alias=True)
        elif field not in ("jobs", "tuning"):
            fields = part.model_dump(mode="json", by_alias=True, exclude_unset=True)
            written[key] = json.dumps(fields, sort_keys=True)
    return written


def _replaced(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_replaced(key, change): _replaced(item, change) for key, item in value.items()}
    return [_replaced(item, change) for item in value] if isinstance(value, list) else value
