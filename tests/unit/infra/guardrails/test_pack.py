"""What the engine is told of each policy, and what a policy is told of a resource.

The policy SDK lives in the pack's own environment, where ``tests/policy/test_pack.py`` runs all
cases. Here its classes keep what they are given.
"""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from vertex_training.guardrails.policy import UNKNOWN, Resource


class UnknownValueError(Exception):
    """What the SDK's proxies raise for a value that is not known yet."""


class Severity(enum.StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


@pytest.fixture
def pack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, imported with an SDK that only keeps what it is given."""
    sdk, proxy = ModuleType("pulumi_policy"), ModuleType("pulumi_policy.proxy")
    packs: list[Any] = []
    given: dict[str, Any] = {
        "EnforcementLevel": SimpleNamespace(MANDATORY="mandatory"),
        "PolicyConfigSchema": SimpleNamespace,
        "PolicyPack": lambda name, **words: packs.append((name, words)),
        "ResourceValidationArgs": SimpleNamespace,
        "ResourceValidationPolicy": SimpleNamespace,
        "Severity": Severity,
    }
    vars(sdk).update(given)
    vars(proxy)["UnknownValueError"] = UnknownValueError
    monkeypatch.setitem(sys.modules, "pulumi_policy", sdk)
    monkeypatch.setitem(sys.modules, "pulumi_policy.proxy", proxy)
    monkeypatch.delitem(sys.modules, "vertex_training.guardrails.pack", raising=False)
    module: Any = importlib.import_module("vertex_training.guardrails.pack")
    module.packs = packs
    yield module
    sys.modules.pop("vertex_training.guardrails.pack", None)


class Proxy(Mapping[str, Any]):
    """Inputs as the SDK has them: to read an unknown value is an error."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values_ = values

    def __getitem__(self, key: str) -> Any:
        if self.values_[key] is UNKNOWN:
            raise UnknownValueError
        return self.values_[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


class Items:
    """A list as the SDK has it: no list of Python's."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> Any:
        if self.values[index] is UNKNOWN:
            raise UnknownValueError
        return self.values[index]


def arguments(props: Mapping[str, Any], **config: Any) -> SimpleNamespace:
    return SimpleNamespace(
        resource_type="gcp:storage/bucket:Bucket",
        name="storage-data",
        urn="urn:pulumi:prod::vertex-training::gcp:storage/bucket:Bucket::storage-data",
        props=props,
        opts=SimpleNamespace(protect=True),
        get_config=lambda: config,
    )


def test_a_resource_is_what_the_engine_describes_with_unknown_values_at_any_depth(
    pack: Any,
) -> None:
    props = Proxy({
        "name": "data", "raw": b"x", "days": 7, "later": UNKNOWN,
        "rules": Items(Proxy({"age": UNKNOWN}), UNKNOWN, "text"), "none": Items(),
    })  # fmt: skip
    assert pack.to_resource(arguments(props)) == Resource(
        type="gcp:storage/bucket:Bucket",
        name="storage-data",
        props={
            "name": "data", "raw": b"x", "days": 7, "later": UNKNOWN,
            "rules": [{"age": UNKNOWN}, UNKNOWN, "text"], "none": [],
        },
        stack="prod",
        protect=True,
    )  # fmt: skip
