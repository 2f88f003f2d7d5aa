"""Buckets, accounts and secrets of an imported job by reference, and what its stack gets for it."""

from __future__ import annotations

from dataclasses import dataclass, field
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


@dataclass
class Adopted:
    """A job after its adoption, and what its stack gets."""

    task: dict[str, Any]
    added: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def adopt(job: ImportedJob, settings: Settings | None) -> Adoption:
    adoption = Adoption(job, settings, StackEntries())
    adoption.apply()
    return adoption


def adopted(
    settings: Settings | None,
    task: dict[str, Any],
    backend: str = "vertex",
    kind: str = "container",
) -> Adopted:
    """What becomes of one task; entries by ``SECTION.KEY`` but for the account."""
    pool = {f"{kind}Spec": task}
    job = ImportedJob("train", {"workerPoolSpecs": [pool]}, backend=backend)
    entries = adopt(job, settings).entries.added
    added = {
        f"{section.removeprefix('vertex-training:')}.{key}": value
        for (section, key), value in entries.items()
        if section != "vertex-training:serviceAccounts"
    }
    return Adopted(job.spec["workerPoolSpecs"][0][f"{kind}Spec"], added, job.remarks)


def new(name: str, key: str, *, read: bool = True) -> str:
    of = f"{name} becomes bucket '{key}' of the stack, which is new and empty"
    return f"{of}: copy what the job reads" if read else of


def test_without_a_stack_only_secrets_are_taken_out() -> None:
    spec = {
        "serviceAccount": "runner@p.iam.gserviceaccount.com",
        "pscInterfaceConfig": {},
        "baseOutputDirectory": {"outputUriPrefix": "gs://acme-out/runs"},
        "workerPoolSpecs": {
            "pythonPackageSpec": {
                "packageUris": ["gs://acme-ml-dev-staging-dev/packages/code-1f.tar.gz"],
                "args": ["--data=gs://acme-in/a.csv", "--password=hunter2"],
                "env": [
                    {"name": "DB_PASSWORD", "value": "hunter2"},
                    {"name": "API_TOKEN", "value": "projects/p/secrets/s/versions/1#value"},
                    {"name": "HF_TOKEN", "value": ""},
                    {"name": "URL", "value": "https://me:hunter2@example.com"},
                    {"name": "DATA", "value": "gs://acme-in/b"},
                ],
            }
        },
    }
    job = ImportedJob("train", spec, subnet="projects/p/regions/r/subnetworks/s")
    adoption = adopt(job, None)
    assert job.spec == {
        "serviceAccount": "runner@p.iam.gserviceaccount.com",
        "pscInterfaceConfig": {},
        "baseOutputDirectory": {"outputUriPrefix": "gs://acme-out/runs"},
        "workerPoolSpecs": {
            "pythonPackageSpec": {
                "packageUris": ["gs://acme-ml-dev-staging-dev/packages/code-1f.tar.gz"],
                "args": ["--data=gs://acme-in/a.csv", "--password=<REMOVED_SECRET>"],
                "env": [
                    {"name": "DB_PASSWORD", "value": "<REMOVED_SECRET>"},
                    {"name": "API_TOKEN", "value": "projects/p/secrets/s/versions/1#value"},
                    {"name": "HF_TOKEN", "value": ""},
                    {"name": "URL", "value": "<REMOVED_SECRET>"},
                    {"name": "DATA", "value": "gs://acme-in/b"},
                ],
            }
        },
    }
    assert job.remarks == [
        "a secret on its command line was left out: read it from Secret Manager",
        "DB_PASSWORD is a secret, and was left out",
        "URL is a secret, and was left out",
        "it is in projects/p/regions/r/subnetworks/s; here in the stack's subnet, which needs nat "
        "for what it reads of the internet",
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
        (["gs://acme-ml-dev-data-dev/x"], ["${buckets.data}/x"], []),
        (["gs://acme-ml-dev-staging-dev/x.csv"], ["gs://acme-ml-dev-staging-dev/x.csv"], []),
    ],
)  # fmt: skip
def test_a_bucket_in_a_word_is_a_reference(
    words: list[str], found: list[str], remarks: list[str]
) -> None:
    made = adopted(stack(**OWN), {"args": words})
    assert (made.task["args"], made.remarks) == (found, remarks)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"args": "gs://acme-ml-dev-data-dev/x"}, {"args": ["${buckets.data}/x"]}),
        ({"args": ["gs://acme-ml-dev-data-dev", 3]}, {"args": ["gs://acme-ml-dev-data-dev", 3]}),
        ({"args": []}, {"args": []}),
        ({"env": {"name": "IN", "value": "gs://acme-ml-dev-data-dev"}},
         {"env": {"name": "IN", "value": "${buckets.data}"}}),
        ({"env": ["IN", {"name": "N", "value": 3}, {"name": "M"}, {"value": "v"}]},
         {"env": ["IN", {"name": "N", "value": 3}, {"name": "M"}, {"value": "v"}]}),
        ({"packageUris": "gs://acme-ml-dev-data-dev"}, {"packageUris": "gs://acme-ml-dev-data-dev"}),
    ],
)  # fmt: skip
def test_parts_of_other_shapes_are_read_or_stay(given: Any, found: Any) -> None:
    made = adopted(stack(**OWN), given)
    assert (made.task, made.remarks) == (found, [])


def test_a_variable_of_batch_is_filled_with_the_secret() -> None:
    made = adopted(stack(), {"env": [{"name": "API_KEY", "value": "hunter2"}]}, backend="batch")
    assert made.task == {"env": [{"name": "API_KEY", "value": "${secrets.api-key.value}"}]}
    assert made.remarks == [
        "API_KEY is a secret, and who sees a job sees its variables: it is now the value of secret "
        "'api-key', which Batch reads"
    ]
