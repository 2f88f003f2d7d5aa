"""The cache, subprocesses and Go environment of ``make setup``."""

from __future__ import annotations

import functools
import os
import pwd
import time
from pathlib import Path

import pytest

from vertex_training_cli.toolchain import build, cache, console
from vertex_training_cli.toolchain.console import SetupError, SubprocessError


def running(cmdline: Path) -> bool:
    """Whether a process has its file of /proc; one that ended and is not yet reaped is empty."""
    try:
        return bool(cmdline.read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False


class TestCache:
    def test_a_finished_fill_replaces_what_was_there(self, tmp_path: Path) -> None:
        def fill(folder: Path, name: str) -> None:
            assert folder.parent == tmp_path  # a folder elsewhere cannot be renamed to the target
            assert folder.name.startswith("unfinished-")
            (folder / name).touch()

        for name in ("old", "new"):
            cache.publish(tmp_path / "target", functools.partial(fill, name=name))
        assert [file.name for file in (tmp_path / "target").iterdir()] == ["new"]

    def test_the_lock_removes_what_a_killed_setup_left(self, tmp_path: Path) -> None:
        (tmp_path / "unfinished-x").mkdir()
        with cache.lock(tmp_path):
            assert not (tmp_path / "unfinished-x").exists()

    def test_a_second_setup_waits_and_then_says_so(self, tmp_path: Path) -> None:
        with (
            cache.lock(tmp_path),
            pytest.raises(SetupError, match="another setup has held the cache"),
            cache.lock(tmp_path, limit=0.1),
        ):
            pass


class TestRun:
    def test_a_failure_carries_the_last_lines(self, tmp_path: Path) -> None:
        with pytest.raises(SubprocessError, match=r"exit code 3: no space left"):
            console.run(["sh", "-c", "echo no space left; exit 3"], what="x", log=tmp_path / "log")

    def test_a_program_that_takes_too_long_is_ended_with_its_children(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(console, "PLAIN_HEARTBEAT_SECONDS", 0.05)
        with pytest.raises(SubprocessError, match="no end after"):
            console.run(
                ["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid; wait"],
                what="sleeping",
                log=tmp_path / "log",
                limit=0.2,
            )
        child = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/cmdline")
        deadline = time.monotonic() + 30  # killed, it ends when the kernel gets to it
        while time.monotonic() < deadline and running(child):
            time.sleep(0.01)
        assert not running(child)


class TestBuild:
    def test_gives_go_a_place_for_what_it_keeps_and_what_it_throws_away(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scratch = Path("/cache/tmp")
        assert build.go_environment({}, scratch)["GOTMPDIR"] == "/cache/tmp"
        assert build.go_environment({"GOTMPDIR": "/own"}, scratch)["GOTMPDIR"] == "/own"
        assert build.go_environment({}, scratch)["HOME"] == pwd.getpwuid(os.getuid()).pw_dir

        def nobody(_number: int) -> None:
            raise KeyError("uid not found")

        monkeypatch.setattr("pwd.getpwuid", nobody)
        assert build.go_environment({}, scratch)["HOME"] == "/cache/tmp"
