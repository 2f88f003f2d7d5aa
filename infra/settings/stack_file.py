"""Reads a stack file and judges it. The only reader of ``pulumi.Config``.

Pulumi checks the type of a declared key and lets unknown keys pass; here an unknown key is a
mistake with a hint, and all mistakes of a stack are told at once.

``read`` takes the config from the engine, ``infra.settings.stack_yaml`` from the files themselves;
only the former needs Pulumi, which is therefore imported where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import pydantic
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from infra import naming
from infra.errors import ConfigError, Problem, Row, did_you_mean
from infra.plan import images as image_context
from infra.settings import locations as stack_places
from infra.settings.model import Settings
from infra.settings.section import Section
from infra.stack_rules import limits
from infra.stack_rules import network as network_rules
from infra.stack_rules import reservations as reservation_rules

NAMESPACE = "vertex-training"
#: Written in the stack file under ``gcp:`` and taken over; everything else is ours.
FROM_PROVIDER = ("project", "region")
#: Key under ``vertex-training:`` -> field of ``Settings``.
FIELDS = {
    to_camel(name): field
    for name, field in Settings.model_fields.items()
    if name not in ("stack", *FROM_PROVIDER)
}


def read(root: Path) -> Settings:
    """Read and check the current stack's config.

    ``root`` is the checkout: files named in the config are looked up below it.

    Raises:
        ConfigError: with every mistake found.
    """
    import pulumi  # half a second that a checker of job files need not spend

    stack = pulumi.get_stack()
    google = pulumi.Config("gcp")
    raw: dict[str, Any] = {"stack": stack}
    raw |= {key: value for key in FROM_PROVIDER if (value := google.get(key)) is not None}
    own = _own_keys()
    if encrypted := [key for key in own if pulumi.runtime.is_config_secret(f"{NAMESPACE}:{key}")]:
        raise ConfigError(_no_secret(stack, key) for key in encrypted)
    try:
        return parse(raw | own, root)
    except ConfigError as failed:
        raise ConfigError(stack_places.locate(failed.problems, root)) from None


def _no_secret(stack: str, key: str) -> Problem:
    """Said before anything is judged: other messages show the value they are about."""
    return Problem(
        f"Pulumi.{stack}.yaml: {NAMESPACE}:{key}",
        "is encrypted, and everything here goes into names, requests and the state in clear",
        hint=f"pulumi config rm {NAMESPACE}:{key}; give jobs secrets by Secret Manager (secrets)",
    )


def _own_keys() -> dict[str, Any]:
    """All keys of our namespace, parsed; also those nobody declared.

    ``pulumi.Config`` can only be asked for a key by name, which is how unknown keys slip
    through, so this looks at what the engine handed to the SDK.
    """
    import pulumi

    raw: dict[str, Any] = {}
    prefix = f"{NAMESPACE}:"
    known = pulumi.runtime.config.CONFIG.get() or pulumi.runtime.config.get_config_env()
    for full, text in known.items():
        if not full.startswith(prefix):
            continue
        key = full.removeprefix(prefix)
        is_text = key in FIELDS and FIELDS[key].annotation is str
        raw[key] = text if is_text else _structured(text)
    return raw


def _structured(text: str) -> Any:
    """Objects and lists come as JSON; what is not JSON is text, and checked as such."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def parse(raw: Mapping[str, Any], root: Path) -> Settings:
    """Check what a stack file says; see :func:`read`."""
    file = f"Pulumi.{raw.get('stack', '')}.yaml"
    try:
        settings = Settings.model_validate(raw)
    except pydantic.ValidationError as failed:
        raise ConfigError(_problem(file, error) for error in failed.errors()) from None
    if rows := broken_rules(settings, root):
        raise ConfigError(
            Problem(f"{file}: {NAMESPACE}:{path}", what, got, hint)
            for path, what, got, hint in rows
        )
    return settings


def _problem(file: str, error: ErrorDetails) -> Problem:
    """One of pydantic's errors in our words."""
    *parents, last = [str(part) for part in error["loc"] if part != "[key]"] or [""]
    top = parents[0] if parents else last
    namespace = "gcp" if top in FROM_PROVIDER else NAMESPACE
    where = f"{file}: {namespace}:{'.'.join([*parents, last])}"
    if error["type"] == "extra_forbidden":
        return Problem(where, "unknown key", hint=did_you_mean(last, _keys_at(parents)))
    if error["type"] == "missing":
        return Problem(where, "missing", hint=f"pulumi config set {namespace}:{last} VALUE")
    got = "" if isinstance(error["input"], dict | list) else json.dumps(error["input"], default=str)
    what = error["msg"].removeprefix("Value error, ")
    if error["type"] == "string_pattern_mismatch" and "[key]" in error["loc"]:
        what = f"a name here must be {naming.KEY_RULE}"
    return Problem(where, what[0].lower() + what[1:], got)


def _keys_at(parents: list[str]) -> list[str]:
    """Keys that may stand in the section a path leads to."""
    section: type[Section] = Settings
    steps = iter(parents)
    for step in steps:
        fields = FIELDS if section is Settings else _fields(section)
        field = fields.get(step)
        if field is None:
            return []
        section, is_map = _section_in(field.annotation)
        if section is Section:
            return []
        if is_map and next(steps, None) is None:
            return []
    return list(FIELDS if section is Settings else _fields(section))


def _fields(section: type[Section]) -> dict[str, FieldInfo]:
    return {to_camel(name): field for name, field in section.model_fields.items()}


def _section_in(annotation: Any) -> tuple[type[Section], bool]:
    """The section a field holds, and whether in a map of them; ``Section`` itself if none."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Section):
            return candidate, get_origin(annotation) is dict
    return Section, False


def broken_rules(settings: Settings, root: Path) -> list[Row]:
    """Everything that does not hold; files are looked up below ``root``."""
    return [
        *_name_problems(settings),
        *_link_problems(settings),
        *_file_problems(settings, root),
        *network_rules.problems(settings),
        *reservation_rules.problems(settings),
        *limits.rows(settings),
    ]


def _name_problems(settings: Settings) -> list[Row]:
    """Names that Google Cloud would refuse, and labels."""
    names, rows = settings.names, list[Row]()
    for key in settings.buckets:
        if key in (naming.STAGING, naming.CONTROL):
            rows.append((f"buckets.{key}", "the stack makes this bucket itself", key, "rename it"))
        if not naming.BUCKET.match(name := names.bucket(key)):
            rows.append(
                (f"buckets.{key}", "makes a bucket name longer than 63", name, "shorten it")
            )
    for key in settings.service_accounts:
        if not naming.ACCOUNT_ID.match(name := names.account_id(key)):
            what = "makes an account id that is not 6 to 30 characters long"
            rows.append((f"serviceAccounts.{key}", what, name, "choose another name"))
    for key, value in names.labels(settings.labels).items():
        if problem := naming.label_problem(key, value):
            rows.append((f"labels.{key}", problem, value, ""))
    for index, member in enumerate(settings.submitters):
        if not member.startswith(naming.MEMBER_KINDS):
            hint = f"write {', '.join(naming.MEMBER_KINDS[:3])} or a principal of workload identity"
            rows.append((f"submitters[{index}]", "not an IAM member", member, hint))
    return rows


def _link_problems(settings: Settings) -> list[Row]:
    """Keys that point at something the stack does not have."""
    rows = list[Row]()
    for key, account in settings.service_accounts.items():
        for field, wanted, known in (
            ("reads", account.reads, settings.buckets),
            ("writes", account.writes, settings.buckets),
            ("secrets", account.secrets, settings.secrets),
        ):
            kind = "secret" if field == "secrets" else "bucket"
            for name in sorted(set(wanted) - set(known)):
                path = f"serviceAccounts.{key}.{field}"
                rows.append(
                    (path, f"this stack has no such {kind}", name, did_you_mean(name, known))
                )
    return rows


def _file_problems(settings: Settings, root: Path) -> list[Row]:
    """Files that are not there, or lie outside of the checkout."""
    wanted = [(f"jobs.{key}.file", job.file, True) for key, job in settings.jobs.items()]
    wanted += [(f"packages.{key}.path", p.path, False) for key, p in settings.packages.items()]
    for key, bucket in settings.buckets.items():
        wanted += [(f"buckets.{key}.objects.{o}", file, True) for o, file in bucket.objects.items()]
    rows = [row for entry in wanted for row in _path_problem(*entry, root)]
    for key, image in settings.images.items():
        if image.context:
            path = f"images.{key}.context"
            rows += _path_problem(path, image.context, False, root) or [
                (path, what, image.context, hint)
                for what, hint in image_context.problems(root / image.context)
            ]
    return rows


def _path_problem(path: str, name: str, is_file: bool, root: Path) -> list[Row]:
    target = (root / name).resolve()
    if not target.is_relative_to(root.resolve()):
        return [(path, "lies outside of the checkout", name, "use a path below it")]
    if not (target.is_file() if is_file else target.exists()):
        return [(path, "no such file", name, "paths start at the folder of Pulumi.yaml")]
    return []
