"""How an environment is named, made and kept, and which Python it has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.errors import ExecutorError, LocalCloudError
from localgcp.runner import executors
from localgcp.runner.executors import Executor

TORCH = Executor("torch-1", "t", ">=3.10,<3.13", "torch==2.4.1", ("numpy==1", "torch==1", "pip==2"))
SKLEARN = Executor("sk", "s", ">=3.10", "scikit-learn==1", ("numpy==1",))
UV = "/bin/uv"
#: Of this machine's variables, those that uv gets.
OF_INSTALLERS = {"PATH": os.environ["PATH"], "UV_INDEX_URL": "http://127.0.0.1:9/simple"}


class Commands:
    """Notes what is run; ``found`` says where Pythons are, by what is asked for."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []
        self.found: dict[str, str] = {}
        self.probe: int | None = 0
        self.options: list[dict[str, Any]] = []

    def run(self, command: list[str], **options: Any) -> Any:
        self.ran.append(command)
        self.options.append(options)
        if "--dry-run" in command:
            if self.probe is None:
                raise subprocess.TimeoutExpired(command, options["timeout"])
            return SimpleNamespace(returncode=self.probe)
        place = self.found.get(command[-1], "")
        return SimpleNamespace(returncode=0 if place else 2, stdout=f"{place}\n")


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What installers get, and a secret of the user, which they do not."""
    for name in [*os.environ]:
        monkeypatch.delenv(name)
    for name, value in {**OF_INSTALLERS, "SECRET": "3.10"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
    made = Commands()
    monkeypatch.setattr(executors.subprocess, "run", made.run)
    monkeypatch.setattr(executors, "uv", lambda: UV)
    monkeypatch.setattr(executors, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(executors, "version_of", lambda path: path.removeprefix("/python") or None)
    executors._python.cache_clear()
    return made


RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_a_python_that_does_not_start_is_passed_over(commands: Commands) -> None:
    executor = Executor("e", "i", ">=3.99", "torch==1", ())
    commands.found = {"3.10": "/python"}
    with pytest.raises(ExecutorError) as refused:
        executors.python_version(executor)
    assert str(refused.value) == (
        f"e needs Python >=3.99, and this machine has none (vt runs on {RUNNING}). "
        "Install Python 3.10."
    )


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that build environments."""
    ran: list[list[str]] = []

    def run(command: list[str], _report: executors.Report) -> None:
        ran.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir()

    monkeypatch.setattr(executors, "_run", run)
    return ran


@pytest.mark.parametrize("probe", [1, None])
def test_where_the_index_of_cpu_wheels_is_out_of_reach_the_default_is_taken(
    commands: Commands, built: list[list[str]], probe: int | None
) -> None:
    commands.found, commands.probe = {"3.10": "/python3.10"}, probe
    lines: list[str] = []
    executors.environment(TORCH, lines.append)
    assert lines[1] == (
        "the index of CPU wheels cannot be reached: taking the default wheels (larger)"
    )
    assert built[1][-4:] == [built[1][-4], "torch==2.4.1", "numpy==1", "pip==2"]
    assert "--torch-backend" not in built[1]


def test_another_framework_needs_no_index_of_its_own(
    commands: Commands, built: list[list[str]]
) -> None:
    commands.found = {"3.10": "/python3.10"}
    lines: list[str] = []
    executors.environment(SKLEARN, lines.append)
    assert lines[1] == "scikit-learn==1 has no CUDA: it runs on processors"
    assert "--torch-backend" not in built[1]
    assert not any("--dry-run" in command for command in commands.ran)


def test_without_a_place_for_a_cache_there_is_no_environment(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.found = {"3.10": "/python3.10"}

    def nowhere() -> Path:
        raise LocalCloudError("no home", "name one.")

    monkeypatch.setattr(executors, "cache_dir", nowhere)
    with pytest.raises(ExecutorError, match=r"no home Hint: name one\."):
        executors.environment(TORCH, lambda _line: None)


def test_a_job_that_is_cancelled_ends_the_command() -> None:
    def cancelled(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        executors._run(["sh", "-c", "echo; exec sleep 600"], cancelled)


def test_uv_is_beside_the_running_python_or_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(executors.shutil, "which", lambda _name: None)
    with pytest.raises(ExecutorError) as missing:
        executors.uv()
    assert str(missing.value) == "uv is not installed. Hint: python -m pip install uv"
    monkeypatch.setattr(executors.shutil, "which", lambda name: f"/bin/{name}")
    assert executors.uv() == "/bin/uv"
    (tmp_path / "uv").touch()
    assert executors.uv() == str(tmp_path / "uv")
