"""A build in its own process: what it is given, and what it leaves for its caller."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.images import engines
from vertex_training_cli.images.engines import standalone
from vertex_training_cli.images.engines.engine import Build

DIGEST = "sha256:" + "a" * 64
BUILD = Build(
    name="train", archive=Path("context.tar"), context="jobs/train", dockerfile="Dockerfile",
    build_args={"A": "1"}, target="", image="us-docker.pkg.dev/acme/r/train", tag="context-1",
    labels={"x": "1"}, identity="1" * 64, timeout=60.0, writes_cache=True,
)  # fmt: skip


class Builder:
    """An engine that writes one line and builds, or refuses to."""

    name = "builder"

    def __init__(self, error: CommandError | None = None) -> None:
        self.error = error
        self.built: list[Build] = []

    def build(self, build: Build, write_log: Callable[[str], None]) -> str:
        self.built.append(build)
        write_log("step 1")
        if self.error:
            raise self.error
        return DIGEST


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    request = tmp_path / "build.json"
    fields = dataclasses.asdict(BUILD) | {"archive": str(BUILD.archive)}
    request.write_text(json.dumps(fields))
    return request, tmp_path / "digest"


def run(monkeypatch: pytest.MonkeyPatch, builder: Builder, paths: tuple[Path, Path]) -> int:
    """Exit code, with ``builder`` as what this machine builds with."""

    def choose(name: str | None, project: str, region: str, *, is_local: bool) -> Builder:
        assert name is None, "the local cloud names no engine"
        assert is_local, "Cloud Build would send the build back to it"
        return builder

    monkeypatch.setattr(engines, "choose", choose)
    return standalone.main([str(path) for path in paths])


def test_the_build_of_the_file_leaves_its_digest(
    monkeypatch: pytest.MonkeyPatch,
    paths: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    builder = Builder()
    assert run(monkeypatch, builder, paths) == 0
    assert builder.built == [BUILD]
    assert paths[1].read_text() == DIGEST
    assert capsys.readouterr().out == "step 1\n"


def test_a_build_that_fails_leaves_its_reason_in_the_log_and_no_digest(
    monkeypatch: pytest.MonkeyPatch,
    paths: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    builder = Builder(CommandError("no engine builds images here.", "install docker."))
    assert run(monkeypatch, builder, paths) == 1
    assert not paths[1].exists()
    assert capsys.readouterr().out == f"step 1\n{builder.error}\n"
