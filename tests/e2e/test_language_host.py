"""Tests programs, dynamic providers and policy packs under the engine that `make setup` installed.

They hold for the official language host as for the stand-in: what is tested is what a user sees.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.small_stacks import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PULUMI = VENV / "bin" / "pulumi"
LIMIT_SECONDS = 120

pytestmark = pytest.mark.e2e

PROJECT = f"""\
name: scratch
runtime: {{name: python, options: {{toolchain: pip, virtualenv: {VENV}}}}}
"""

PROVIDER = PROGRAMS["language_host"]["PROVIDER"]

PROGRAM = PROGRAMS["language_host"]["PROGRAM"]

POLICY = PROGRAMS["language_host"]["POLICY"]


@dataclass(frozen=True)
class Project:
    """A project with a stack `test` in its own folder, without an activated environment."""

    folder: Path
    environment: dict[str, str]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [PULUMI, *arguments, "--non-interactive", "--color=never"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def pulumi(self, *arguments: str, code: int = 0) -> str:
        """Run a command with the exit code `code` and return its output."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=LIMIT_SECONDS)
        assert process.returncode == code, output
        return output

    def up(self, mode: str, code: int = 0) -> str:
        return self.pulumi("up", "--yes", "--skip-preview", "--config", f"mode={mode}", code=code)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    if not PULUMI.exists():
        pytest.fail("no pulumi in .venv; run `make setup`", pytrace=False)
    # A plugin on PATH keeps the engine from looking for a download; nothing here starts it.
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "pulumi-resource-gcp").write_text("#!/bin/sh\nexit 1\n")
    (plugins / "pulumi-resource-gcp").chmod(0o755)
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in {
        "Pulumi.yaml": PROJECT,
        "__main__.py": PROGRAM,
        "things.py": PROVIDER,
    }.items():
        (folder / name).write_text(text)
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join([str(plugins), "/usr/local/bin", "/usr/bin", "/bin"]),
        "PULUMI_BACKEND_URL": f"file://{tmp_path}",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    made = Project(folder, environment)
    made.pulumi("stack", "init", "test")
    yield made
    assert left_running(tmp_path) == []


def left_running(folder: Path) -> list[str]:
    """Return command lines of processes whose working directory is below `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve().is_relative_to(folder):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # ended meanwhile, or another user's
    return found


def test_program_and_dynamic_provider_run_in_the_projects_virtualenv(project: Project) -> None:
    project.pulumi("config", "set", "--secret", "token", "hidden-value")
    preview = project.pulumi("preview")
    assert "+ 2 to create" in preview
    assert "download" not in preview.lower()
    output = project.up("good")
    assert "said on stdout" in output
    assert "said on stderr" in output
    assert "hidden-value" not in output
    assert project.pulumi("stack", "output", "python").strip() == f"{VENV}/bin/python"
    assert project.pulumi("stack", "output", "secret", "--show-secrets").strip() == "hidden-value"
    project.pulumi("preview", "--expect-no-changes")
    assert "- 2 deleted" in project.pulumi("destroy", "--yes", "--skip-preview")


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("run-error", r"error: bucket 'data' is not defined\n"),
        ("exit-3", r"error: an unhandled error occurred: [Pp]rogram exited with .* code: 3\n"),
    ],
)
def test_expected_error_is_a_plain_message(project: Project, mode: str, message: str) -> None:
    output = project.up(mode, code=1)
    assert re.search(message, output), output
    assert "Traceback" not in output


def test_bug_in_the_program_shows_its_traceback_once(project: Project) -> None:
    output = project.up("exception", code=1)
    assert output.count("ValueError: a bug in the program") == 1
    assert 'project/__main__.py", line' in output
    assert "language_host" not in output
    assert "non-zero exit code" not in output


def test_failing_provider_shows_no_keyboard_interrupt(project: Project) -> None:
    output = project.up("provider-fails", code=1)
    assert "the cloud said no" in output
    assert "KeyboardInterrupt" not in output


def start_sleeping_update(project: Project) -> tuple[subprocess.Popen[str], str]:
    """Start an `up` whose program never ends; return the process and its output so far."""
    process = project.start("up", "--yes", "--skip-preview", "--config", "mode=sleep")
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if "said on stdout" in line:
            break
    return process, output


def test_interrupted_update_ends_the_program_quietly(project: Project) -> None:
    process, output = start_sleeping_update(project)
    process.send_signal(signal.SIGINT)
    output += process.communicate(timeout=LIMIT_SECONDS)[0]
    assert process.returncode != 0
    assert "update canceled" in output
    assert "KeyboardInterrupt" not in output
    assert "Traceback" not in output


def test_program_ends_with_a_killed_engine(project: Project) -> None:
    process, _ = start_sleeping_update(project)
    assert any("pulumi-language-python-exec" in line for line in left_running(project.folder))
    process.kill()
    process.communicate(timeout=LIMIT_SECONDS)
    deadline = time.monotonic() + 60
    while left_running(project.folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left_running(project.folder) == []


def test_policy_pack_runs_in_its_environment_and_stops_a_violation(project: Project) -> None:
    pack = project.folder / "policy"
    pack.mkdir()
    uv, python = VENV / "bin" / "uv", pack / ".venv" / "bin" / "python"
    pins = ROOT / "cli" / "vertex_training_cli" / "toolchain" / "policy.txt"
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, pack / ".venv"], check=True)
    subprocess.run([uv, "pip", "sync", "-q", "-p", python, "--require-hashes", pins], check=True)
    (pack / "PulumiPolicy.yaml").write_text(
        "runtime: {name: python, options: {virtualenv: .venv}}\nversion: 0.0.1\n"
    )
    (pack / "__main__.py").write_text(POLICY)
    output = project.pulumi("preview", "--policy-pack", "policy", code=1)
    assert "[mandatory]  no-things" in output
    assert "thing is a Thing" in output
    shutil.rmtree(pack)


def test_missing_virtualenv_is_reported_with_its_path(project: Project) -> None:
    (project.folder / "Pulumi.yaml").write_text(PROJECT.replace(str(VENV), "missing-venv"))
    output = project.pulumi("preview", code=1)
    assert "missing-venv" in output
    assert "Traceback" not in output
