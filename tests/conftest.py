"""A copy of the checkout with a local cloud of its own, for tests that need the real engine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from localgcp.gcp.services.identity import IDENTITY
from localgcp.inventory.store import SERVICE, Store
from tests import fixture_project
from vertex_training_cli.process import exempt_loopback, set_user_variables

ROOT = Path(__file__).parents[1]
#: Types of what Google keeps when its resource is deleted: APIs, and the agents of services.
STAYING = (SERVICE, IDENTITY)

# A slow or busy machine draws as good examples as a fast one.
hypothesis.settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("any machine")

sys.addaudithook(fixture_project.refuse_samples)

# Tests call and start what `vt` would have prepared for.
exempt_loopback(os.environ)
set_user_variables(os.environ)
# Jobs of tests have no GPU of the machine that runs them.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
# Under `make test`, a `make` that a test starts would take itself for a part of that one and say
# which folder it enters.
for variable in [name for name in os.environ if name.startswith(("MAKE", "MFLAGS"))]:
    del os.environ[variable]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts background commands deaf to SIGINT, and so would be all
    # that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """``-n auto``: a test waits for a part of its time; so many leave no core idle."""
    return 2 * (os.cpu_count() or 1)


@pytest.fixture(autouse=True)
def clients_connected_by_a_test_alone() -> Iterator[None]:
    """A command that runs in this process connects Google's clients by variables, for good."""
    with _restored_connection():
        yield


@pytest.fixture(autouse=True, scope="module")
def clients_connected_by_a_module_alone() -> Iterator[None]:
    """As above, for what fixtures of a module run."""
    with _restored_connection():
        yield


@contextmanager
def _restored_connection() -> Iterator[None]:
    names = (
        *("VERTEX_EMULATOR_HOST", "STORAGE_EMULATOR_HOST", "BIGQUERY_EMULATOR_HOST"),
        *("ARTIFACT_REGISTRY_EMULATOR_HOST", "CONTAINERS_CONF", "CONTAINERS_REGISTRIES_CONF"),
        "VT_LOCAL_HOME",
    )
    before = {name: os.environ.get(name) for name in names}
    yield
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, as somebody; what it printed."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@dataclass(frozen=True)
class Checkout:
    """A copy of this checkout and the home of its local cloud."""

    path: Path
    home: Path

    def run(self, *command: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run a command in the copy; ``expect`` is the exit code, None for any."""
        env = fixture_project.clean_environment()
        # The copy's own packages come first: the environment's point at the original.
        env |= {
            "VT_LOCAL_HOME": str(self.home),
            "PYTHONPATH": fixture_project.source_path(self.path),
            "NO_COLOR": "1",
        }
        env["PATH"] = f"{self.path / '.venv' / 'bin'}{os.pathsep}{env['PATH']}"
        done = subprocess.run(
            command,
            cwd=self.path,
            env=env,
            text=True,
            capture_output=True,
            timeout=1700,
            check=False,
        )
        if expect is not None and done.returncode != expect:
            raise AssertionError(
                f"{' '.join(command)}: exit code {done.returncode}, expected {expect}\n"
                f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
            )
        return done

    def shell(self, command: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run a command in ``vt local shell``."""
        return self.run("vt", "local", "shell", "-c", command, expect=expect)

    def left(self, project: str) -> dict[str, str]:
        """What is in a project of the local cloud: id -> type, without what always stays there.

        Rights of service agents on a project stay: other stacks need them as well.
        """
        found = Store(self.home / "cloud.sqlite").list(project=project)
        stays = re.compile(r"/serviceAccount:service-\d+@")
        return {
            each.id: each.type
            for each in found
            if each.type not in STAYING and not stays.search(each.id)
        }

    def preview(self, stack: str) -> dict[str, Any]:
        """What ``pulumi preview --json`` says of a stack."""
        return json.loads(self.shell(f"pulumi preview -s {stack} --json").stdout)


def copy_checkout(target: Path, *, sample_code: bool = True, samples: bool = False) -> Checkout:
    """Copy every file git would commit; the environment is shared.

    The stacks are those of ``tests/fixtures/project``, and with ``samples`` those of the
    repository, with its ``extra.py``. ``sample_code`` keeps the code below ``jobs/``, for stories
    that run it.
    """
    with fixture_project.reading_samples() if samples else nullcontext():
        _copy_files(target, sample_code=sample_code, samples=samples)
    if not samples:
        fixture_project.lay_over(target, sample_code=sample_code)
    (target / ".venv").symlink_to(ROOT / ".venv")
    return Checkout(target, target / ".vt-local")


def _copy_files(target: Path, *, sample_code: bool, samples: bool) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout.decode()  # fmt: skip
    for name in filter(None, listed.split("\0")):
        left_out = fixture_project.is_companys(name) or (
            not sample_code and fixture_project.is_sample(name)
        )
        if (ROOT / name).is_file() and (samples or not left_out):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


@contextmanager
def running_checkout(target: Path) -> Iterator[Checkout]:
    """A copy whose local cloud runs, and is removed at the end: for stories that leave things."""
    copy = copy_checkout(target)
    copy.run("vt", "local", "start")
    try:
        yield copy
    finally:
        copy.run("vt", "local", "down", "--clean")


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A copy whose local cloud is stopped and removed at the end."""
    copy = copy_checkout(tmp_path_factory.mktemp("checkout"))
    yield copy
    copy.run("vt", "local", "down", "--clean")
