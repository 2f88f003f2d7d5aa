"""How an environment is named, made and kept, and which Python it has."""

from __future__ import annotations

import hashlib
import os
import platform
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


FIND = [UV, "python", "find", "--no-python-downloads", "--no-project", "--system"]
RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_the_requirements_have_the_framework_once_and_first() -> None:
    assert TORCH.requirements == ("torch==2.4.1", "numpy==1", "pip==2")


def test_the_images_python_is_looked_for_first(commands: Commands) -> None:
    commands.found = {"3.10": "/python3.10"}
    assert executors.python_version(TORCH) == "3.10"
    assert executors.python_version(TORCH) == "3.10"
    assert commands.ran == [[*FIND, "3.10"]]


@pytest.mark.parametrize(
    ("python", "tried"),
    [
        (f"=={RUNNING}.*", ["3.10", RUNNING, f"=={RUNNING}.*"]),
        (">=3.99", ["3.10", ">=3.99"]),
    ],
)
def test_then_the_running_one_if_it_is_supported_and_then_any_other(
    commands: Commands, python: str, tried: list[str]
) -> None:
    executor = Executor("e", "i", python, "torch==1", ())
    commands.found = {python: "/python3.98"}
    assert executors.python_version(executor) == "3.98"
    assert [command[-1] for command in commands.ran] == tried


def test_a_python_that_does_not_start_is_passed_over(commands: Commands) -> None:
    executor = Executor("e", "i", ">=3.99", "torch==1", ())
    commands.found = {"3.10": "/python"}
    with pytest.raises(ExecutorError) as refused:
        executors.python_version(executor)
    assert str(refused.value) == (
        f"e needs Python >=3.99, and this machine has none (vt runs on {RUNNING}). "
        "Install Python 3.10."
    )


def test_an_environment_is_named_by_all_that_is_in_it() -> None:
    def name(*requirements: str, version: str = "3.10") -> str:
        parts = [*requirements, version, platform.system(), platform.machine()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    assert executors._key(SKLEARN, "3.10") == f"sk-py3.10-{name('scikit-learn==1', 'numpy==1')}"
    other = name("scikit-learn==1", "numpy==1", version="3.11")
    assert executors._key(SKLEARN, "3.11") == f"sk-py3.11-{other}"


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


def test_an_environment_is_built_beside_its_place_and_once(
    commands: Commands, built: list[list[str]], tmp_path: Path
) -> None:
    commands.found = {"3.10": "/python3.10"}
    key = executors._key(TORCH, "3.10")
    folder = tmp_path / "cache" / "executors" / key
    partial = folder.with_name(f"{key}.partial")
    partial.mkdir(parents=True)
    (partial / "stale").touch()
    lines: list[str] = []
    assert executors.environment(TORCH, lines.append) == folder
    start = [UV, "--directory", str(folder.parent)]
    install = [*start, "pip", "install", "--python", str(partial / "bin" / "python")]
    assert built == [
        [*start, "venv", "--quiet", "--relocatable", "--python", "/python3.10", str(partial)],
        [*install, "--torch-backend", "cpu", "torch==2.4.1", "numpy==1", "pip==2"],
    ]
    assert lines == [
        f"preparing environment {key} (once; 3 packages)",
        f"environment {key} is ready",
    ]
    assert list(folder.iterdir()) == []
    assert sorted(each.name for each in folder.parent.iterdir()) == [key, f"{key}.lock"]
    probe = [*install, "--torch-backend", "cpu", "--no-deps", "--dry-run", "--quiet"]
    assert commands.ran[-1] == [*probe, "torch==2.4.1"]
    bounds = {"UV_HTTP_TIMEOUT": "5", "UV_HTTP_CONNECT_TIMEOUT": "5", "UV_HTTP_RETRIES": "0"}
    quiet = {"capture_output": True, "check": False}
    assert commands.options == [
        {"env": OF_INSTALLERS, "text": True, **quiet},
        {"env": {**OF_INSTALLERS, **bounds}, "timeout": 12.0, **quiet},
    ]
    lines.clear()
    assert executors.environment(TORCH, lines.append) == folder
    assert (lines, len(built)) == ([], 2)


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


def test_lines_of_a_command_are_told_and_the_last_is_the_reason() -> None:
    lines: list[str] = []
    executors._run(["sh", "-c", "echo one; echo two >&2"], lines.append)
    assert lines == ["one", "two"]
    with pytest.raises(ExecutorError) as failed:
        executors._run(["sh", "-c", "echo 'the reason '; echo; exit 2"], lines.append)
    assert str(failed.value) == "the environment could not be built: the reason"
    assert lines[2:] == ["the reason", ""]
    lines.clear()
    executors._run(
        ["sh", "-c", "printf 'a\\377b\\n'; cat; echo $UV_INDEX_URL, $SECRET"], lines.append
    )
    assert lines == ["a\ufffdb", f"{OF_INSTALLERS['UV_INDEX_URL']},"]


def test_a_job_that_is_cancelled_ends_the_command() -> None:
    def cancelled(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        executors._run(["sh", "-c", "echo; exec sleep 600"], cancelled)


def test_a_pythons_version_is_asked_of_itself(tmp_path: Path) -> None:
    assert executors.version_of(sys.executable) == RUNNING
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 3.10\nexit 1\n")
    broken.chmod(0o755)
    assert executors.version_of(str(broken)) is None
    broken.write_text("#!/bin/sh\necho $SECRET\n")
    assert executors.version_of(str(broken)) is None


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


@pytest.mark.parametrize(
    ("image", "requirements"),
    [
        ("pytorch-xla.2-0.py310", "torch==2.0.1"),
        ("pytorch-gpu.2-1.py310", "torch==2.1.2"),
        ("pytorch-gpu.2-2.py310", "torch==2.2.2"),
        ("sklearn-gpu.1-6.py310", "scikit-learn==1.6.1"),
        ("tf-gpu.2-16", "tensorflow-cpu==2.16.2"),
    ],
)
def test_each_row_stands_for_both_kinds_of_its_image(image: str, requirements: str) -> None:
    found = executors.for_image(f"asia-docker.pkg.dev/vertex-ai/training/{image}")
    assert found is not None
    assert found.framework == requirements


def test_the_names_of_the_images_have_no_part_that_may_be_left_out() -> None:
    assert executors.names() == [
        "pytorch-(xla|gpu).2-0.py310",
        "pytorch-(xla|gpu).2-1.py310",
        "pytorch-(xla|gpu).2-2.py310",
        "pytorch-(xla|gpu).2-3.py310",
        "pytorch-(xla|gpu).2-4.py310",
        "sklearn-(cpu|gpu).1-6.py310",
        "xgboost-(cpu|gpu).2-1.py310",
        "tf-(cpu|gpu).2-16.py310",
        "tf-(cpu|gpu).2-17.py310",
    ]


@pytest.mark.parametrize(
    ("image", "near"),
    [
        ("pytorch-cpu.1-13", "pytorch-xla.2-0.py310"),
        ("sklearn-xla.2-0", "sklearn-cpu.1-6.py310"),
        ("tf-gpu.3-0", "tf-gpu.2-17.py310"),
        ("tf-cpu.2-1", "tf-cpu.2-16.py310"),
        ("mxnet-cpu.1-0", None),
        ("pytorch", None),
    ],
)
def test_the_nearest_image_is_of_the_kind_that_was_asked_for(image: str, near: str | None) -> None:
    assert executors.nearest_to(f"us-docker.pkg.dev/vertex-ai/training/{image}") == near
