"""What watches a local project is numbered by its service and belongs to its project."""

from __future__ import annotations

import re

import pytest

from tests.unit.localcloud.gcp.harness import Plugin

CHANNEL = "gcp:monitoring/notificationChannel:NotificationChannel"


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
