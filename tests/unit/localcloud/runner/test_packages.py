"""The job's own packages, from the bucket to its folder."""

from pathlib import Path

import pytest

from tests.unit.localcloud.conftest import Cloud
from vertex_training.localcloud.errors import PackageError
from vertex_training.localcloud.runner.packages import fetch


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
