"""Buckets, accounts and secrets of an imported job by reference, and what its stack gets for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from vertex_training.settings.model import Settings
from vertex_training_cli.importing.imported import ImportedJob, Scalar
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


def test_a_job_becomes_one_of_a_new_stack() -> None:
    spec = {
        "serviceAccount": "runner@old-project.iam.gserviceaccount.com",
        "baseOutputDirectory": {"outputUriPrefix": "gs://acme-out/runs"},
        "workerPoolSpecs": [
            {
                "containerSpec": {
                    "imageUri": "us-docker.pkg.dev/old/i/x:1",
                    "command": ["python", "/gcs/acme-code/train.py"],
                    "args": ["--train=gs://acme-in/a.csv", "--epochs", "3"],
                    "env": [{"name": "HF_TOKEN", "value": "<YOUR_TOKEN>"}],
                }
            }
        ],
    }
    job = ImportedJob("train", spec)
    adoption = adopt(job, stack())
    assert job.spec == {
        "serviceAccount": "${serviceAccounts.runner}",
        "baseOutputDirectory": {"outputUriPrefix": "${buckets.acme-out}/runs"},
        "workerPoolSpecs": [
            {
                "containerSpec": {
                    "imageUri": "us-docker.pkg.dev/old/i/x:1",
                    "command": ["python", "${buckets.acme-code.mount}/train.py"],
                    "args": ["--train=${buckets.acme-in}/a.csv", "--epochs", "3"],
                    "env": [{"name": "HF_TOKEN", "value": "${secrets.hf-token}"}],
                }
            }
        ],
    }
    assert adoption.entries.added == {
        ("vertex-training:buckets", "acme-code"): {},
        ("vertex-training:buckets", "acme-in"): {},
        ("vertex-training:secrets", "hf-token"): {"description": "HF_TOKEN of an imported job"},
        ("vertex-training:buckets", "acme-out"): {},
        ("vertex-training:serviceAccounts", "runner"): {
            "reads": ["acme-code", "acme-in"],
            "writes": ["acme-out"],
            "secrets": ["hf-token"],
        },
    }
    assert job.remarks == [
        new("gs://acme-code", "acme-code"),
        new("gs://acme-in", "acme-in"),
        "HF_TOKEN is a secret, and who sees a job sees its variables: it is now the name of secret "
        "'hf-token', whose value the code reads (docs/job-files.md)",
        new("gs://acme-out", "acme-out", read=False),
    ]
    assert adoption.objects == {"acme-code": {"train.py"}, "acme-in": {"a.csv"}}


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
        (["gs://b1"], ["${buckets.b1}"], [new("gs://b1", "b1")]),
        (["gs://b"], ["gs://b"], []),
        (["gs://Acme/x"], ["gs://Acme/x"], []),
        (["gs://acme-bX"], ["gs://acme-bX"], []),
        (["gs://acme.b_c/x"], ["${buckets.acme-b-c}/x"], [new("gs://acme.b_c", "acme-b-c")]),
        (["gs://1acme/x"], ["${buckets.bucket-1acme}/x"], [new("gs://1acme", "bucket-1acme")]),
        (["gs://<YOUR_BUCKET>/x"], ["${buckets.bucket}/x"],
         [new("the bucket <YOUR_BUCKET>", "bucket")]),
        (["gs://<IN_BUCKET>/x"], ["${buckets.in-bucket}/x"],
         [new("the bucket <IN_BUCKET>", "in-bucket")]),
        (["gs://staging/x"], ["${buckets.staging-data}/x"], [new("gs://staging", "staging-data")]),
        (["gs://control/x"], ["${buckets.control-data}/x"], [new("gs://control", "control-data")]),
        (["gs://acme-ml-dev-data-dev/x"], ["${buckets.data}/x"], []),
        (["gs://data/x"], ["${buckets.data}/x"], []),
        (["gs://acme-ml-dev-staging-dev/x.csv"], ["gs://acme-ml-dev-staging-dev/x.csv"], []),
        (["gs://acme-ml-dev-control-dev/x"], ["gs://acme-ml-dev-control-dev/x"], []),
        (["${VARIABLE}/x", "--epochs=3"], ["${VARIABLE}/x", "--epochs=3"], []),
    ],
)  # fmt: skip
def test_a_bucket_in_a_word_is_a_reference(
    words: list[str], found: list[str], remarks: list[str]
) -> None:
    made = adopted(stack(**OWN), {"args": words})
    assert (made.task["args"], made.remarks) == (found, remarks)


@pytest.mark.parametrize(
    ("words", "is_written"),
    [
        *((["--" + flag, "gs://acme-b/x"], True) for flag in (
            "out", "output-dir", "save_to", "model", "checkpoint", "ckpt", "artifacts", "logs",
            "result", "export", "job-dir", "work_dir", "root.dir", "rundir", "exp-dir", "OUTPUT")),
        *((["--" + flag, "gs://acme-b/x"], False) for flag in (
            "data", "train", "dir", "data-dir", "job", "run--dir")),
        (["--output=gs://acme-b/x"], True),
        (["--data=gs://acme-b/output"], False),
        (["--output=1", "gs://acme-b/x"], False),
        (["--output", "--data", "gs://acme-b/x"], False),
        (["--output", "a", "gs://acme-b/x"], False),
        (["output", "gs://acme-b/x"], False),
        (["-o", "gs://acme-b/x"], False),
        (["output=gs://acme-b/x"], True),
    ],
)  # fmt: skip
def test_a_flag_says_whether_a_bucket_is_written_to(words: list[str], is_written: bool) -> None:
    job = ImportedJob("train", {"workerPoolSpecs": [{"containerSpec": {"args": words}}]})
    adoption = adopt(job, stack())
    assert (adoption.reads, adoption.writes) == (
        (set(), {"acme-b"}) if is_written else ({"acme-b"}, set())
    )
    assert job.remarks == [new("gs://acme-b", "acme-b", read=not is_written)]


@pytest.mark.parametrize(
    ("word", "objects"),
    [
        ("--in=gs://acme-b/train/a.csv", {"acme-b": {"train/a.csv"}}),
        ("/gcs/acme-b/a=1/b+c-d_e.tar.gz", {"acme-b": {"a=1/b+c-d_e.tar.gz"}}),
        ("gs://acme-b/a.csv,gs://acme-b/b.csv,gs://acme-c/c.csv",
         {"acme-b": {"a.csv", "b.csv"}, "acme-c": {"c.csv"}}),
        ("gs://acme-b/train", {}),
        ("gs://acme-b/train/", {}),
        ("gs://acme-b/.csv", {}),
        ("gs://acme-b", {}),
        ("--output=gs://acme-b/a.csv", {}),
        ("gs://acme-ml-dev-data-dev/a.csv", {}),
        ("gs://acme-ml-dev-staging-dev/a.csv", {}),
    ],
)  # fmt: skip
def test_files_that_a_job_reads_are_objects_of_buckets_that_are_new(
    word: str, objects: dict[str, set[str]]
) -> None:
    job = ImportedJob("train", {"workerPoolSpecs": [{"containerSpec": {"args": [word]}}]})
    assert adopt(job, stack(**OWN)).objects == objects


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--user", "me", "--password", "hunter2"],
         ["--user", "me", "--password", "<REMOVED_SECRET>"]),
        (["--password=hunter2"], ["--password=<REMOVED_SECRET>"]),
        (["DB_PASSWORD=hunter2", "x"], ["<REMOVED_SECRET>", "x"]),
        (["--password=hunter2", "gs://acme-ml-dev-data-dev"],
         ["--password=<REMOVED_SECRET>", "${buckets.data}"]),
    ],
)  # fmt: skip
def test_a_secret_on_a_command_line_is_left_out(words: list[str], found: list[str]) -> None:
    said = ["a secret on its command line was left out: read it from Secret Manager"]
    for name in ("command", "args"):
        made = adopted(stack(**OWN), {name: words})
        assert (made.task, made.remarks) == ({name: found}, said)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"args": "gs://acme-ml-dev-data-dev/x"}, {"args": ["${buckets.data}/x"]}),
        ({"args": ["gs://acme-ml-dev-data-dev", 3]}, {"args": ["gs://acme-ml-dev-data-dev", 3]}),
        ({"args": []}, {"args": []}),
        ({"args": None, "command": ["gs://acme-ml-dev-data-dev"]},
         {"args": None, "command": ["${buckets.data}"]}),
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


@pytest.mark.parametrize("value", [{}, {"value": None}, {"value": ""}])
def test_a_secret_without_a_value_is_one_of_the_stack(value: dict[str, Any]) -> None:
    made = adopted(stack(**OWN), {"env": [{"name": "HF_TOKEN", **value}]})
    assert made.task == {"env": [{"name": "HF_TOKEN", "value": "${secrets.hf-token}"}]}


def test_a_number_stays_one() -> None:
    number, bucket = Scalar("1e3"), "gs://acme-ml-dev-data-dev"
    given = {"args": [number, bucket], "env": [{"name": "N", "value": number}]}
    task = adopted(stack(**OWN), given).task
    assert task == {"args": ["1e3", "${buckets.data}"], "env": [{"name": "N", "value": "1e3"}]}
    assert {type(task["args"][0]), type(task["env"][0]["value"])} == {Scalar}


@pytest.mark.parametrize("pools", [None, 3, "x", [3, None]])
def test_pools_that_are_none_stay(pools: Any) -> None:
    job = ImportedJob("train", {"workerPoolSpecs": pools, "baseOutputDirectory": "gs://acme-b"})
    adopt(job, None)
    assert job.spec == {"workerPoolSpecs": pools, "baseOutputDirectory": "gs://acme-b"}


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("gs://acme-ml-dev-staging-dev/packages/code-0a1f.tar.gz", "${packages.code}"),
        ("gs://acme-ml-dev-staging-dev/packages/other-0a1f.tar.gz", None),
        ("gs://acme-ml-dev-staging-dev/packages/code-0a1g.tar.gz", None),
        ("gs://acme-ml-dev-staging-dev/packages/code-0a1f.tar.gz.old", None),
        ("gs://acme-b/packages/code-0a1f.tar.gz", None),
        ("code", None),
    ],
)
def test_a_package_of_the_stack_is_a_reference_and_any_other_stays(
    uri: str, found: str | None
) -> None:
    made = adopted(stack(**OWN), {"packageUris": [uri]}, kind="pythonPackage")
    assert (made.task, made.added) == ({"packageUris": [found or uri]}, {})


def test_what_was_renamed_is_known_by_the_name_that_it_keeps() -> None:
    """Not by that of its new key, which is somebody else's."""
    own = stack(
        buckets={"new": {"formerly": "old"}, "out": {}},
        secrets={"new-token": {"formerly": "old-token"}},
        serviceAccounts={
            "first": {"writes": ["new"], "secrets": ["new-token"]},
            "fit": {"formerly": "former", "writes": ["new"], "secrets": ["new-token"]},
        },
    )
    value = "projects/acme-ml-dev/secrets/old-token-dev/versions/latest#value"
    task = {"args": ["--out=gs://acme-ml-dev-old-dev"], "env": [{"name": "TOKEN", "value": value}]}
    spec = {
        "workerPoolSpecs": [{"containerSpec": task}],
        "serviceAccount": "former-dev@acme-ml-dev.iam.gserviceaccount.com",
    }
    job = ImportedJob("train", spec, backend="batch")
    adoption = adopt(job, own)
    assert (adoption.entries.added, job.remarks) == ({}, [])
    [pool] = job.spec["workerPoolSpecs"]
    assert pool["containerSpec"] == {
        "args": ["--out=${buckets.new}"],
        "env": [{"name": "TOKEN", "value": "${secrets.new-token.value}"}],
    }
    assert job.spec["serviceAccount"] == "${serviceAccounts.fit}"
    other = adopted(own, {"args": ["gs://acme-ml-dev-new-dev/x"]})
    assert other.task["args"] == ["${buckets.acme-ml-dev-new-dev}/x"]
