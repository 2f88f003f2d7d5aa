"""Secrets in variables of an imported job, the account that it runs as, and its network."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.importing.test_references import OWN, STACK, adopt, adopted, new, stack
from vertex_training_cli.importing.imported import ImportedJob
from vertex_training_cli.importing.references import StackEntries

NAMED = "{0} is a secret, and who sees a job sees its variables: it is now the name of secret "
NAMED += "'{1}', whose value the code reads (docs/job-files.md)"
FILLED = "{0} is a secret, and who sees a job sees its variables: it is now the value of secret "
FILLED += "'{1}', which Batch reads"


def described(name: str) -> dict[str, str]:
    return {"description": f"{name} of an imported job"}


@pytest.mark.parametrize(
    ("name", "value", "found", "added", "remarks"),
    [
        ("DB_PASSWORD", "hunter2", "${secrets.db-password}",
         {"secrets.db-password": described("DB_PASSWORD")},
         [NAMED.format("DB_PASSWORD", "db-password")]),
        ("TOKEN", "hunter2", "${secrets.token}", {}, [NAMED.format("TOKEN", "token")]),
        *((name, value, "${secrets.api-key}", {"secrets.api-key": described(name)},
           [NAMED.format(name, "api-key")]) for name, value in (
            ("API_KEY", ""), ("API_KEY", "<your key>"), ("API_KEY", "$KEY"),
            ("API_KEY", "${API_KEY}"), ("API_KEY", "YOUR_API_KEY"))),
        *((f"HF_{word}", "", f"${{secrets.hf-{word.lower()}}}",
           {f"secrets.hf-{word.lower()}": described(f"HF_{word}")},
           [NAMED.format(f"HF_{word}", f"hf-{word.lower()}")]) for word in (
            "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "TOKEN")),
        ("HF_TOKENS", "", "", {}, []),
        ("MONKEY", "", "", {}, []),
        ("EPOCHS", "<YOUR_EPOCHS>", "<YOUR_EPOCHS>", {}, []),
        ("FLAGS", "--password=hunter2 --x=1", "${secrets.flags}",
         {"secrets.flags": described("FLAGS")}, [NAMED.format("FLAGS", "flags")]),
        ("DATA", "gs://acme-b/x", "${buckets.acme-b}/x", {"buckets.acme-b": {}},
         [new("gs://acme-b", "acme-b")]),
        ("OUTPUT", "gs://acme-b/x", "${buckets.acme-b}/x", {"buckets.acme-b": {}},
         [new("gs://acme-b", "acme-b", read=False)]),
        ("DATA", "acme-b", "acme-b", {}, []),
    ],
)  # fmt: skip
def test_a_variable_that_holds_a_secret_names_one_of_the_stack(
    name: str, value: str, found: str, added: dict[str, Any], remarks: list[str]
) -> None:
    made = adopted(stack(**OWN), {"env": [{"name": name, "value": value}]})
    assert made.task == {"env": [{"name": name, "value": found}]}
    assert (made.added, made.remarks) == (added, remarks)


def test_a_variable_of_batch_is_filled_with_the_secret() -> None:
    made = adopted(stack(), {"env": [{"name": "API_KEY", "value": "hunter2"}]}, backend="batch")
    assert made.task == {"env": [{"name": "API_KEY", "value": "${secrets.api-key.value}"}]}
    assert made.remarks == [FILLED.format("API_KEY", "api-key")]


@pytest.mark.parametrize(
    ("words", "value", "found", "added"),
    [
        (["cp $IN/x ."], "acme-b", "acme-b", {}),
        (["cp gs://$IN/x ."], "acme-b", "${buckets.acme-b.name}", {"buckets.acme-b": {}}),
        (["cp gs://${IN}/x ."], "acme-b", "${buckets.acme-b.name}", {"buckets.acme-b": {}}),
        (["cd /gcs/$IN"], "acme-b", "${buckets.acme-b.name}", {"buckets.acme-b": {}}),
        (["make", "IN=gs://$(IN)"], "acme-b", "${buckets.acme-b.name}", {"buckets.acme-b": {}}),
        (["cp gs://$IN/x ."], "<YOUR_BUCKET>", "${buckets.bucket.name}", {"buckets.bucket": {}}),
        (["cp gs://$IN/x ."], "acme-ml-dev-data-dev", "${buckets.data.name}", {}),
        (["cp gs://$IN/x ."], "Acme", "Acme", {}),
        (["cp gs://$IN/x ."], "acme-", "acme-", {}),
        (["cp gs://$IN/x ."], "ab", "ab", {}),
        (["cp gs://$OTHER/x ."], "acme-b", "acme-b", {}),
    ],
)
def test_a_variable_that_names_a_bucket_of_a_script_is_the_buckets_name(
    words: list[str], value: str, found: str, added: dict[str, Any]
) -> None:
    task = {"command": words, "env": [{"name": "IN", "value": value}]}
    made = adopted(stack(**OWN), task)
    assert made.task == {"command": words, "env": [{"name": "IN", "value": found}]}
    assert made.added == added


def test_a_bucket_by_its_variable_may_be_written_to() -> None:
    task = {"args": ["gs://$IN"], "env": [{"name": "IN", "value": "acme-b"}]}
    adoption = adopt(ImportedJob("j", {"workerPoolSpecs": [{"containerSpec": task}]}), stack())
    assert (adoption.reads, adoption.writes) == (set(), {"acme-b"})


OTHER, SECOND = (f"projects/{name}-project/secrets" for name in ("other", "second"))
LOCAL = STACK | {"project": "local-demo"}


@pytest.mark.parametrize(
    ("settings", "values", "found", "secrets"),
    [
        (STACK | OWN, ["projects/acme-ml-dev/secrets/token-dev/versions/latest#value"],
         ["${secrets.token.value}"], {}),
        (STACK | OWN, ["projects/acme-ml-dev/secrets/token-dev/versions/3#value"],
         ["${secrets.token}/versions/3#value"], {}),
        (STACK, [f"{OTHER}/Hf_Token/versions/latest#value", f"{OTHER}/Hf_Token/versions/2#value"],
         ["${secrets.hf-token.value}", "${secrets.hf-token}/versions/2#value"],
         {"hf-token": {"existing": f"{OTHER}/Hf_Token"}}),
        (STACK | OWN, [f"{OTHER}/token/versions/latest#value"], ["${secrets.token-2.value}"],
         {"token-2": {"existing": f"{OTHER}/token"}}),
        (STACK, [f"{OTHER}/a/versions/1#value", f"{SECOND}/a/versions/1#value"],
         ["${secrets.a}/versions/1#value", "${secrets.a-2}/versions/1#value"],
         {"a": {"existing": f"{OTHER}/a"},
          "a-2": {"existing": f"{SECOND}/a"}}),
        (STACK, ["projects/<P>/secrets/a/versions/latest#value"], ["${secrets.a.value}"],
         {"a": described("V0")}),
        (LOCAL, [f"{OTHER}/a/versions/latest#value"], ["${secrets.a.value}"],
         {"a": described("V0")}),
        (STACK, [f"{OTHER}/a/versions/latest"], [f"{OTHER}/a/versions/latest"], {}),
    ],
)  # fmt: skip
def test_a_secret_that_batch_reads_is_one_of_the_stack(
    settings: dict[str, Any], values: list[str], found: list[str], secrets: dict[str, Any]
) -> None:
    env = [{"name": f"V{index}", "value": value} for index, value in enumerate(values)]
    made = adopted(stack(**settings), {"env": env}, backend="batch")
    assert [each["value"] for each in made.task["env"]] == found
    assert made.added == {f"secrets.{key}": value for key, value in secrets.items()}
    verb = "vt local secret set" if settings is LOCAL else "gcloud secrets versions add"
    assert made.remarks == [
        f"V0 is secret '{key}' of the stack, which is new and has no value: `{verb}`"
        for key, value in secrets.items() if "existing" not in value
    ]  # fmt: skip


def test_a_bucket_of_a_local_stack_may_be_destroyed() -> None:
    made = adopted(stack(**LOCAL), {"args": ["gs://acme-b/x"]})
    assert made.added == {"buckets.acme-b": {"forceDestroy": True}}


def test_secrets_in_other_parts_of_a_job_are_left_out() -> None:
    job = ImportedJob(
        "train",
        {"unheardOf": [{"VALUE": "hunter2", "Name": "DB_PASSWORD"}, {"password": "hunter2"}],
         "note": "clone https://me:hunter2@example.com/x.git", "count": 3, "password": ""},
        {"studySpec": {"apiKey": "abc123abc123", "key": "learning_rate"}},
        {"password": "hunter2", "team": "ml"},
    )  # fmt: skip
    adopt(job, None)
    assert job.spec == {
        "unheardOf": [
            {"Name": "DB_PASSWORD", "VALUE": "<REMOVED_SECRET>"},
            {"password": "<REMOVED_SECRET>"},
        ],
        "note": "clone https://me:<REMOVED_SECRET>@example.com/x.git",
        "count": 3,
        "password": "",
    }
    assert job.study == {"studySpec": {"apiKey": "<REMOVED_SECRET>", "key": "learning_rate"}}
    assert job.labels == {"password": "<REMOVED_SECRET>", "team": "ml"}
    names = ("DB_PASSWORD", "password", "note", "apiKey", "password")
    assert job.remarks == [f"a secret in {name} was left out" for name in names]


ACCOUNTS = {
    "first": {"reads": ["data"]},
    "second": {"reads": ["data"], "writes": ["artifacts"], "secrets": ["token"]},
    "third": {"writes": ["data", "artifacts"]},
}


@pytest.mark.parametrize(
    ("email", "args", "env", "account"),
    [
        ("", ["--in=gs://data"], [], "first"),
        ("", [], [], "first"),
        ("", ["--in=gs://data", "--out=gs://artifacts"], [], "second"),
        ("", ["--out=gs://data"], [], "third"),
        ("", [], ["TOKEN"], "second"),
        ("second-dev@acme-ml-dev.iam.gserviceaccount.com", [], [], "second"),
        ("third-dev@acme-ml-dev.iam.gserviceaccount.com", ["--in=gs://data"], [], "third"),
        ("third-dev@acme-ml-dev.iam.gserviceaccount.com", [], ["TOKEN"], "second"),
        ("third@other.iam.gserviceaccount.com", [], [], "third"),
        ("runner@other.iam.gserviceaccount.com", [], [], "first"),
    ],
)
def test_an_account_of_the_stack_with_every_right_runs_the_job(
    email: str, args: list[str], env: list[str], account: str
) -> None:
    task = {"args": args, "env": [{"name": name, "value": "hunter2"} for name in env]}
    job = ImportedJob(
        "train", {"serviceAccount": email, "workerPoolSpecs": [{"containerSpec": task}]}
    )
    adoption = adopt(job, stack(**OWN | {"serviceAccounts": ACCOUNTS}))
    assert job.spec["serviceAccount"] == f"${{serviceAccounts.{account}}}"
    assert adoption.entries.added == {}


@pytest.mark.parametrize(
    ("email", "name", "account"),
    [
        ("Run_ner@other.iam.gserviceaccount.com", "train", "run-ner"),
        ("runner", "train", "train"),
        ("", "a-job-of-nineteen-x-y", "a-job-of-nineteen-x"),
        ("", "a-job-of-twenty-one-x", "a-job-of-twenty-one"),
        ("", "twenty-characters-abcd", "twenty-characters-ab"),
        ("", "trainer", "trainer-2"),
        ("trainer-dev@acme-ml-dev.iam.gserviceaccount.com", "train", "trainer-2"),
    ],
)
def test_an_account_that_is_missing_has_the_name_of_the_old_one_or_of_the_job(
    email: str, name: str, account: str
) -> None:
    task = {"args": ["--out=gs://data", "--in=gs://data", "--in=gs://artifacts"]}
    spec = {"serviceAccount": email, "workerPoolSpecs": [{"containerSpec": task}]}
    adoption = adopt(ImportedJob(name, spec), stack(**OWN))
    assert adoption.job.spec["serviceAccount"] == f"${{serviceAccounts.{account}}}"
    assert adoption.entries.added == {
        ("vertex-training:serviceAccounts", account): {"reads": ["artifacts"], "writes": ["data"]}
    }


@pytest.mark.parametrize(
    ("subnet", "mode", "config", "remarks"),
    [
        ("", "none", "c", []),
        ("", "psc", "c", []),
        ("sub", "psc", "c",
         ["it is in sub; here in the stack's subnet, which needs nat for what it reads of the "
          "internet"]),
        ("sub", "none", None,
         ["it is in sub without external addresses: here in the project's default network, unless "
          "the stack has network mode psc and the job pscInterfaceConfig: ${network.interface}"]),
    ],
)  # fmt: skip
def test_machines_without_external_addresses_are_in_the_stacks_subnet(
    subnet: str, mode: str, config: str | None, remarks: list[str]
) -> None:
    job = ImportedJob("train", {"pscInterfaceConfig": "c"}, subnet=subnet)
    adopt(job, stack(**OWN, network={"mode": mode}))
    assert (job.spec.get("pscInterfaceConfig"), job.remarks) == (config, remarks)


def test_entries_of_a_stack_file_hold_objects_of_their_buckets() -> None:
    entries = StackEntries()
    entries.add("buckets", "a", {"forceDestroy": True})
    entries.add("buckets", "b", {})
    entries.add("secrets", "s", {})
    entries.add_objects("a", {"x": "jobs/data/a/x"})
    entries.add_objects("a", {"y": "data/y"})
    entries.add_objects("b", {})
    assert entries.added == {
        ("vertex-training:buckets", "a"): {
            "forceDestroy": True,
            "objects": {"x": "jobs/data/a/x", "y": "data/y"},
        },
        ("vertex-training:buckets", "b"): {},
        ("vertex-training:secrets", "s"): {},
    }
    assert entries.object_files() == ["jobs/data/a/x", "data/y"]
    assert (entries.keys("buckets"), entries.keys("secrets")) == ({"a", "b"}, {"s"})
