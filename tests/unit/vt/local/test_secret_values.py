"""``vt local secret set``: a value comes from stdin, and goes into one file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_project import ROOT, copy_project, source_path


def run(
    tmp_path: Path, *arguments: str, value: bytes = b"abc"
) -> subprocess.CompletedProcess[bytes]:
    env = {"VT_LOCAL_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [
        sys.executable,
        "-m",
        "vertex_training_cli.cli",
        "local",
        "secret",
        "set",
        *arguments,
    ]
    env["PYTHONPATH"] = source_path(ROOT)
    (project := tmp_path / "project").mkdir(exist_ok=True)
    return subprocess.run(
        command, cwd=copy_project(project), env=env, input=value, capture_output=True, check=False
    )


def test_a_value_is_kept_byte_for_byte_as_the_next_version(tmp_path: Path) -> None:
    first = run(tmp_path, "wandb-api-key", value=b"one")
    assert (first.returncode, first.stdout) == (0, b"")
    assert b"wandb-api-key has version 1" in first.stderr
    second = run(tmp_path, "wandb-api-key", value=b"\0\xff\n")
    assert b"has version 2" in second.stderr
    assert b"ends in a newline" in second.stderr
    folder = tmp_path / "home/secrets/local-training/wandb-api-key-local"
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == {
        "1": b"one",
        "2": b"\0\xff\n",
    }


@pytest.mark.parametrize(
    ("arguments", "value", "said"),
    [
        (["wandb-key"], b"x", b"stack local has no secret 'wandb-key'"),
        (["wandb-api-key"], b"", b"a value has 1 to 65,536 bytes, got 0"),
        (["wandb-api-key"], b"x" * 70_000, b"a value has 1 to 65,536 bytes"),
        (["wandb-api-key", "--stack", "dev"], b"x", b"is no project of the local cloud"),
        (["wandb-api-key", "value-in-argv"], b"x", b"unexpected extra argument"),
    ],
)
def test_what_is_no_value_of_a_secret_is_refused(
    tmp_path: Path, arguments: list[str], value: bytes, said: bytes
) -> None:
    done = run(tmp_path, *arguments, value=value)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "home/secrets").exists()
