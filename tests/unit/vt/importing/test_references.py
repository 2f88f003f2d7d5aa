"""Buckets, accounts and secrets of an imported job by reference, and what its stack gets for it."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.settings.model import Settings
from vertex_training_cli.importing.imported import ImportedJob
from vertex_training_cli.importing.references import Adoption, StackEntries

STACK: dict[str, Any] = {
    "stack": "dev",
    "project": "acme-ml-dev",
    "region": "us-central1",
    "projectNumber": "210987654321",
}
OWN: dict[str, Any] = {
    "buckets": {"data": {}, "artifacts": {}},
    "secrets": {"token": {}},
    "packages": {"code": {"path": "jobs/code"}},
    "serviceAccounts": {"trainer": {"reads": ["data"], "writes": ["artifacts"]}},
}


def stack(**more: Any) -> Settings:
    return Settings.model_validate(STACK | more)


def adopt(job: ImportedJob, settings: Settings | None) -> Adoption:
    adoption = Adoption(job, settings, StackEntries())
    adoption.apply()
    return adoption


def adopted(task: dict[str, Any], **entries: Any) -> ImportedJob:
    """Return the job of a container after its adoption by a stack with these entries."""
    spec = {"workerPoolSpecs": [{"containerSpec": task}]}
    job = ImportedJob("train", spec)
    adopt(job, stack(**entries))
    return job


def task_of(job: ImportedJob) -> dict[str, Any]:
    return job.spec["workerPoolSpecs"][0]["containerSpec"]


def new(name: str, key: str, *, read: bool = True) -> str:
    of = f"a new, empty bucket '{key}' of the stack replaces {name}"
    return f"{of}: copy the job's data to it" if read else of


def test_without_a_stack_only_secrets_are_taken_out() -> None:
    def spec(password: str, url: str) -> dict[str, Any]:
        env = {
            "DB_PASSWORD": password, "API_TOKEN": "projects/p/secrets/s/versions/1#value",
            "HF_TOKEN": "", "URL": url, "DATA": "gs://acme-in/b",
        }  # fmt: skip
        task = {
            "packageUris": ["gs://acme-ml-dev-staging-dev/packages/code-1f.tar.gz"],
            "args": ["--data=gs://acme-in/a.csv", f"--password={password}"],
            "env": [{"name": name, "value": value} for name, value in env.items()],
        }
        return {
            "serviceAccount": "runner@p.iam.gserviceaccount.com", "pscInterfaceConfig": {},
            "baseOutputDirectory": {"outputUriPrefix": "gs://acme-out/runs"},
            "workerPoolSpecs": {"pythonPackageSpec": task},
        }  # fmt: skip

    given = spec("hunter2", "https://me:hunter2@example.com")
    job = ImportedJob("train", given)
    adoption = adopt(job, None)
    assert job.spec == spec("<REMOVED_SECRET>", "<REMOVED_SECRET>")
    assert job.remarks == [
        "a secret on the job's command line is not imported: read the secret from Secret Manager "
        "in the code",
        "the value of variable DB_PASSWORD is a secret and is not imported",
        "the value of variable URL is a secret and is not imported",
    ]
    assert (adoption.entries.added, adoption.objects) == ({}, {})


@pytest.mark.parametrize(
    ("words", "found", "remarks"),
    [
        (["gs://acme-b/x"], ["${buckets.acme-b}/x"], [new("gs://acme-b", "acme-b")]),
        (["/gcs/acme-b/x"], ["${buckets.acme-b.mount}/x"], [new("gs://acme-b", "acme-b")]),
        (["--in=gs://acme-b,gs://acme-b/y"], ["--in=${buckets.acme-b},${buckets.acme-b}/y"],
         [new("gs://acme-b", "acme-b")]),
        (["gs://staging/x"], ["${buckets.staging-data}/x"], [new("gs://staging", "staging-data")]),
        (["gs://vertex-<PROJECT_ID>/x", "/gcs/vertex-<OTHER>", "gs://{p}-<X_1>/y", "gs://a-$P/z"],
         ["${buckets.vertex}/x", "${buckets.vertex-2.mount}", "gs://{p}-<X_1>/y", "${buckets.a}/z"],
         [new("the bucket vertex-<PROJECT_ID>", "vertex"),
          new("the bucket vertex-<OTHER>", "vertex-2"), new("the bucket a-$P", "a")]),
        (["gs://acme-ml-dev-data-dev/x"], ["${buckets.data}/x"], []),
        (["gs://acme-ml-dev-staging-dev/x.csv"], ["gs://acme-ml-dev-staging-dev/x.csv"], []),
    ],
)  # fmt: skip
def test_a_bucket_in_a_word_is_a_reference(
    words: list[str], found: list[str], remarks: list[str]
) -> None:
    job = adopted({"args": words}, **OWN)
    assert (task_of(job)["args"], job.remarks) == (found, remarks)


@pytest.mark.parametrize(
    ("word", "value", "found"),
    [
        ("gs://$B/x", "vertex-<PROJECT_ID>", "${buckets.vertex.name}"),
        ("gs://${B}", "acme-b", "${buckets.acme-b.name}"),
        ("gs://${B}-runs/x", "acme-b", "acme-b"),  # it is a part of a name
    ],
)
def test_a_variable_that_is_a_whole_bucket_is_a_reference(
    word: str, value: str, found: str
) -> None:
    job = adopted({"args": [word], "env": [{"name": "B", "value": value}]}, **OWN)
    assert task_of(job)["env"] == [{"name": "B", "value": found}]
