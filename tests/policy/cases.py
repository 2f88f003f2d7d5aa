"""Read ``cases.yaml``: correct resources, and changes that make them wrong.

It imports nothing but PyYAML, because the pack's own environment imports it too.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

CONTENT: Final[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text())
ROOT: Final = Path(__file__).parents[2]
ABSENT: Final = "(absent)"
#: Settings under which the resources are correct and the cases wrong.
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "own-key-where-required": {"required": True},
    "members-of-own-domains": {
        "domains": ["acme-ml-prod.iam.gserviceaccount.com", "projects/109876543210", "example.com"]
    },
}


@dataclass(frozen=True)
class Declared:
    """A resource as a program declares it."""

    type: str
    name: str
    props: Mapping[str, Any]
    protect: bool = False


@dataclass(frozen=True)
class Case:
    """A resource made wrong. ``policies``: those it violates, the tested one first."""

    policies: tuple[str, ...]
    says: str
    good: Declared
    bad: Declared
    id: str = field(default="")


def right() -> list[Declared]:
    """All correct resources."""
    return [_declared(name) for name in CONTENT["resources"]]


def wrong() -> list[Case]:
    """All wrong resources."""
    return [
        Case(
            policies=(policy, *case.get("also", [])),
            says=case["says"],
            good=_declared(case["resource"]),
            bad=_declared(case["resource"], case, f"{policy}-{number}"),
            id=f"{policy}-{number}",
        )
        for policy, cases in CONTENT["cases"].items()
        for number, case in enumerate(cases)
    ]


def changed(key: str, change: Mapping[str, Any], **given: Any) -> Declared:
    """The correct resource ``key`` with a change, and with another ``type`` or ``protect``."""
    return _declared(key, {"change": change, **given}, key)


def _declared(key: str, case: Mapping[str, Any] | None = None, name: str = "") -> Declared:
    case = case or {}
    base = CONTENT["resources"][key]
    props = copy.deepcopy(base["props"])
    for path, value in case.get("change", {}).items():
        _change(props, path.split("."), value)
    if "request" in props:
        props["request"] = json.dumps(props["request"])
    return Declared(
        type=case.get("type", base["type"]),
        name=name or key,
        props=props,
        protect=case.get("protect", base.get("protect", False)),
    )


def _change(target: Any, path: list[str], value: Any) -> None:
    key, *rest = path
    at = int(key) if isinstance(target, list) else key
    if rest:
        _change(target[at], rest, value)
    elif value == ABSENT:
        del target[at]
    else:
        target[at] = value
