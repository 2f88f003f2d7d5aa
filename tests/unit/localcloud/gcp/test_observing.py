"""What watches a local project is numbered by its service and belongs to its project."""

from __future__ import annotations

import re

import pytest

from tests.unit.localcloud.gcp.harness import Plugin, refused, row_named

CHANNEL = "gcp:monitoring/notificationChannel:NotificationChannel"
ALERT = "gcp:monitoring/alertPolicy:AlertPolicy"


@pytest.fixture
def ready(local: Plugin) -> Plugin:
    """A local project whose monitoring is on."""
    local.enable("monitoring")
    return local


@pytest.mark.parametrize("given", [{}, {"project": ""}, {"project": "local-p1"}])
def test_a_channel_is_of_the_project_it_names_else_of_the_providers(
    ready: Plugin, given: dict[str, str]
) -> None:
    id_, made = ready.create(CHANNEL, {"type": "email", **given})

    assert re.fullmatch(r"projects/local-p1/notificationChannels/\d+", id_)
    assert (made["name"], made["project"]) == (id_, "local-p1")


def test_a_channel_can_be_named_by_its_number_alone(ready: Plugin) -> None:
    id_, _ = ready.create(CHANNEL, {"type": "email"})

    assert ready.read(CHANNEL, id_.rpartition("/")[2]).id == id_


def test_an_alert_needs_its_channels(ready: Plugin) -> None:
    id_, _ = ready.create(CHANNEL, {"type": "email"})
    alert = row_named("gpu-idle")["inputs"]
    ready.create(ALERT, {**alert, "notificationChannels": [id_]})

    gone = f"{id_}0"
    text = refused(lambda: ready.create(ALERT, {**alert, "notificationChannels": [gone]}))

    assert "Error 400" in text
    assert f"refers to {gone}, which does not exist" in text
