"""What the commands of images print, and how they find registries and what builds."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import unjudged
from tests.unit.vt.images.conftest import write_stack
from vertex_training_cli.images import checking, command, connection, promotion
from vertex_training_cli.images.promotion import Promotion

DIGEST = "sha256:" + "0123456789ab" + "c" * 52


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The stacks whose registry was connected, and whether the local cloud may be started."""
    found: list[tuple[str, bool]] = []

    def connect(ref: Any, log: Any, *, start: bool) -> None:
        log(f"asked for {ref.stack}")
        found.append((ref.stack, start))

    monkeypatch.setattr(connection, "connect", connect)
    return found


def test_a_list_without_images_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.show(unjudged(), root, as_json=False)
    assert capsys.readouterr().out == "stack prod has no images\n"
    command.show(unjudged(), root, as_json=True)
    assert capsys.readouterr().out == "[]\n"


@pytest.mark.parametrize("wrong", [True, False])
def test_a_check_connects_the_registry_and_starts_nothing(
    vt: Any, root: Path, connected: Any, wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def show(settings: Any, names: Any, where: Path, *, as_json: bool) -> bool:
        asked.append((settings.stack, names, where, as_json))
        return wrong

    monkeypatch.setattr(checking, "show", show)
    assert vt("images", "check", "--stack", "one").exit_code == wrong
    assert vt("images", "check", "train", "--stack", "one", "--format", "json").exit_code == wrong
    assert asked == [("one", [], root, False), ("one", ["train"], root, True)]
    assert connected == [("one", False), ("one", False)]


def test_a_promotion_connects_both_registries_and_prints_a_line_an_image(
    vt: Any, root: Path, connected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def run(found: list[Promotion], where: Path, stack: str) -> list[str]:
        asked.append(([each.name for each in found], where, stack))
        return ["line one", "line two"]

    monkeypatch.setattr(promotion, "run", run)
    write_stack(root, "one", "local-one", f"{{digest: '{DIGEST}'}}")
    done = vt("promote", "train", "--from", "one", "--to", "two")
    assert (done.exit_code, done.output) == (0, "line one\nline two\n")
    assert connected == [("one", False), ("two", False)]
    assert asked == [(["train"], root, "two")]


def test_a_cancelled_build_is_an_interrupt_that_says_what_was_pinned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), command._interruptible():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
    said = "vt: interrupted; nothing was pinned that was not built.\n"
    assert capsys.readouterr().err == said
    with command._interruptible():
        pass
    assert signal.getsignal(signal.SIGTERM) is before
    assert capsys.readouterr().err == ""
