"""What a mount lacks is reported field by field, with an example of each."""

import pytest

from tests.unit.infra.customjob.test_rules import check, job


@pytest.mark.parametrize(
    ("kind", "examples"),
    [
        ("nfsMounts", ["server: 10.0.0.2", "path: /export", "mountPoint: data"]),
        (
            "lustreMounts",
            [
                "instanceIp: 10.0.0.2",
                "volumeHandle: the volume's unique name",
                "filesystem: the file system's name",
                "mountPoint: data",
            ],
        ),
    ],
)
def test_each_missing_field_of_a_mount_has_an_example(kind, examples):
    content = job({"machineType": "n1-standard-4"})
    content["workerPoolSpecs"][0][kind] = [{}]
    missing = [problem for problem in check(content).errors if problem.rule == "mount-needs"]
    assert [problem.hint for problem in missing] == examples
