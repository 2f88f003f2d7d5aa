"""What this machine does not run of a job is known before the job is submitted."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import ExecutorError
from localgcp.runner import executors
from localgcp.runner.refusals import Refusal, refusals

PREBUILT = "us-docker.pkg.dev/vertex-ai/training"
LOCAL = f"us-central1-docker.pkg.dev/local-training/training/x@sha256:{'0' * 64}"
FREE = 8 << 30


@pytest.fixture(autouse=True)
def python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has the images' Python."""
    monkeypatch.setattr(executors, "python_version", lambda _executor: "3.10")


def container(image: str, **task: Any) -> dict[str, Any]:
    return {
        "replicaCount": 1,
        "machineSpec": {"machineType": "n1-standard-4"},
        "containerSpec": {"imageUri": image, **task},
    }


def found(*pools: dict[str, Any], engine: str = "", free: int = FREE) -> list[Refusal]:
    job = {"jobSpec": {"workerPoolSpecs": list(pools)}}
    return list(refusals(job, lambda: engine, free))


def package(image: str) -> dict[str, Any]:
    task = {"executorImageUri": image, "packageUris": ["gs://b/a.tar.gz"], "pythonModule": "a"}
    machine = {"machineType": "n1-standard-4"}
    return {"replicaCount": 1, "machineSpec": machine, "pythonPackageSpec": task}


@pytest.mark.parametrize(
    ("pool", "place", "said"),
    [
        (package(f"{PREBUILT}/tf-cpu.2-9.py310:latest"), "executorImageUri", "has no stand-in"),
        (container("docker.io/library/python:3.11"), "imageUri", "ENTRYPOINT is unknown"),
        (
            {**package(f"{PREBUILT}/tf-cpu.2-17.py310"), "replicaCount": 17},
            "workerPoolSpecs",
            "at most 16",
        ),
        (
            container("us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"),
            "workerPoolSpecs",
            "is a reduction server",
        ),
    ],
)
def test_what_would_end_the_job_at_its_start_is_an_error(
    pool: dict[str, Any], place: str, said: str
) -> None:
    [only] = found(pool)
    assert only.level == "error"
    assert only.path[-1] == place
    assert said in only.what


def test_replicas_that_do_not_fit_into_the_memory_are_an_error() -> None:
    [only] = found({**container("x", command=["a"]), "replicaCount": 4}, free=1 << 20)[:1]
    assert (only.level, only.path) == ("error", ("jobSpec", "workerPoolSpecs"))
    assert "4 replicas need 1024 MiB" in only.what


def test_an_image_of_the_stack_needs_an_engine_and_only_then_is_one_looked_for() -> None:
    assert found(container(LOCAL)) == []
    [only] = found(container(LOCAL), engine="nothing runs containers")
    assert (only.level, only.what) == (
        "warning",
        "the image cannot run here: nothing runs containers",
    )

    def never() -> str:
        raise AssertionError

    assert list(refusals({"jobSpec": {"workerPoolSpecs": [package(
        f"{PREBUILT}/sklearn-cpu.1-6.py310:latest")]}}, never, FREE)) == []  # fmt: skip


def test_a_missing_version_names_the_setting_that_takes_the_nearest_and_is_then_a_warning() -> None:
    old = f"{PREBUILT}/sklearn-cpu.1-0:latest"
    [missing] = found(package(old))
    assert missing.hint == "`vt local start --prebuilt nearest` uses that image"
    [foreign] = found(package("docker.io/me/sklearn-cpu.1-0"))
    assert foreign.hint == ""
    for pool, who in ((package(old), "package"), (container(old, command=["true"]), "command")):
        job = {"jobSpec": {"workerPoolSpecs": [pool]}}
        [taken] = refusals(job, lambda: "", FREE, nearest=True)
        assert taken.level == "warning"
        assert taken.what == f"the {who} runs on scikit-learn 1.6.1, not in sklearn-cpu.1-0"


def test_a_gpu_is_a_note_and_the_host_or_a_tpu_a_warning() -> None:
    gpu = container("docker.io/x:1", command=["train"])
    gpu["machineSpec"] |= {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
    assert [each.level for each in found(gpu)] == ["note", "warning"]
    tpu = container("docker.io/x:1", command=["train"])
    tpu["machineSpec"] = {"machineType": "ct5lp-hightpu-4t", "tpuTopology": "2x2"}
    assert [each.level for each in found(tpu)] == ["warning", "warning"]


def test_fields_that_nothing_here_carries_out_are_notes() -> None:
    fields = {
        "persistentResourceId": "pool",
        "enableWebAccess": True,
        "enableDashboardAccess": False,
    }
    spec = {"workerPoolSpecs": [package(f"{PREBUILT}/sklearn-cpu.1-6.py310:latest")], **fields}
    noted = list(refusals({"jobSpec": spec}, lambda: "", FREE))
    assert [(each.path[-1], each.level) for each in noted] == [
        ("persistentResourceId", "note"),
        ("enableWebAccess", "note"),
    ]


def test_another_python_than_the_images_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "python_version", lambda _executor: "3.11")
    monkeypatch.setattr(executors, "version_of", lambda _path: "3.11")
    other = "on Python 3.11, not the image's 3.10"
    prebuilt = f"{PREBUILT}/pytorch-gpu.2-4.py310:latest"
    deep = "us-docker.pkg.dev/deeplearning-platform-release/gcr.io/pytorch-gpu.2-0.py310"
    assert [(each.what, each.level) for each in found(package(prebuilt))] == [
        (f"the package runs {other}", "note")
    ]
    for image in (prebuilt, deep):
        for command in (["python3", "t.py"], ["bash", "-c", "pip list && python3 -m t"]):
            [only] = found(container(image, command=command))
            assert only.level == "warning"
            assert only.what.endswith(other)
        assert other not in str(found(container(image, command=["bash", "-c", "./python-less"])))
    for image in ("docker.io/library/python:3.11-slim", "docker.io/acme/own:1"):
        [only] = found(container(image, command=["python3"]))
        assert "Python" not in only.what


def test_a_python_that_is_missing_here_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = found(container("docker.io/x:1", command=["python3.99", "t.py"]))
    assert "starts python3.99, which is not installed" in missing[0].what

    def none(_executor: object) -> str:
        raise ExecutorError("this machine has none")

    monkeypatch.setattr(executors, "python_version", none)
    [only] = found(package(f"{PREBUILT}/sklearn-cpu.1-6.py310:latest"))
    assert (only.level, only.what) == ("error", "this machine has none")


def test_each_pool_is_judged_at_its_place_and_an_empty_one_is_not() -> None:
    image = container("docker.io/x:1", command=["train"])
    paths = [each.path for each in found(image, {}, package("docker.io/acme/own:1"))]
    pools = ("jobSpec", "workerPoolSpecs")
    assert paths == [
        (*pools, 0, "containerSpec", "command"),
        (*pools, 2, "pythonPackageSpec", "executorImageUri"),
    ]
