"""Lines for a shell: their words, the files that they write, and the flags of gcloud in them."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from vertex_training_cli.importing.command_lines import (
    job_of,
    options_of,
)
from vertex_training_cli.importing.imported import ImportedJob, from_message


def config(file: str) -> ImportedJob | None:
    """Return a job of Vertex AI in one of two files."""
    if file not in ("c.yaml", "snake.yaml"):
        return None
    pools = [{"containerSpec": {"imageUri": "a/b/c:1", "args": ["old"]}},
             {"pythonPackageSpec": {"pythonModule": "m"}}]  # fmt: skip
    spec = {"displayName": "inside", "labels": {"a": "b"}, "jobSpec": {"workerPoolSpecs": pools}}
    found = from_message(spec, "n")
    found.in_snake_case = file == "snake.yaml"
    return found


def job(words: str, kind: str = "custom-jobs") -> ImportedJob:
    return job_of(options_of(kind, shlex.split(words), "here"), "nameless", config)


POOL = "machine-type=n1-standard-4,replica-count=2,container-image-uri=a/b/c:1"


def test_the_flags_of_a_job_are_its_fields() -> None:
    found = job(
        "--display-name='My Job' --region=europe-west4 --labels=a=b,c=d --labels=e=f "
        f"--worker-pool-spec={POOL} --network=n --service-account=s --enable-web-access "
        "--enable-dashboard-access=true --persistent-resource-id=p --kms-key=k --args=--x=1,--y "
        "--args='^;^z,1;2' --command=python --command=-m --project=acme --format=json"
    )
    task = {
        "imageUri": "a/b/c:1",
        "args": ["--x=1", "--y", "z,1", "2"],
        "command": ["python", "-m"],
    }
    machine = {"machineType": "n1-standard-4"}
    assert found == ImportedJob(
        "my-job",
        {
            "workerPoolSpecs": [
                {"replicaCount": 2, "machineSpec": machine, "containerSpec": task}
            ],
            "network": "n", "serviceAccount": "s", "enableWebAccess": True,
            "enableDashboardAccess": True, "persistentResourceId": "p",
        },
        labels={"a": "b", "c": "d", "e": "f"}, encryption_key="k", region="europe-west4",
        project="acme",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "pool", "remarks"),
    [
        ("machine-type=m,accelerator-type=nvidia-tesla-t4", {
            "replicaCount": 1, "machineSpec": {
                "machineType": "m", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}},
         []),
        ("machine-type=m,executor-image-uri=e", {
            "replicaCount": 1, "machineSpec": {"machineType": "m"},
            "pythonPackageSpec": {
                "executorImageUri": "e", "packageUris": [], "pythonModule": ""}}, []),
        ("machine-type=m,local-package-path=src,script=t.py,output-image-uri=o,python-module=p,"
         "executor-image-uri=e,requirements=r,extra-packages=x,extra-dirs=d", {
            "replicaCount": 1, "machineSpec": {"machineType": "m"},
            "containerSpec": {"imageUri": "o"}},
         ["gcloud builds an image of src, an import does not (here): `vt images build` makes one"]),
        ("machine-type=", {}, []),
        ("<ARG_1>", "<ARG_1>", ["<ARG_1> of --worker-pool-spec is not read (here)"]),
        ("^:^machine-type=m:container-image-uri=i", {
            "replicaCount": 1, "machineSpec": {"machineType": "m"},
            "containerSpec": {"imageUri": "i"}}, []),
    ],
)  # fmt: skip
def test_a_pool_is_what_its_keys_say(spec: str, pool: Any, remarks: list[str]) -> None:
    found = job(f"--display-name=j --worker-pool-spec='{spec}'")
    assert (found.spec, found.remarks) == ({"workerPoolSpecs": [pool]}, remarks)


def test_a_pool_of_a_package_alone_has_its_address() -> None:
    [pool] = job("--worker-pool-spec=machine-type=m --python-package-uris=gs://b/a").spec[
        "workerPoolSpecs"
    ]
    assert pool["pythonPackageSpec"] == {
        "executorImageUri": "", "packageUris": ["gs://b/a"], "pythonModule": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "remarks"),
    [
        ("--config=gone.yaml",
         ["gcloud reads gone.yaml, which is not beside the source (here)"]),
        ("--config=snake.yaml", []),
        ("--config=snake.yaml --args=1",
         ["gcloud leaves out --args and --command beside a file in snake case (here)"]),
        (f"--config=snake.yaml --args=1 --worker-pool-spec={POOL}", []),
        (f"--worker-pool-spec={POOL} --tomorrow=1 --tomorrow=2 --x",
         ["gcloud's --tomorrow is not read (here)", "gcloud's --x is not read (here)"]),
        (f"--worker-pool-spec={POOL} --quiet more words", ["`more words` is not read (here)"]),
    ],
)  # fmt: skip
def test_what_of_a_command_is_not_read_is_said(words: str, remarks: list[str]) -> None:
    assert job(words).remarks == remarks
