"""The job of a few choices, whole: pools, machines, arguments and where it writes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.naming import Names
from vertex_training_cli.importing.imported import ImportedJob
from vertex_training_cli.importing.sources import SourceContents
from vertex_training_cli.new import template
from vertex_training_cli.new.code import Code
from vertex_training_cli.new.template import Choices

CPU = "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest"
GPU = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"


def settings(*, buckets: Any = ("data", "out"), writes: Any = ("out",)) -> Any:
    """A stack with these buckets, and an account that writes some."""
    accounts = {"reader": SimpleNamespace(writes=[]), "trainer": SimpleNamespace(writes=writes)}
    return SimpleNamespace(
        buckets=dict.fromkeys(buckets),
        service_accounts=accounts,
        images={"own": object()},
        names=Names("acme-ml", "7", "us-central1", "dev", {}, {("buckets", "new"): "old"}),
    )


def spec(
    pool: dict[str, Any], *more: dict[str, Any], bucket: str = "acme-ml-out-dev", **given: Any
):
    return {
        "baseOutputDirectory": {"outputUriPrefix": f"gs://{bucket}/fit/${{job.requestId}}"},
        "scheduling": {"timeout": "3600s", **given},
        "workerPoolSpecs": [pool, *more],
    }


MACHINE = {"machineType": "n1-standard-4"}


def test_a_package_is_made_with_a_first_file_and_its_arguments() -> None:
    found = template.source_of(Choices("fit", command=("--lr=1",)), settings())
    args = ["--output=/gcs/acme-ml-out-dev/fit/${job.requestId}", "--epochs=3", "--lr=1"]
    task = {"executorImageUri": CPU, "args": args}
    pool = {"replicaCount": 1, "machineSpec": MACHINE, "pythonPackageSpec": task}
    code = found.files.pop("task.py")
    assert found == SourceContents([ImportedJob("fit", spec(pool), script="task.py")])
    assert code.startswith(
        '"""fit: the code of the job. It is installed as a package and run as `python -m task`."""'
    )
    compile(code, "task.py", "exec")


@pytest.mark.parametrize(
    ("choices", "container"),
    [
        (Choices("fit", image="own"), {"imageUri": "${images.own}"}),
        (Choices("fit", image="eu/x:1", command=("run", "it")),
         {"imageUri": "eu/x:1", "command": ["run", "it"]}),
    ],
)  # fmt: skip
def test_an_image_is_a_key_of_the_stack_or_an_address(
    choices: Choices, container: dict[str, Any]
) -> None:
    pool = {"replicaCount": 1, "machineSpec": MACHINE, "containerSpec": container}
    expected = SourceContents([ImportedJob("fit", spec(pool))])
    assert template.source_of(choices, settings()) == expected


def test_code_that_is_there_is_packaged_as_it_is() -> None:
    code = Code("jobs/mine", "mine.task")
    choices = Choices("fit", code=code, accelerator="NVIDIA_L4", timeout="60s", spot=True)
    machine = {**MACHINE, "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
    task = {"executorImageUri": GPU, "pythonModule": "mine.task"}
    pool = {"replicaCount": 1, "machineSpec": machine, "pythonPackageSpec": task}
    expected = spec(pool, timeout="60s", strategy="SPOT")
    assert template.source_of(choices, settings()) == SourceContents(
        [ImportedJob("fit", expected, package="jobs/mine")]
    )
    with_words = Choices("fit", code=code, command=("--a",))
    [job] = template.source_of(with_words, settings()).jobs
    assert job.spec["workerPoolSpecs"][0]["pythonPackageSpec"]["args"] == ["--a"]


@pytest.mark.parametrize(("replicas", "counts"), [(1, [1]), (2, [1, 1]), (5, [1, 4])])
def test_the_first_pool_has_one_replica_and_the_second_all_others(
    replicas: int, counts: list[int]
) -> None:
    choices = Choices("fit", image="own", replicas=replicas, accelerator="G", accelerators=4)
    [job] = template.source_of(choices, settings()).jobs
    pools = job.spec["workerPoolSpecs"]
    assert [each["replicaCount"] for each in pools] == counts
    machine = {**MACHINE, "acceleratorType": "G", "acceleratorCount": 4}
    assert [each["machineSpec"] for each in pools] == [machine] * len(counts)


@pytest.mark.parametrize(
    ("buckets", "writes", "used"),
    [
        (("data", "out"), ["out"], "acme-ml-out-dev"),
        (("data", "out"), [], "acme-ml-data-dev"),
        (("data", "new"), ["new"], "acme-ml-old-dev"),
        ((), [], "artifacts"),
        ((), ["elsewhere"], "elsewhere"),
    ],
)
def test_a_job_writes_where_an_account_of_the_stack_may(
    buckets: tuple[str, ...], writes: list[str], used: str
) -> None:
    made = template.source_of(Choices("fit", image="own"), settings(buckets=buckets, writes=writes))
    where = made.jobs[0].spec["baseOutputDirectory"]["outputUriPrefix"]
    assert where == f"gs://{used}/fit/${{job.requestId}}"
