"""What ``vt local status`` leaves out where there is nothing of it, and its exit code."""

from __future__ import annotations

import os

import pytest
import typer

from localgcp import lifecycle
from localgcp.faults.model import Fault
from localgcp.faults.table import Entry, FaultTable
from localgcp.home import Home
from localgcp.inventory.reservations import RESERVATION
from localgcp.inventory.store import ENDPOINT, Store
from localgcp.runner import substitutes
from localgcp.server_info import ServerInfo
from vertex_training_cli.local import status

INFO = ServerInfo(os.getpid(), 8001, 8002, "2026-11-21T10:00:00Z")


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "running", lambda _: None)


def lines(home: Home, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert status.show(home) is False
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_a_local_cloud_without_anything_has_one_heading(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Store(home.database).list() == []
    expected = ["server: not running", f"files: {home.root}", "RESOURCES  COUNT"]
    assert lines(home, capsys) == expected


def test_nearest_versions_of_images_are_said_before_anything_was_made(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    substitutes.take_nearest(home, on=True)
    home.database.unlink(missing_ok=True)
    assert lines(home, capsys) == [
        "server: not running",
        f"files: {home.root}",
        "prebuilt images that are not here: the nearest version runs (vt local start --prebuilt)",
    ]


@pytest.mark.parametrize(
    ("fired", "told"),
    [(2, ["faults: 1 active (vt local fault list)"]), (3, [])],
)
def test_a_fault_is_active_until_it_has_happened_as_often_as_it_shall(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    fired: int, told: list[str],
) -> None:  # fmt: skip
    home.database.unlink(missing_ok=True)
    fault = Fault(service="jobs", kind="preempt", times=3)
    monkeypatch.setattr(FaultTable, "entries", lambda _: (Entry(1, fault, 9, fired),))
    assert lines(home, capsys)[2:] == told


def test_a_reservation_is_shown_with_its_machine_and_how_much_of_it_is_used(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "projects/local-x/zones/us-central1-a/reservations/r"
    machine = {"machineType": "n1-standard-4"}
    specific = {"count": "3", "instanceProperties": machine}
    outputs = {"zone": "us-central1-a", "specificReservation": specific}
    Store(home.database).put(RESERVATION, path, "local-x", {}, outputs)
    assert [" ".join(line.split()) for line in lines(home, capsys)[2:]] == [
        "RESOURCES COUNT",
        f"{RESERVATION} 1",
        "RESERVATION MACHINE USED",
        f"{path} n1-standard-4 0/3",
    ]


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


@pytest.mark.parametrize(("up", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_the_server_answers(
    home: Home, monkeypatch: pytest.MonkeyPatch, up: bool, code: int
) -> None:
    umask = os.umask(0o22)
    os.umask(umask)
    seen: list[tuple[Home, int]] = []

    def show(found: Home) -> bool:
        mask = os.umask(0o77)
        seen.append((found, mask))
        return up

    monkeypatch.setattr(Home, "find", lambda: home)
    monkeypatch.setattr(status, "show", show)
    with pytest.raises(typer.Exit) as ended:
        status.status()
    assert ended.value.exit_code == code
    assert seen == [(home, 0o77)]
    assert os.umask(umask) == umask
