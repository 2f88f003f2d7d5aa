"""Where a preview runs, and what becomes of one that says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from vertex_training.errors import PreviewError
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.preview import stream_events
from vertex_training_cli.engine.pulumi_cli import BACKEND, PulumiCli


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for stack, project in (("local", "local-training"), ("dev", "acme-ml-dev")):
        (tmp_path / f"Pulumi.{stack}.yaml").write_text(f"config: {{gcp:project: {project}}}\n")
    (tmp_path / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(BACKEND, raising=False)
    return tmp_path


def test_a_local_stack_only_ever_meets_the_local_cloud(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BACKEND, "gs://acme-state")
    target = stacks.find_unchecked(root, "local").preview_target(offline=False)
    assert target.env[BACKEND] == f"file://{root}/home/pulumi"
    assert "local stack" in target.source


def test_another_stack_meets_the_state_it_is_told_to_use(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BACKEND, "gs://user:pass@acme-state/x?key=secret")
    target = stacks.find_unchecked(root, "dev").preview_target(offline=False)
    assert target.env[BACKEND].startswith("gs://")
    assert target.source == "Previewed against the state in gs://acme-state/x"


@pytest.mark.parametrize("backend", ["", "gs://acme-state"])
def test_offline_an_empty_state_and_the_stand_in_are_used(
    root: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setenv(BACKEND, backend)
    target = stacks.find_unchecked(root, "dev").preview_target(offline=True)
    assert target.env[BACKEND] == f"file://{root}/home/pulumi"
    assert "everything looks new" in target.source
    assert (root / "home" / "bin" / "pulumi-resource-gcp").is_file()


def test_without_a_state_to_use_a_preview_is_offline(root: Path) -> None:
    assert "offline" in stacks.find_unchecked(root, "dev").preview_target(offline=False).source


def test_a_stack_file_that_cannot_be_read_is_left_for_the_preview_to_tell(root: Path) -> None:
    (root / "Pulumi.dev.yaml").write_text("config: [")
    assert "offline" in stacks.find_unchecked(root, "dev").preview_target(offline=False).source


def test_an_engine_that_says_nothing_is_quoted(root: Path) -> None:
    path = root / "bin"
    path.mkdir()
    (path / "pulumi").write_text("#!/bin/sh\necho 'no stack named dev found' >&2\nexit 1\n")
    (path / "pulumi").chmod(0o755)
    with pytest.raises(PreviewError, match="no stack named dev found"):
        stream_events(PulumiCli(root, {"PATH": str(path)}), "dev")


def test_events_are_counted_as_they_come(root: Path) -> None:
    path, counted = root / "bin", list[int]()
    path.mkdir()
    (path / "pulumi").write_text("#!/bin/sh\necho '{}'\necho\necho '{}'\necho told >&2\nexit 3\n")
    (path / "pulumi").chmod(0o755)
    pulumi = PulumiCli(root, {"PATH": f"{path}:/bin"})
    stream = stream_events(pulumi, "dev", on_event=counted.append)
    assert (counted, stream.exit_code, stream.stderr) == ([1, 2], 3, "told")
