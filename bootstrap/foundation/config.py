"""Reads an environment's config and judges it: every mistake at once, with its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pulumi
import pydantic
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from foundation.settings import Section, Settings
from infra import naming
from infra.errors import ConfigError, Problem, did_you_mean
from infra.settings import locations as stack_places

NAMESPACE = "vertex-training-bootstrap"
#: Written under ``gcp:`` and taken over; everything else is ours.
FROM_PROVIDER = ("project", "region")


def read(folder: Path) -> Settings:
    """The current environment's settings; ``folder`` holds its file.

    Raises:
        ConfigError: with every mistake found.
    """
    raw: dict[str, Any] = {"stack": pulumi.get_stack()}
    # pulumi.Config can only be asked by name, which is how unknown keys slip through.
    known = pulumi.runtime.config.CONFIG.get() or pulumi.runtime.config.get_config_env()
    for full, text in known.items():
        namespace, _, key = full.partition(":")
        if namespace == NAMESPACE:
            raw[key] = text if key == "projectNumber" else _structured(text)
        elif namespace == "gcp" and key in FROM_PROVIDER:
            raw[key] = text
    try:
        return parse(raw)
    except ConfigError as failed:
        raise ConfigError(stack_places.locate(failed.problems, folder)) from None


def parse(raw: Mapping[str, Any]) -> Settings:
    """Check what an environment says; see :func:`read`."""
    file = f"Pulumi.{raw.get('stack', '')}.yaml"
    try:
        settings = Settings.model_validate(raw)
    except pydantic.ValidationError as failed:
        raise ConfigError(_problem(file, error) for error in failed.errors()) from None
    problems = [
        Problem(f"{file}: {NAMESPACE}:labels.{key}", problem, value)
        for key, value in settings.labels.items()
        if (problem := naming.label_problem(key, value))
    ]
    if not naming.BUCKET.match(settings.state_bucket):
        what, hint = "makes a bucket name longer than 63", "set state.bucket"
        problems.append(Problem(f"{file}: gcp:project", what, settings.state_bucket, hint))
    if problems:
        raise ConfigError(problems)
    return settings


def _structured(text: str) -> Any:
    """Objects, lists and numbers come as JSON; what is not JSON is text, and checked as such."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _problem(file: str, error: ErrorDetails) -> Problem:
    """One of pydantic's errors in our words."""
    *parents, last = [str(part) for part in error["loc"]] or [""]
    top = parents[0] if parents else last
    namespace = "gcp" if top in FROM_PROVIDER else NAMESPACE
    where = f"{file}: {namespace}:{'.'.join([*parents, last])}"
    if error["type"] == "extra_forbidden":
        return Problem(where, "unknown key", hint=did_you_mean(last, _keys_at(parents)))
    if error["type"] == "missing":
        return Problem(where, "missing", hint=f"add it to bootstrap/{file}")
    got = "" if isinstance(error["input"], dict | list) else json.dumps(error["input"], default=str)
    what = error["msg"].removeprefix("Value error, ")
    return Problem(where, what[0].lower() + what[1:], got)


def _keys_at(parents: list[str]) -> list[str]:
    """Keys that may stand in the section a path leads to."""
    fields = {to_camel(name): field for name, field in Settings.model_fields.items()}
    if not parents:
        return [key for key in fields if key not in ("stack", *FROM_PROVIDER)]
    annotation = fields[parents[0]].annotation if parents[0] in fields else None
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Section):
            return [to_camel(name) for name in candidate.model_fields]
    return []
