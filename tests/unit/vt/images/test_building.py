"""Builds that wait, take too long, are cancelled or change: what they pin and leave behind."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from vertex_training_cli.images import building

BUILD = ("images", "build", "--stack", "one", "--engine", "buildah")


@pytest.fixture
def build(vt: Callable[..., Result], root: Path, registry: object) -> Callable[..., Result]:
    """Build, and check that a build that fails leaves the stack file as it was."""
    file = root / "Pulumi.one.yaml"

    def run(*options: str) -> Result:
        before = file.read_bytes()
        done = vt(*BUILD, *options)
        assert (file.read_bytes() != before) is (done.exit_code == 0)
        return done

    return run


def test_build_that_takes_too_long_is_ended(build: Any, programs: Path) -> None:
    (programs / "mode").write_text("wait")
    done = build("--timeout", "2s")
    assert done.exit_code == 1
    assert "the build was cancelled after 2 s" in done.output
    with pytest.raises(ProcessLookupError):
        os.kill(int((programs / "calls").read_text().split()[1]), 0)


@pytest.mark.usefixtures("programs")
def test_next_build_removes_what_a_killed_one_left(build: Any, tmp_path: Path) -> None:
    (left := tmp_path / "cache" / "image-builds" / "other" / "work" / "context").mkdir(parents=True)
    assert build().exit_code == 0
    assert not left.parent.exists()


def test_cancelled_build_pins_nothing(build: Any, programs: Path) -> None:
    (programs / "mode").write_text("wait")
    handler = signal.getsignal(signal.SIGTERM)

    def cancel() -> None:
        while not (programs / "calls").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=cancel, daemon=True).start()
    done = build()
    assert done.exit_code == 130
    assert "vt: interrupted; only completed builds are pinned.\n" in done.stderr
    assert signal.getsignal(signal.SIGTERM) is handler


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    yield handle
    os.close(handle)


def test_second_build_of_a_context_waits_for_the_first(
    build: Any, programs: Path, tmp_path: Path
) -> None:
    (programs / "mode").write_text("fail")
    assert build().exit_code == 1
    (programs / "mode").write_text("ok")
    [folder] = (tmp_path / "cache" / "image-builds").iterdir()
    assert (folder.stat().st_mode & 0o777, list(folder.iterdir())) == (0o700, [])
    (folder / "context.tar").write_text("of a build that was killed")
    with locked(folder) as lock:
        done = build("--timeout", "1s")
        assert done.exit_code == 1
        assert ("waiting for another build of the same context on this machine\n") in done.stderr
        text = "still running. Hint: wait for the other build, or raise --timeout."
        assert text in done.stderr
        threading.Timer(1, fcntl.flock, (lock, fcntl.LOCK_UN)).start()
        assert build().exit_code == 0
    assert list(folder.iterdir()) == []


def test_context_that_changes_after_its_identity_was_taken_is_not_built(
    build: Any, root: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock

    def change(handle: int, how: int) -> None:
        (root / "jobs" / "train" / "train.py").write_text("print(2)")
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", change)
    text = (
        "jobs/train: a file of the context changed while it was read. Hint: run the command again"
    )
    assert text in build().stderr
    assert not (programs / "calls").exists()


@pytest.mark.usefixtures("programs")
def test_unreachable_registry_is_one_line(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTIFACT_REGISTRY_EMULATOR_HOST", "127.0.0.1:1")
    done = build()
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "cannot reach http://127.0.0.1:1: " in done.stderr


def git(root: Path, *words: str) -> str:
    own = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    command = ["git", "-C", str(root), *own, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_labels_of_an_image_name_its_commit_and_repository_without_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("1")
    bare = {
        "org.opencontainers.image.title": "trainer",
        "vertex-training.context": "a",
        "vertex-training.built-from": "context-1",
    }

    def labels_of(**more: str) -> bool:
        named = {f"org.opencontainers.image.{key}": value for key, value in more.items()}
        return building.labels_of("trainer", "a", "context-1", tmp_path) == bare | named

    assert labels_of()
    for error in (FileNotFoundError("git"), subprocess.TimeoutExpired("git", 10)):

        def refuse(*_: object, error: Exception = error, **given: object) -> None:
            assert given["timeout"] == 10
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(subprocess, "run", refuse)
            assert labels_of()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "x")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "b/x").write_text("2")
    assert labels_of(revision=commit)
    (tmp_path / "a/x").write_text("2")
    git(tmp_path, "remote", "add", "origin", "x")
    for remote, shown in (
        ("https://u:p@git.example.org:8443/a/b.git", "https://git.example.org:8443/a/b.git"),
        ("git@git.example.org:a/b.git", "git.example.org:a/b.git"),
        ("https://git.example.org/a?token=x#y", "https://git.example.org/a"),
        ("file:///srv/a", "file:///srv/a"),
        ("/srv/a", "/srv/a"),
    ):
        git(tmp_path, "remote", "set-url", "origin", remote)
        assert labels_of(revision=f"{commit}-dirty", source=shown), remote
