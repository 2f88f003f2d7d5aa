"""What ``vt local status`` leaves out where there is nothing of it, and its exit code."""

from __future__ import annotations

import pytest

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.inventory.store import ENDPOINT, Store
from vertex_training_cli.local import status


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "running", lambda _: None)


def lines(home: Home, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert status.show(home) is False
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_an_endpoint_without_a_model_has_nothing_deployed(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "projects/local-x/locations/us-central1/endpoints/77"
    Store(home.database).put(ENDPOINT, name, "local-x", {}, {"displayName": "e"})
    assert [" ".join(line.split()) for line in lines(home, capsys)[2:]] == [
        "RESOURCES COUNT",
        f"{ENDPOINT} 1",
        "ENDPOINT ID DEPLOYED",
        "e 77 nothing",
    ]
