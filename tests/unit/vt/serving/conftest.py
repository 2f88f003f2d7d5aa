"""A local cloud with models and endpoints in this process, for `vt models` and `vt endpoints`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.unit.localcloud.conftest import home
from tests.unit.localcloud.serving.conftest import PROJECT, World, make_world, world
from vertex_training_cli.cli import app

__all__ = ["home", "make_world", "world"]

Vt = Callable[..., Result]


@pytest.fixture
def vt(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vt:
    """`vt …` in a checkout whose stacks `local` and `other` live in that cloud."""
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{world.port}")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", world.storage_url)
    monkeypatch.delenv("PULUMI_STACK", raising=False)
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    for stack in ("local", "other"):
        (folder / f"Pulumi.{stack}.yaml").write_text(
            f"config: {{gcp:project: {PROJECT}, gcp:region: us-central1}}\n"
        )
    monkeypatch.chdir(folder)

    def run(*arguments: str, stack: str = "local", code: int = 0, text: bytes = b"") -> Result:
        done = CliRunner().invoke(app, [*arguments, "--stack", stack], input=text)
        assert done.exit_code == code, done.output
        return done

    return run
