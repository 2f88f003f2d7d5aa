"""Tests ``localgcp`` alone: installed from its wheel, it runs a job of Google's SDK."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Iterator

import pytest

from tests.unit.structure.tree import ROOT
from tests.unit.tools.test_wheel import build

pytestmark = pytest.mark.e2e
README = ROOT / "localcloud" / "README.md"
REMOVE = """
from localgcp import lifecycle
from localgcp.home import Home
home = Home.find()
print(lifecycle.running(home), lifecycle.stop(home), lifecycle.remove(home))
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run a program of the new environment in an empty folder."""
    folder = tmp_path_factory.mktemp("alone")
    wheel, environment, work = build(folder, "localcloud"), folder / "env", folder / "work"
    work.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    [packages] = environment.glob("lib/python3.*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    # Dependencies are those of this environment. Its own .pth files, which name the sources of
    # this checkout, have no effect in a folder that is on the path by a .pth file itself.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        env = {"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "HOME": str(folder)}
        done = subprocess.run(
            [environment / "bin" / program, *arguments],
            cwd=work, env=env, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    yield run
    run("python", "-c", REMOVE)


def test_localgcp_runs_without_the_other_packages(run: Run) -> None:
    find = "import importlib.util as u; print(*(bool(u.find_spec(n)) for n in {}))"
    names = ("localgcp", "vertex_training", "vertex_training_cli", "google.cloud.aiplatform")
    assert run("python", "-c", find.format(names)).stdout.split() == [
        *("True", "False", "False", "True")
    ]


def test_localgcp_runs_the_job_of_its_readme(run: Run) -> None:
    [program] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    done = run("python", "-c", program)
    assert done.stdout.splitlines()[-1] == "JOB_STATE_SUCCEEDED"
    assert run("python", "-c", REMOVE).stdout == "None False True\n"
