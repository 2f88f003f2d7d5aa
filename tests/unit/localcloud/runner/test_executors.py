"""Which environment stands in for an image, and a job's own packages on top of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from localgcp.errors import PackageError
from localgcp.runner import executors, packages
from localgcp.runner.joblog import JobLog

PREBUILT = "us-docker.pkg.dev/vertex-ai/training"


@pytest.mark.parametrize(
    ("image", "torch"),
    [
        (f"{PREBUILT}/pytorch-xla.2-4.py310:latest", "2.4.1"),
        ("europe-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-0.py310:latest", "2.0.1"),
        ("asia-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-3.py310", "2.3.1"),
    ],
)
def test_a_prebuilt_pytorch_image_has_a_stand_in_with_its_torch(image: str, torch: str) -> None:
    found = executors.for_image(image)
    assert found is not None
    assert found.requirements[0] == f"torch=={torch}"


@pytest.mark.parametrize(
    ("image", "framework"),
    [
        ("sklearn-cpu.1-6.py310:latest", "scikit-learn==1.6.1"),
        ("sklearn-gpu.1-6:latest", "scikit-learn==1.6.1"),
        ("xgboost-cpu.2-1.py310:latest", "xgboost-cpu==2.1.4"),
        ("tf-gpu.2-17.py310@sha256:" + "0" * 64, "tensorflow-cpu==2.17.1"),
        ("tf-cpu.2-16.py310", "tensorflow-cpu==2.16.2"),
    ],
)
def test_prebuilt_images_of_other_frameworks_have_stand_ins(image: str, framework: str) -> None:
    found = executors.for_image(f"{PREBUILT}/{image}")
    assert found is not None
    assert found.requirements[0] == framework
    names = [each.partition("==")[0] for each in found.requirements]
    assert len(set(names)) == len(names)  # the framework's version is not a library's
    assert "torch" not in names


@pytest.mark.parametrize(
    "image",
    [
        f"{PREBUILT}/pytorch-cpu.2-4.py310:latest",
        f"{PREBUILT}/tf-cpu.2-9.py310:latest",
        "docker.io/me/pytorch-xla.2-4.py310:latest",
    ],
)
def test_other_images_have_none(image: str) -> None:
    assert executors.for_image(image) is None


def test_every_requirement_is_pinned() -> None:
    for executor in executors.table():
        assert all("==" in requirement for requirement in executor.requirements)


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


def test_the_python_of_an_executor_is_looked_for_once_and_not_by_every_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = executors.for_image(f"{PREBUILT}/pytorch-xla.2-4.py310:latest")
    assert executor is not None
    monkeypatch.setattr(executors, "_cache", lambda: tmp_path)
    monkeypatch.setattr(executors, "_build", lambda _e, _p, folder, _r: folder.mkdir())
    executors.environment(executor, lambda _line: None)

    def refused(*_: object, **_more: object) -> None:
        raise AssertionError("a command was run")

    monkeypatch.setattr(subprocess, "run", refused)
    for _ in range(3):
        assert executors.environment(executor, lambda _line: None).parent.parent == tmp_path


@pytest.mark.parametrize(
    ("image", "near"),
    [
        ("sklearn-cpu.1-0:latest", "sklearn-cpu.1-6.py310"),
        ("xgboost-cpu.1-1", "xgboost-cpu.2-1.py310"),
        ("tf-gpu.2-9.py310", "tf-gpu.2-16.py310"),
        ("pytorch-gpu.1-13.py310", "pytorch-gpu.2-0.py310"),
        ("pytorch-xla.2-7.py310:latest", "pytorch-xla.2-4.py310"),
        ("jax-tpu.0-4.py310", None),
    ],
)
def test_of_a_missing_version_the_nearest_is_named_and_has_a_stand_in(
    image: str, near: str | None
) -> None:
    prebuilt = "us-docker.pkg.dev/vertex-ai/training/"
    assert executors.nearest_to(prebuilt + image) == near
    assert near is None or executors.for_image(prebuilt + near)
    taken = executors.for_image(prebuilt + image, nearest=True)
    assert taken == (near and executors.for_image(prebuilt + near))


def test_the_nearest_is_taken_for_a_missing_version_of_googles_images_alone() -> None:
    exact = "us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-6.py310:latest"
    assert executors.for_image(exact, nearest=True) == executors.for_image(exact)
    assert executors.for_image("docker.io/me/sklearn-cpu.1-0", nearest=True) is None
