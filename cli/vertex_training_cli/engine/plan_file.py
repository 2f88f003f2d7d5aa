"""A plan as a file, which is validated as untrusted input.

A changed file changes the report and the digest, so it cannot approve another plan.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Annotated, Any, Final, Literal, Self, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict, Field, model_validator

from vertex_training.errors import PreviewParseError, Problem
from vertex_training_cli.engine.plan import MAX_TEXTS, Diagnostic, Plan, PolicyViolation
from vertex_training_cli.engine.values import redact, redact_config

#: Version of the format. It is increased when a key is removed or changes its meaning.
VERSION: Final = 1
#: Maximum size of a plan file in bytes. A stack with a thousand resources needs 3 MB.
MAX_BYTES: Final = 16 * 2**20
#: Maximum number of nested levels. Inputs of resources have at most six levels.
MAX_DEPTH: Final = 40
#: Maximum absolute value of a number. Google's ids of resources have at most 64 bits.
MAX_NUMBER: Final = 2**64
MAX_DIGITS: Final = 21

#: Descriptions of a preview's initial state, which ``StackRef.preview_target`` returns.
Source = Annotated[
    str,
    Field(
        max_length=300,
        pattern=r"^Previewed (offline against an empty state: everything looks new"
        r"|against the local stack's state"
        r"|against the state in (gs|s3|azblob|file)://[A-Za-z0-9._/-]*)$",
    ),
]
#: Keys of a plan file that error messages may contain.
KEYS: Final = (*(f.name for f in dataclasses.fields(Plan)), "version", "source", "problems")


class PlanFile(BaseModel):
    """Content of a plan file. The plan's dataclasses are validated strictly, too."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    version: Literal[1]
    source: Source
    """Description of the state that the preview started from."""
    plan: Plan
    problems: Annotated[tuple[Problem, ...], Field(max_length=MAX_TEXTS)]
    """Mistakes in the stack's files, if they made the preview fail."""

    @model_validator(mode="after")
    def _steps_are_of_the_stack(self) -> Self:
        prefix, seen = f"urn:pulumi:{self.plan.stack}::", set[str]()
        for step in self.plan.steps:
            parts = step.urn.split("::")
            if len(parts) < 4 or parts[2].rpartition("$")[2] != step.type:
                raise ValueError("the type of a resource differs from the type in its URN")
            if not step.urn.startswith(prefix) or step.urn in seen:
                raise ValueError("a resource belongs to another stack, or appears twice")
            seen.add(step.urn)
        return self


def write(plan: Plan, source: str, problems: tuple[Problem, ...] = ()) -> str:
    """Serialize a plan for ``parse``."""
    content = dataclasses.asdict(plan) | {
        "version": VERSION,
        "source": source,
        "policies": sorted(plan.policies),
        # The fix of a problem may contain a secret.
        "problems": [
            redact(dataclasses.asdict(dataclasses.replace(problem, mend=None)))
            for problem in problems
        ],
    }
    return json.dumps(content, ensure_ascii=False) + "\n"


def parse(content: bytes, stack: str) -> PlanFile:
    """Return the plan of ``stack`` in ``content``. Errors quote no content of the file."""
    if len(content) > MAX_BYTES:
        raise PreviewParseError(f"the plan file has more than {MAX_BYTES} bytes")
    document = _document(content)
    about = {} if not isinstance(document, dict) else document
    own = {key: about.pop(key) for key in ("version", "source", "problems") if key in about}
    try:
        plan_file = PlanFile.model_validate_json(json.dumps({**own, "plan": document}))
    except pydantic.ValidationError as failed:
        first = failed.errors()[0]
        keys = [key for key in first["loc"] if key in KEYS]
        place = f"in {keys[0]}" if keys else "an unknown key"
        text = f"the plan file has {failed.error_count()} invalid parts, the first {place}"
        raise PreviewParseError(text) from None
    if plan_file.plan.stack != stack:
        raise PreviewParseError("the plan file belongs to another stack")
    plan = plan_file.plan
    # Steps stay unchanged: they were redacted before the digest was computed.
    redacted = dataclasses.replace(
        plan,
        config={redact(key): redact_config(text) for key, text in plan.config.items()},
        diagnostics=tuple(map(_redacted, plan.diagnostics)),
        violations=tuple(map(_redacted, plan.violations)),
        succeeded=plan.succeeded and not plan.errors,
    )
    problems = tuple(map(_redacted, plan_file.problems))
    return plan_file.model_copy(update={"plan": redacted, "problems": problems})


#: Fields with texts that a report shows.
SHOWN: Final = ("what", "value", "hint", "message")
Shown = TypeVar("Shown", Problem, Diagnostic, PolicyViolation)


def _redacted(value: Shown) -> Shown:
    shown = (field.name for field in dataclasses.fields(value) if field.name in SHOWN)
    return dataclasses.replace(value, **{name: redact(getattr(value, name)) for name in shown})


def _document(content: bytes) -> Any:
    try:
        document = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_number,
            parse_float=_number,
            parse_int=_number,
        )
        _check_depth(document)
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise PreviewParseError("the plan file is not valid UTF-8") from None
    except UnicodeEncodeError:  # JSON may contain a half of a surrogate pair.
        raise PreviewParseError("the plan file has a text with invalid Unicode") from None
    except json.JSONDecodeError:
        raise PreviewParseError("the plan file is not valid JSON") from None
    except RecursionError:
        raise PreviewParseError(f"the plan file is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as refused:
        raise PreviewParseError(str(refused)) from None
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("an object of the plan file has a duplicate key")
    return document


def _number(text: str) -> int | float:
    is_integer = len(text) <= MAX_DIGITS and text.lstrip("-").isdecimal()
    value = int(text) if is_integer else float(text)
    if not math.isfinite(value) or abs(value) > MAX_NUMBER:
        raise ValueError("the plan file has a number that is too large or not finite")
    return value


def _check_depth(document: Any) -> None:
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"the plan file is nested deeper than {MAX_DEPTH} levels")
        objects = [item for item in level if isinstance(item, dict)]
        level = [value for item in level if isinstance(item, list) for value in item]
        level += [value for item in objects for value in item.values()]
