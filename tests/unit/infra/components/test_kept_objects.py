"""Files and folders that a stack keeps in a bucket are objects with stable names."""

from tests.fixture_project import PROJECT
from tests.unit.infra.recorder import registered

OBJECT = "gcp:storage/bucketObject:BucketObject"


def test_each_file_of_a_folder_is_an_object_named_by_its_path():
    kept = {"all": "jobs/data", "one/file.csv": "jobs/data/titanic/train.npz"}
    found = registered("dev", buckets={"data": {"objects": kept}, "artifacts": {}})
    named = {n: inputs["name"] for n, (type_, inputs) in found.items() if type_ == OBJECT}
    files = sorted(file for file in (PROJECT / "jobs" / "data").rglob("*") if file.is_file())
    inside = [file.relative_to(PROJECT / "jobs" / "data").as_posix() for file in files]
    wanted = {f"storage-data/all/{name}": f"all/{name}" for name in inside if "__" not in name}
    wanted["storage-data/one/file.csv"] = "one/file.csv"
    assert {n: name for n, name in named.items() if n.startswith("storage-data/")} == wanted
