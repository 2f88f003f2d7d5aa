"""A local cloud, and commands in its shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
import yaml

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.inventory.store import ACCOUNT, BUCKET, SERVICE, Store
from localgcp.runner.gcsfuse import storage_client

ROOT = Path(__file__).parents[2]
PROJECT = "local-training"
TRAINER = f"trainer@{PROJECT}.iam.gserviceaccount.com"
#: Texts by test, and by name.
PROGRAMS = yaml.safe_load(Path(__file__).with_name("programs.yaml").read_text("utf-8"))
_HINT = "docs/local-stack.md says how"


def until_ended(describe: str) -> str:
    """Shell words that wait for a job's end, by the gcloud command that describes it.

    gcloud reads a job once, before it streams its log: of a job that still runs it may stream for
    ever.
    """
    return f"until {describe} --format='value(endTime)' | grep -q .; do sleep 1; done"


def read_log(job: str) -> str:
    """Shell words that print a job's log at once, by its name: ``stream-logs`` takes 13 s."""
    logs = f'"resource.labels.job_id=$(basename {job})" --format="value(textPayload)"'
    return f"gcloud logging read {logs}"


@dataclass(frozen=True)
class Shell:
    """Runs commands in ``vt local shell``, opened once, in a folder of its own."""

    home: Home
    folder: Path

    @cached_property
    def environment(self) -> dict[str, str]:
        """What ``vt local shell`` gives a command."""
        # As a stranger's login: with an account and a project of the real cloud.
        strange = {
            "CLOUDSDK_CORE_PROJECT": "prod-project",
            "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": "/nonexistent",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": "https://example.invalid/",
            "BOTO_PATH": "/nonexistent",
        }
        told = subprocess.run(
            [sys.executable, "-m", "vertex_training_cli.cli", "local", "shell", "-c", "env -0"],
            cwd=ROOT,
            env={**os.environ, **strange, "VT_LOCAL_HOME": str(self.home.root), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return dict(line.split("=", 1) for line in told.split("\0") if line)

    def run(self, command: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        """The finished command; ``expect`` is its exit code."""
        done = subprocess.run(
            ["/bin/sh", "-c", f"cd {self.folder} && {command}"],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=540,
            check=False,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done

    def make_project(self, account: str, *buckets: str) -> Store:
        """Make the project as its stack would, and return what there is in the local cloud."""
        assert self.environment  # which starts it
        store = Store(self.home.database)
        for api in ("aiplatform", "logging"):
            store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
        store.put(ACCOUNT, account, PROJECT, {}, {"email": account})
        info = lifecycle.running(self.home)
        assert info is not None
        for name in buckets:
            store.put(BUCKET, name, PROJECT, {}, {"name": name, "project": PROJECT})
            storage_client(f"http://127.0.0.1:{info.storage_port}").create_bucket(name)
        return store


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    base = tmp_path_factory.mktemp("clients")
    home = Home(base / "home", ROOT)
    folder = base / "work"
    folder.mkdir()
    yield Shell(home, folder)
    subprocess.run(
        [sys.executable, "-m", "vertex_training_cli.cli", "local", "down", "--clean"],
        cwd=ROOT,
        env={**os.environ, "VT_LOCAL_HOME": str(home.root)},
        check=False,
        capture_output=True,
    )


def _needs(program: str) -> Callable[[], str]:
    @pytest.fixture(scope="session", name=program)
    def find() -> str:
        path = shutil.which(program)
        if path is None:
            pytest.skip(f"{program} is not installed ({_HINT})")
        return path

    return find


gcloud = _needs("gcloud")
gsutil = _needs("gsutil")
curl = _needs("curl")
