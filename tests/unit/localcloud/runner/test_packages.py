"""The job's own packages, from the bucket to its folder; built once for all that have them."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from localgcp.errors import JobCancelledError, PackageError
from localgcp.runner.packages import WheelStore, build, fetch, install
from tests.unit.localcloud.conftest import Cloud, wait_until


def test_packages_of_one_name_in_two_folders_are_both_fetched(
    cloud_with_storage: Cloud, tmp_path: Path
) -> None:
    bucket = cloud_with_storage.bucket("code")
    for folder in ("one", "two"):
        bucket.blob(f"{folder}/task-1.0.tar.gz").upload_from_string(folder)
    assert cloud_with_storage.storage is not None
    uris = [f"gs://code/{folder}/task-1.0.tar.gz" for folder in ("one", "two")]
    files = fetch(uris, tmp_path / "packages", cloud_with_storage.storage.url)
    assert [file.read_text() for file in files] == ["one", "two"]
    assert {file.name for file in files} == {"task-1.0.tar.gz"}


def test_a_package_that_is_not_there_is_named(cloud_with_storage: Cloud, tmp_path: Path) -> None:
    cloud_with_storage.bucket("code")
    assert cloud_with_storage.storage is not None
    with pytest.raises(PackageError, match=r"gs://code/a\.whl does not exist"):
        fetch(["gs://code/a.whl"], tmp_path, cloud_with_storage.storage.url)


class Pip:
    """Notes what it is called with, and ends with a status."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.calls: list[tuple[list[str], dict[str, str]]] = []

    def __call__(self, command: list[str], env: Mapping[str, str]) -> int:
        self.calls.append((command, dict(env)))
        return self.code


PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
PYTHON, TMP = Path("/venv/bin/python"), Path("/j/tmp")


def test_a_package_is_built_without_network_and_without_the_users_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:word@example.com/simple")
    pip = Pip()
    build(PYTHON, [Path("/p/a.tar.gz"), Path("/p/b.whl")], Path("/wheels"), TMP, pip)
    assert pip.calls == [
        (
            [str(PYTHON), *PIP, "wheel", "--no-index", "--no-deps", "--no-build-isolation",
             "--wheel-dir", "/wheels", "/p/a.tar.gz", "/p/b.whl"],
            {
                "PATH": f"/venv/bin:{os.defpath}",
                "HOME": "/j/tmp",
                "TMPDIR": "/j/tmp",
                "LANG": "C.UTF-8",
                "PIP_CONFIG_FILE": "/dev/null",
            },
        )
    ]  # fmt: skip


def test_wheels_are_installed_from_the_users_index(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in ("PIP_INDEX_URL", "TMPDIR", "SECRET"):
        monkeypatch.setenv(name, "of the user")
    pip = Pip()
    install(PYTHON, [Path("/w/a.whl"), Path("/w/b.whl")], TMP, pip)
    assert pip.calls == [
        (
            [str(PYTHON), *PIP, "install", "--no-build-isolation", "--no-warn-script-location",
             "/w/a.whl", "/w/b.whl"],
            {"PIP_INDEX_URL": "of the user", "TMPDIR": "/j/tmp"},
        )
    ]  # fmt: skip


def test_what_pip_refuses_is_told_with_its_status() -> None:
    files = [Path("/p/a.tar.gz"), Path("/p/b.whl")]
    with pytest.raises(PackageError) as building:
        build(PYTHON, files, Path("/wheels"), TMP, Pip(1))
    assert str(building.value) == "Building a.tar.gz, b.whl failed: pip exited with status 1."
    with pytest.raises(PackageError) as installing:
        install(PYTHON, files, TMP, Pip(2))
    assert str(installing.value) == "Installing a.tar.gz, b.whl failed: pip exited with status 2."


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


def test_the_same_packages_are_built_once_and_others_anew(
    tmp_path: Path, packages: list[Path]
) -> None:
    store, build, never = WheelStore(tmp_path / "wheels"), Builds(), threading.Event()
    for _ in range(2):
        found = store.built("torch", packages, build, never)
        assert names(found) == ["half.whl", "whole.whl"]
    assert build.count == 1
    store.built("sklearn", packages, build, never)
    store.built("torch", packages[:1], build, never)
    packages[0].write_text("edited")
    store.built("torch", packages, build, never)
    renamed = packages[0].rename(tmp_path / "a-2.tar.gz")
    store.built("torch", [renamed, packages[1]], build, never)
    assert build.count == 5


def test_a_build_that_failed_or_was_killed_leaves_nothing_to_install(
    tmp_path: Path, packages: list[Path]
) -> None:
    store, build, never = WheelStore(tmp_path / "wheels"), Builds(), threading.Event()
    build.failing = True
    for _ in range(2):
        with pytest.raises(OSError, match="no"):
            store.built("torch", packages, build, never)
    [left] = (tmp_path / "wheels").iterdir()
    (left / "stray.whl").touch()
    build.failing = False
    assert names(store.built("torch", packages, build, never)) == ["half.whl", "whole.whl"]
    assert build.count == 3


def test_jobs_that_begin_at_once_share_one_build_and_one_that_waits_can_be_cancelled(
    tmp_path: Path, packages: list[Path]
) -> None:
    store, build, never = WheelStore(tmp_path / "wheels"), Builds(), threading.Event()
    build.gate.clear()
    found: list[list[str]] = []

    def one() -> None:
        found.append(names(store.built("torch", packages, build, never)))

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: build.count)
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(JobCancelledError):
        store.built("torch", packages, build, cancelled)
    build.gate.set()
    for thread in threads:
        thread.join()
    assert found == [["half.whl", "whole.whl"]] * 3
    assert build.count == 1
