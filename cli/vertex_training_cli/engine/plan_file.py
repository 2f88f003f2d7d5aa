"""A plan as a file: written where a preview runs, read where nothing of that code is trusted.

A report is rendered from it, and the digest is computed from it anew. So a file that was changed
shows in the report what it says, and approves nothing but that: a deployment makes its own plan.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Annotated, Any, Final, Literal, NoReturn, Self

import pydantic
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from vertex_training.errors import Location, PreviewParseError, Problem
from vertex_training_cli.engine.plan import Diagnostic, Plan, PolicyViolation, ResourceState, Step
from vertex_training_cli.engine.values import redact

#: Raised when a key changes its meaning or goes away.
VERSION: Final = 1
#: Bytes of a file. That of a stack of a thousand resources has 3 MB.
MAX_BYTES: Final = 16 * 2**20
MAX_STEPS: Final = 20_000
MAX_TEXTS: Final = 5_000
#: Levels of nesting. An input of a resource has six at most.
MAX_DEPTH: Final = 40
#: Ids that Google gives resources have up to 64 bits. Numbers beyond are no number of anything.
MAX_NUMBER: Final = 2**64

Text = Annotated[str, Field(max_length=1_000_000)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,99}$")]
Urn = Annotated[str, Field(max_length=2_000, pattern=r"^urn:pulumi:[^\x00-\x1f\x7f]+$")]
#: The engine's operations: pulumi/pulumi v3.259.0, pkg/resource/deploy/step.go.
Operation = Literal[
    "same", "create", "update", "delete", "replace", "create-replacement", "delete-replaced",
    "read", "read-replacement", "refresh", "discard", "discard-replaced", "remove-pending-replace",
    "import", "import-replacement",
]  # fmt: skip
#: The sentences of ``vertex_training_cli.engine.stacks``.
Source = Annotated[
    str,
    Field(
        max_length=300,
        pattern=r"^Previewed (offline against an empty state: everything looks new"
        r"|against the local stack's state"
        r"|against the state in (gs|s3|azblob|file)://[A-Za-z0-9._/-]*)$",
    ),
]


#: Levels of policies, as the engine calls them.
Level = Literal["mandatory", "advisory", "remediate", "disabled"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _State(_Model):
    inputs: dict[Text, JsonValue]
    outputs: dict[Text, JsonValue]
    protect: bool
    id: Text

    def value(self) -> ResourceState:
        # As they are: `write` got them redacted, and the digest is computed from them.
        return ResourceState(self.inputs, self.outputs, self.protect, self.id)


class _Step(_Model):
    op: Operation
    urn: Urn
    type: Text
    old: _State | None
    new: _State | None
    keys: Annotated[list[Text], Field(max_length=MAX_TEXTS)]
    paths: Annotated[list[Text], Field(max_length=MAX_TEXTS)]

    @model_validator(mode="after")
    def _type_is_that_of_the_urn(self) -> Self:
        """The digest has the URN, the report the type: they must say the same."""
        parts = self.urn.split("::")
        if len(parts) < 4 or parts[2].rpartition("$")[2] != self.type:
            raise ValueError("the type is not that of the URN")
        return self

    def value(self) -> Step:
        old, new = (state and state.value() for state in (self.old, self.new))
        return Step(self.op, self.urn, self.type, old, new, tuple(self.keys), tuple(self.paths))


class _Diagnostic(_Model):
    severity: Literal["error", "warning", "info", "debug"]
    message: Text
    urn: Text

    def value(self) -> Diagnostic:
        return Diagnostic(self.severity, redact(self.message), self.urn)


class _Violation(_Model):
    policy: Text
    pack: Text
    level: Level | Literal[""]
    message: Text
    urn: Text
    severity: Annotated[str, Field(pattern=r"^[a-z]{0,20}$")]

    def value(self) -> PolicyViolation:
        message = redact(self.message)
        return PolicyViolation(self.policy, self.pack, self.level, message, self.urn, self.severity)


class _Problem(_Model):
    what: Text
    value: Text
    hint: Text
    path: Annotated[list[str | int], Field(max_length=MAX_DEPTH)]
    location: tuple[Text, int, int]
    rule: Text
    level: Literal["error", "warning"]

    def problem(self) -> Problem:
        what, value, hint = redact((self.what, self.value, self.hint))
        location = Location(*self.location)
        return Problem(what, value, hint, tuple(self.path), location, self.rule, self.level)


class PlanFile(_Model):
    """What a report is rendered from."""

    version: Literal[1]
    stack: Word
    source: Source
    """Which state the plan begins with, in words."""
    succeeded: bool
    config: dict[Text, Text]
    steps: Annotated[list[_Step], Field(max_length=MAX_STEPS)]
    diagnostics: Annotated[list[_Diagnostic], Field(max_length=MAX_TEXTS)]
    violations: Annotated[list[_Violation], Field(max_length=MAX_TEXTS)]
    packs: Annotated[dict[Word, Text], Field(max_length=50)]
    policies: Annotated[list[Text], Field(max_length=MAX_TEXTS)]
    levels: Annotated[dict[Word, Level], Field(max_length=MAX_TEXTS)] = {}
    problems: Annotated[list[_Problem], Field(max_length=MAX_TEXTS)]

    @model_validator(mode="after")
    def _every_urn_is_of_the_stack(self) -> Self:
        wanted = f"urn:pulumi:{self.stack}::"
        if not all(step.urn.startswith(wanted) for step in self.steps):
            raise ValueError("a resource is of another stack")
        urns = [step.urn for step in self.steps]
        if len(urns) != len(set(urns)):
            raise ValueError("a resource has two steps")
        return self

    def plan(self) -> Plan:
        """The plan. Texts are redacted once more."""
        return Plan(
            stack=self.stack,
            config=redact(self.config),
            steps=tuple(step.value() for step in self.steps),
            diagnostics=tuple(each.value() for each in self.diagnostics),
            violations=tuple(each.value() for each in self.violations),
            packs=self.packs,
            policies=frozenset(self.policies),
            levels=self.levels,
            succeeded=self.succeeded and not any(d.severity == "error" for d in self.diagnostics),
        )

    def found_problems(self) -> tuple[Problem, ...]:
        """Mistakes in the stack's files, if the preview failed for them."""
        return tuple(each.problem() for each in self.problems)


def write(plan: Plan, source: str, problems: tuple[Problem, ...] = ()) -> str:
    """The file of a plan, for ``parse``."""
    content = dataclasses.asdict(plan) | {
        "version": VERSION,
        "source": source,
        "policies": sorted(plan.policies),
        "problems": [_written(each) for each in problems],
    }
    return json.dumps(content, ensure_ascii=False) + "\n"


def _written(problem: Problem) -> dict[str, Any]:
    where = problem.location
    found = dataclasses.asdict(problem) | {"location": [where.file, where.line, where.column]}
    return redact(found)


def parse(content: bytes, stack: str) -> PlanFile:
    """The plan of ``stack`` in ``content``, from a source that is not trusted.

    Raises:
        PreviewParseError: it is none. The message quotes nothing of it.
    """
    if len(content) > MAX_BYTES:
        raise PreviewParseError(f"it has more than {MAX_BYTES} bytes")
    try:
        found = PlanFile.model_validate(_tuples(_document(content)))
    except pydantic.ValidationError as failed:
        first = failed.errors(include_input=False, include_url=False, include_context=False)[0]
        key = first["loc"][0] if first["loc"] else ""
        place = f"in {key}" if key in PlanFile.model_fields else "a key that no plan has"
        text = f"{failed.error_count()} parts are not those of a plan, the first is {place}"
        raise PreviewParseError(text) from None
    if found.stack != stack:
        raise PreviewParseError("it is of another stack")
    return found


def _tuples(document: Any) -> Any:
    """``location`` of problems as the tuples that strict models ask for."""
    problems = document.get("problems") if isinstance(document, dict) else None
    for each in problems if isinstance(problems, list) else ():
        if isinstance(each, dict) and isinstance(each.get("location"), list):
            each["location"] = tuple(each["location"])
    return document


def _document(content: bytes) -> Any:
    try:
        document = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_number,
            parse_float=_float,
            parse_int=_int,
        )
        _check_depth(document)
    except UnicodeDecodeError:
        raise PreviewParseError("it is not UTF-8") from None
    except json.JSONDecodeError:
        raise PreviewParseError("it is no JSON") from None
    except RecursionError:
        raise PreviewParseError(f"it is nested deeper than {MAX_DEPTH}") from None
    except ValueError as refused:
        raise PreviewParseError(str(refused)) from None
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    for key in found:
        _check_text(key)
    return found


def _refuse_number(_name: str) -> NoReturn:
    raise ValueError("a number is not finite")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or abs(value) > MAX_NUMBER:
        raise ValueError("a number is too large")
    return value


def _int(text: str) -> int:
    if len(text) > 21 or abs(int(text)) > MAX_NUMBER:
        raise ValueError("a number is too large")
    return int(text)


def _check_depth(document: Any) -> None:
    """Raises ValueError: it is nested too deep, or has a text that is no Unicode."""
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH}")
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
            elif isinstance(each, str):
                _check_text(each)
        level = below


def _check_text(text: str) -> None:
    """Raises ValueError: it has half of a surrogate pair, which no file can hold."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text is no Unicode") from None
