"""The job's own packages, from the bucket to its folder; built once for all that have them."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path

import pytest

from localgcp.errors import JobCancelledError, PackageError
from localgcp.runner.preparation import built_wheels, fetch_packages, shared_environment
from tests.unit.localcloud.conftest import Cloud, wait_until


def test_packages_of_one_name_in_two_folders_are_both_fetched(
    cloud_with_storage: Cloud, tmp_path: Path
) -> None:
    bucket = cloud_with_storage.bucket("code")
    for folder in ("one", "two"):
        bucket.blob(f"{folder}/task-1.0.tar.gz").upload_from_string(folder)
    assert cloud_with_storage.storage is not None
    uris = [f"gs://code/{folder}/task-1.0.tar.gz" for folder in ("one", "two")]
    files = fetch_packages(uris, tmp_path / "packages", cloud_with_storage.storage.url)
    assert [file.read_text() for file in files] == ["one", "two"]
    assert {file.name for file in files} == {"task-1.0.tar.gz"}


def test_a_package_that_is_not_there_is_named(cloud_with_storage: Cloud, tmp_path: Path) -> None:
    cloud_with_storage.bucket("code")
    assert cloud_with_storage.storage is not None
    with pytest.raises(PackageError, match=r"gs://code/a\.whl does not exist"):
        fetch_packages(["gs://code/a.whl"], tmp_path, cloud_with_storage.storage.url)


PYTHON, TMP = Path("/venv/bin/python"), Path("/j/tmp")


class Builds:
    """A build that counts; it waits while ``gate`` is closed, and fails if it is told to."""

    def __init__(self) -> None:
        self.count, self.failing = 0, False
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, target: Path) -> None:
        self.count += 1
        (target / "half.whl").touch()
        self.gate.wait(60)
        if self.failing:
            raise OSError("no")
        (target / "whole.whl").touch()


@pytest.fixture
def packages(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in ("a-1.tar.gz", "b-1.tar.gz")]
    for file in made:
        file.write_text(file.name)
    return made


def names(files: list[Path]) -> list[str]:
    return [file.name for file in files]


def test_jobs_that_begin_at_once_share_one_build_and_one_that_waits_can_be_cancelled(
    tmp_path: Path, packages: list[Path]
) -> None:
    folder, build, never = tmp_path / "wheels", Builds(), threading.Event()
    build.gate.clear()
    found: list[list[str]] = []

    def one() -> None:
        found.append(names(built_wheels(folder, "torch", packages, build, never)))

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: build.count)
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(JobCancelledError):
        built_wheels(folder, "torch", packages, build, cancelled)
    build.gate.set()
    for thread in threads:
        thread.join()
    assert found == [["half.whl", "whole.whl"]] * 3
    assert build.count == 1


@pytest.mark.parametrize(
    ("requirements", "shared"),
    [([], True), (["a==1", "b[c]===2; python_version>'3'"], True), (["a==1", "b>=2"], False),
     (["a==1.*"], False), (["a"], False), (["a @ https://x/a.whl"], False), (["?"], False)],
)  # fmt: skip
def test_jobs_share_an_environment_whose_requirements_are_pinned(
    tmp_path: Path, requirements: list[str], shared: bool
) -> None:
    wheel, build = tmp_path / "key" / "code-1.whl", Builds()
    wheel.parent.mkdir()
    lines = "".join(f"Requires-Dist: {each}\n" for each in requirements)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("code-1.dist-info/METADATA", f"Name: code\n{lines}\nRequires-Dist: x\n")
    build.failing = True  # as if the server was killed in the middle
    if shared:
        with pytest.raises(OSError, match="no"):
            shared_environment([wheel], build, threading.Event())
    build.failing = False
    for _ in range(2):
        made = shared_environment([wheel], build, threading.Event())
        assert (made is not None) is shared
        assert made is None or names(sorted(made.iterdir())) == ["half.whl", "whole.whl"]
    assert build.count == 2 * shared
