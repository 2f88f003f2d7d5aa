"""The names that states have of all that is in a component, what it waits for, and is told."""

from __future__ import annotations

import pulumi
import pytest

from tests.unit.components.recorder import registered
from tests.unit.components.test_outputs_of_components import H100
from vertex_training import (
    GpuReservation,
    TrainingAccount,
)

ACCOUNT = {"project": "local-training", "roles": {"local-training": ["roles/bigquery.user"]}}
ROLE_OF_OTHERS = {"acme-data": ["roles/bigquery.user"]}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", lambda text, *_, **__: found.append(text))
    return found


def test_what_others_must_grant_an_account_is_told(said: list[str]) -> None:
    registered(lambda: TrainingAccount("it", {**ACCOUNT, "roles": ROLE_OF_OTHERS}))
    assert [text.splitlines()[0] for text in said] == [
        "The owners of acme-data must do this before jobs of this stack can run:"
    ]


def test_what_a_reservation_costs_is_told(said: list[str]) -> None:
    registered(lambda: GpuReservation("it", H100))
    [text] = said
    assert text.startswith("reservation it: 2 x a3-highgpu-8g in us-central1-a: $")
