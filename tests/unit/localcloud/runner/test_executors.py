"""Which environment stands in for an image, and a job's own packages on top of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from localgcp.errors import PackageError
from localgcp.runner import packages
from localgcp.runner.joblog import JobLog


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    source = tmp_path / "demo-1.0"
    (source / "demo").mkdir(parents=True)
    (source / "demo" / "__init__.py").write_text("")
    (source / "demo" / "task.py").write_text("import yaml, sys; print('ran', sys.argv[1:])\n")
    # pyyaml stands for a requirement that the executor has: pip must not look for it elsewhere.
    (source / "setup.py").write_text(
        "from setuptools import setup\n"
        "setup(name='demo', version='1.0', packages=['demo'], install_requires=['pyyaml'])\n"
    )
    archive = tmp_path / "demo-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(source, "demo-1.0")
    return archive


def test_a_package_installs_without_network_over_the_executor(tmp_path: Path, sdist: Path) -> None:
    executor = Path(sys.prefix)  # this environment plays the executor's part
    python = packages.layer(executor, tmp_path / "venv")
    log = JobLog(tmp_path / "log")

    def run(command: list[str], env: object) -> int:
        offline = {**os.environ, "PIP_NO_INDEX": "1"}
        offline.pop("PIP_FIND_LINKS", None)
        with log.open() as output:
            return subprocess.run(
                command, env=offline, stdout=output, stderr=output, check=False
            ).returncode

    wheels = tmp_path / "wheels"
    packages.build(python, [sdist], wheels, tmp_path, run)
    packages.install(python, list(wheels.iterdir()), tmp_path, run)
    ran = subprocess.run(
        [str(python), "-m", "demo.task", "--x"], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "ran ['--x']\n"


def test_a_package_that_pip_refuses_is_named(tmp_path: Path, sdist: Path) -> None:
    with pytest.raises(PackageError, match=r"Building demo-1\.0\.tar\.gz failed: .* status 2"):
        packages.build(Path("python"), [sdist], tmp_path, tmp_path, lambda _c, _e: 2)
    with pytest.raises(PackageError, match=r"Installing demo-1\.0\.tar\.gz failed: .* status 2"):
        packages.install(Path("python"), [sdist], tmp_path, lambda _c, _e: 2)
