"""Which uv makes the policy pack's environment, what it has of ours, and waits for the cache."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from vertex_training_cli.toolchain import cache, policy_env
from vertex_training_cli.toolchain.console import SetupError, SubprocessError
from vertex_training_cli.toolchain.layout import Layout


@pytest.mark.parametrize(
    ("beside", "on_path", "found"),
    [
        (None, None, None),
        ("uv 0.5.0", None, "beside"),
        ("uv 0.5.1", "uv 0.6.0", "beside"),
        ("uv 0.4.9", None, None),
        ("uv 0.4.9", "uv 0.5.0", "on PATH"),
        (None, "uv 1.0.0", "on PATH"),
        (None, "uv 0.4.9", None),
        (SubprocessError("it fails"), "uv 0.5.0", "on PATH"),
        (SubprocessError("it fails"), SubprocessError("it fails"), None),
    ],
)
def test_the_uv_of_the_environment_comes_before_that_on_path(
    checkout: Layout, monkeypatch: pytest.MonkeyPatch, beside: Any, on_path: Any, found: str | None
) -> None:
    own, other = str(checkout.bin / "uv"), "/opt/bin/uv"
    if beside:
        Path(own).touch()
    answers = {own: beside, other: on_path}

    def read(command: list[str]) -> str:
        program, option = command
        assert option == "--version"
        if isinstance(answers[program], Exception):
            raise answers[program]
        return answers[program]

    monkeypatch.setattr(policy_env.shutil, "which", lambda name: on_path and f"/opt/bin/{name}")
    monkeypatch.setattr(policy_env, "read_output", read)
    places = {"beside": Path(own), "on PATH": Path(other), None: None}
    assert policy_env.find_uv(checkout) == places[found]


def made(layout: Layout) -> Path:
    """The environment of the policy pack as an installer leaves it; its folder of packages."""
    packages = layout.policy_venv / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    python = layout.policy_venv / "bin" / "python"
    python.parent.mkdir()
    python.touch(0o755)
    return packages


def test_the_pack_of_a_checkout_is_whole_with_a_python(checkout: Layout) -> None:
    assert not policy_env.is_whole(checkout)
    made(checkout)
    assert policy_env.is_whole(checkout)
    (checkout.policy_venv / "bin" / "python").chmod(0o644)
    assert not policy_env.is_whole(checkout)


@pytest.mark.parametrize("is_installed", [True, False])
def test_the_pack_of_an_installed_package_has_that_package_alone(
    checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    environment = tmp_path / "environment" if is_installed else None
    place = Layout(checkout.root, checkout.cache, environment=environment)
    place.policy_requirements.parent.mkdir(parents=True, exist_ok=True)
    place.policy_requirements.write_text("a==1\n")
    packages = made(place)
    (place.root / "vertex_training").mkdir()
    monkeypatch.setattr(policy_env, "run_installer", lambda *_: None)
    assert policy_env.is_whole(place) is not is_installed
    note = policy_env.install_policy_packages(place, None)
    assert note == "1 packages by hash, in an environment of their own"
    assert policy_env.is_whole(place)
    links = {each.name: each.readlink() for each in packages.iterdir()}
    ours = {"vertex_training": place.root / "vertex_training"}
    assert links == (ours if is_installed else {})
    if is_installed:
        other = tmp_path / "other" / "vertex_training"
        other.mkdir(parents=True)
        (packages / "vertex_training").unlink()
        (packages / "vertex_training").symlink_to(other)
        assert not policy_env.is_whole(place)


class Clock:
    """The time, which goes on where somebody sleeps, and who holds the lock until when."""

    def __init__(self, held_until: float) -> None:
        self.now, self.held_until = 0.0, held_until
        self.said: list[object] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def flock(self, _: int, how: int) -> None:
        assert how == fcntl.LOCK_EX | fcntl.LOCK_NB
        if self.now < self.held_until:
            raise BlockingIOError


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch):
    """Waits for a lock that is held so long, with a beat each second."""

    def wait(held: float, limit: float) -> list[object]:
        clock = Clock(held)

        class Heartbeat:
            period = 1.0

            def __init__(self, what: str) -> None:
                clock.said.append(what)

            def beat(self, seconds: float) -> None:
                clock.said.append(seconds)

            def clear(self) -> None:
                clock.said.append("clear")

        monkeypatch.setattr(cache, "Heartbeat", Heartbeat)
        monkeypatch.setattr(cache, "POLL_SECONDS", 0.5)  # adds up exactly
        monkeypatch.setattr(cache.time, "monotonic", lambda: clock.now)
        monkeypatch.setattr(cache.time, "sleep", clock.sleep)
        monkeypatch.setattr(cache.fcntl, "flock", clock.flock)
        cache._wait_for(3, limit)
        return clock.said

    return wait


WAITING = "waiting for another setup on this machine"


@pytest.mark.parametrize(
    ("held", "limit", "said"),
    [
        (0, 9, [WAITING, "clear"]),
        (1, 9, [WAITING, "clear"]),
        (1.5, 9, [WAITING, 1.0, "clear"]),
        (3.5, 9, [WAITING, 1.0, 2.0, 3.0, "clear"]),
        # it is released at the limit
        (2.5, 2, [WAITING, 1.0, 2.0, "clear"]),
    ],
)
def test_a_setup_that_waits_for_another_one_beats(
    waits: Any, held: float, limit: float, said: list[object]
) -> None:
    assert waits(held, limit) == said


def test_a_setup_does_not_wait_for_ever(waits: Any) -> None:
    with pytest.raises(SetupError) as failed:
        waits(9, 2.5)
    assert str(failed.value) == (
        "setup: another setup has held the cache for 2 s\n  Hint: end it, then run this again"
    )
