"""The schema that other languages read, and how the plugin starts."""

from __future__ import annotations

import json
import sys
from typing import Any, Literal, TypedDict

import pytest

from vertex_training import host


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json.loads(host.Host().schema or "")


class Words(TypedDict):
    """Two fields, and no file that has them."""

    color: Literal["red", "dark-blue"]
    size: int


def test_fields_of_one_name_have_the_same_choices() -> None:
    analyzer = host._Analyzer("acme")
    first = analyzer.analyze_property(Literal["red"], Words, "color", optional=True)
    assert (first.ref, first.optional) == ("#/types/acme:index:Color", True)
    again = analyzer.analyze_property(Literal["red"], Words, "color")
    assert (again.ref, again.optional) == ("#/types/acme:index:Color", False)
    with pytest.raises(
        ValueError, match=r"^Words\.color: another field with this name has different va"
    ):
        analyzer.analyze_property(Literal["blue"], Words, "color")


def test_the_plugin_serves_the_engine_and_refuses_others_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(host, "guard_servers", lambda: done.append("guarded"))
    monkeypatch.setattr(host.pulumi.provider, "main", lambda *given: done.append(given))
    monkeypatch.setattr(host, "Host", lambda: "components")
    monkeypatch.setattr(sys, "argv", ["plugin", "127.0.0.1:1"])
    host.main()
    assert done == ["guarded", ("components", ["127.0.0.1:1"])]


def test_plugin_without_an_engine_prints_its_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/pulumi-resource-vertex-training"])
    with pytest.raises(SystemExit) as ended:
        host.main()
    assert ended.value.code == (
        "pulumi-resource-vertex-training is a plugin that only pulumi starts. Run: "
        'pulumi package add "$(command -v pulumi-resource-vertex-training)"'
    )
