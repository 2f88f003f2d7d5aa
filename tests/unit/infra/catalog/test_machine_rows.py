"""Rows of a small catalogue become machine types, accelerators and prices, field by field."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vertex_training import catalog
from vertex_training.catalog import machines
from vertex_training.catalog.machines import Price

FILES = yaml.safe_load(Path(__file__).with_name("small_catalogue.yaml").read_text("utf-8"))


@pytest.fixture(autouse=True)
def _small_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "load", FILES.__getitem__)
    for name in ("machine_types", "accelerators", "regions"):
        made = getattr(machines, name).__wrapped__()
        monkeypatch.setattr(machines, name, lambda made=made: made)


@pytest.mark.parametrize(
    ("name", "words"),
    [("big-1", "GPU with count 8"), ("odd", "SMALL with count 1 or 2 or 4"), ("slice-4", "")],
)
def test_accelerators_of_a_machine_in_words(name: str, words: str) -> None:
    assert machines.machine_types()[name].choices == words


def test_an_unavailable_machine_type_has_a_reason() -> None:
    assert machines.unavailable_reason("worse-2") == "gone"
    assert machines.unavailable_reason("worse-8") == "too old"
    assert machines.unavailable_reason("fine-2") == ""
    assert (machines.bandwidth("big-1"), machines.bandwidth("odd")) == (100, None)


def test_a_smaller_machine_of_an_endpoint_has_a_share_of_size_and_price() -> None:
    small = machines.serving_machine_type("plain-std-2")
    assert small is not None
    assert (small.name, small.family, small.vcpus, small.memory_gb) == (
        *("plain-std-2", "plain", 2, 7.5),
    )
    assert small.price == Price(0.1, 0.025, "r1", "page+list", "2026-01-02")
    assert machines.serving_machine_type("plain-std-8") is machines.machine_types()["plain-std-8"]
    vast = [machines.serving_machine_type(f"vast-std-{size}") for size in (2, 4, 8)]
    assert [(each.vcpus, each.memory_gb, each.price) for each in vast if each] == [
        (2, 8, Price(0.2, None, "r1", "page+list", "2026-01-02")),
        (4, 16, Price(0.4, None, "r1", "page+list", "2026-01-02")),
        (8, 32, Price(0.8, None, "r1", "page+list", "2026-01-02")),
    ]  # fmt: skip
    for name in (
        "plain-std-16",
        "plain-std-1",
        "plain-big-2",
        "big-2",
        "plain-std-x",
        "tiny-std-2",
    ):
        assert machines.serving_machine_type(name) is None
