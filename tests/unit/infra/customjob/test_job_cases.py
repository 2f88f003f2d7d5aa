"""Job files and what is reported of each: ``tests/corpus/jobs.yaml``.

An entry has ``job``, as a mapping, or ``file``, as text. The test adds an account, a timeout, a
machine and an image to a ``job`` that has none, unless the entry is ``bare``. ``context`` is one of
the named contexts, with the changes of ``change``. An expected line has the level, the rule, the
path, the message and the fix of a problem.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import json
from typing import Any

import pytest
import yaml
from google.cloud import batch_v1
from google.protobuf.json_format import MessageToDict, ParseDict

from tests.unit.infra.customjob.rules.tuning_cases import RIGHT
from tests.unit.infra.customjob.test_corpus import CORPUS, TABLE, TODAY, mended
from vertex_training.customjob import batch as message
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import JobFileResult, Submission
from vertex_training.customjob.rules.context import (
    BucketFacts,
    Context,
    FileDefaults,
    JobFacts,
    JobLimits,
    NetworkFacts,
    ReservationFacts,
    ReservationRequest,
    StackFacts,
)

FILE = CORPUS / "jobs.yaml"
KINDS = {"jobs": CUSTOM_JOB, "tuning": TUNING_JOB, "batch": BATCH_JOB}
WHO = Submission("acme-ml-dev", "us-central1", "dev", "job", run=1)
ACCOUNT = "trainer@acme-ml-dev.iam.gserviceaccount.com"
IMAGE = f"us-docker.pkg.dev/acme/train/x@sha256:{'0' * 64}"
DATA = yaml.safe_load(FILE.read_text(encoding="utf-8"))


def facts_of(job: dict[str, Any]) -> JobFacts:
    requests = tuple(
        ReservationRequest(tuple(each.pop("reservations")), **each)
        for each in job.pop("reservation_requests", ())
    )
    return JobFacts(**job, reservation_requests=requests)


def limits_of(limits: dict[str, Any]) -> JobLimits:
    return JobLimits(**{k: tuple(v) if isinstance(v, list) else v for k, v in limits.items()})


def stack_of(stack: dict[str, Any]) -> StackFacts:
    buckets = {
        name: BucketFacts(**{role: frozenset(accounts) for role, accounts in bucket.items()})
        for name, bucket in stack.pop("buckets", {}).items()
    }
    sets = {
        field: {name: frozenset(members) for name, members in stack.pop(field, {}).items()}
        for field in ("secrets", "packages")
    }
    network = stack.pop("network", None)
    reservations = {
        name: ReservationFacts(**each) for name, each in stack.pop("reservations", {}).items()
    }
    accounts = frozenset(stack.pop("accounts", ()))
    joined = network and NetworkFacts(**network)
    return StackFacts(
        **stack, **sets, accounts=accounts, buckets=buckets, network=joined,
        reservations=reservations,
    )  # fmt: skip


def context_of(given: dict[str, Any]) -> Context:
    """The context of an entry."""
    values = copy.deepcopy(DATA["contexts"].get(given.get("context"), {}))
    for key, value in copy.deepcopy(given.get("change", {})).items():
        values[key] = values.get(key, {}) | value if isinstance(value, dict) else value
    if "stack" in values:
        values["stack"] = stack_of(values["stack"])
    values["others"] = {name: facts_of(job) for name, job in values.get("others", {}).items()}
    if "limits" in values:
        values["limits"] = limits_of(values["limits"])
    values["account_limits"] = {
        account: limits_of(limits) for account, limits in values.get("account_limits", {}).items()
    }
    if defaults := values.pop("defaults", None):
        fields = {tuple(path.split(".")): text for path, text in defaults.get("fields", {}).items()}
        values["defaults"] = FileDefaults(fields, defaults.get("labels", {}))
    today = values.pop("today", TODAY)
    day = datetime.date.fromisoformat(today) if isinstance(today, str) else today
    return Context(**values, today=day)


def complete(job: dict[str, Any], context: Context) -> dict[str, Any]:
    """The job with the fields that every entry needs."""
    job = copy.deepcopy(job)
    spec = job.get("jobSpec", job.get("trialJobSpec", job))
    accounts = sorted(context.stack.accounts) if context.stack else []
    spec.setdefault("serviceAccount", (accounts or [ACCOUNT])[0])
    spec.setdefault("scheduling", {"timeout": "3600s"})
    for pool in spec.setdefault("workerPoolSpecs", [{"replicaCount": 1}]):
        if isinstance(pool, dict) and pool:
            pool.setdefault("machineSpec", {"machineType": "n1-standard-4"})
            if "pythonPackageSpec" not in pool:
                pool.setdefault("containerSpec", {}).setdefault("imageUri", IMAGE)
    return job


def check(given: dict[str, Any]) -> JobFileResult:
    """The result of an entry."""
    text, context = given.get("file"), context_of(given)
    if "edits" in given:
        text = RIGHT
        for old, new in given["edits"]:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
    elif text is None:
        job = given["job"] if given.get("bare") else complete(given["job"], context)
        text = yaml.safe_dump(job, sort_keys=False, allow_unicode=True)
    table = given.get("table", TABLE)
    kind = KINDS.get(given.get("kind", ""))
    return job_file.check_job_file(
        text.encode(), given.get("name", "x.yaml"), WHO, table, context, kind,
        scheduled=given.get("scheduled", False),
    )  # fmt: skip


def reported(given: dict[str, Any]) -> list[str]:
    """A line for each problem; with the place, if the entry is a text."""
    return [
        f"{problem.level} {problem.rule}: {problem if 'file' in given else problem.message}"
        + (f" [{mended(problem.mend)}]" if problem.mend else "")
        for problem in check(given).problems
    ]


@pytest.mark.parametrize("case", DATA["cases"], ids=range(len(DATA["cases"])))
def test_a_job_is_reported_as_recorded(case: dict[str, Any]) -> None:
    expected = case.get("expected", [])
    assert reported(case) == ([expected] if isinstance(expected, str) else expected)
    if "sent" in case:
        request = check(case).request
        assert request is not None
        assert request.message == case["sent"]


@pytest.mark.parametrize("row", DATA["values"], ids=lambda row: f"{row['place']}-{row['text']}")
def test_a_value_is_sent_or_reported_as_recorded(row: dict[str, Any]) -> None:
    place = DATA["places"][row["place"]]
    given = {"edits": [[place["old"], place["new"].replace("VALUE", row["text"])]]}
    expected, request = row.get("expected", []), check(given).request
    assert reported(given) == ([expected] if isinstance(expected, str) else expected)
    assert (request is not None) is ("sent" in row)
    if request is not None:
        value: Any = request.message
        for key in place["at"].split("."):
            value = value[int(key)] if isinstance(value, list) else value.get(key)
        assert (value, type(value)) == (row["sent"], type(row["sent"]))


#: Files that are too long for the corpus: 100 and 101 variables, and so on.
LONG = {
    "env-count": lambda more: {"env": [{"name": f"A{n}", "value": "x"} for n in range(100 + more)]},
    "args-length": lambda more: {"args": ["x" * 99_999, "y" * (1 + more)]},
    "image-name": lambda more: {"imageUri": f"docker.io/a/{'x' * (986 + more)}:1"},
}


@pytest.mark.parametrize("rule", LONG)
def test_a_container_one_above_a_limit_is_reported(rule: str) -> None:
    found = [
        [problem.rule for problem in check({"job": pools(LONG[rule](more))}).problems]
        for more in (0, 1)
    ]
    assert found == [[], [rule]]


def pools(container: dict[str, Any]) -> dict[str, Any]:
    return {"workerPoolSpecs": [{"replicaCount": 1, "containerSpec": container}]}


def test_a_hundred_packages_and_a_thousand_values_are_accepted() -> None:
    image = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"
    for count, rules in ((100, []), (101, ["package-count"])):
        uris = [f"gs://bucket/{n}.tar.gz" for n in range(count)]
        spec = {"executorImageUri": image, "packageUris": uris, "pythonModule": "a.b"}
        job = {"workerPoolSpecs": [{"replicaCount": 1, "pythonPackageSpec": spec}]}
        assert [problem.rule for problem in check({"job": job}).errors] == rules
    for count, rules in ((1000, []), (1001, ["parameter-discrete"])):
        edit = ["values: [16, 32, 64]", f"values: {list(range(1, count + 1))}"]
        assert [problem.rule for problem in check({"edits": [edit]}).problems] == rules


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"field{number}: 1\n" for number in range(150)),
        "workerPoolSpecs:\n" + "- x\n" * 150,
        "labels:\n" + "".join(f"  l{number}: 1\n" for number in range(150)) + "jobSpec: {}\n",
    ],
    ids=["fields", "pools", "labels"],
)
def test_at_most_a_hundred_mistakes_of_a_kind_are_reported(text: str) -> None:
    rules = [problem.rule for problem in check({"file": text}).errors]
    assert rules.count(max(rules, key=rules.count)) == 100


BATCH = yaml.safe_load((CORPUS / "batch.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", BATCH, ids=lambda case: case["name"])
def test_a_job_on_batch_is_sent_as_a_message_that_googles_client_reads(case: Any) -> None:
    request = check(case["given"]).request
    assert request is not None
    request = dataclasses.replace(request, notifications=tuple(case.get("notifications", ())))
    sent = request.sent({"vt-run": "1"})
    read = batch_v1.Job.pb(batch_v1.Job())
    ParseDict(sent, read)
    assert MessageToDict(read) == sent
    text = json.dumps(sent).replace(json.dumps(message.SCRIPT), '"SCRIPT"')
    assert json.loads(text) == case["message"]


LINES = yaml.safe_load((CORPUS / "launch.yaml").read_text(encoding="utf-8"))


def job_of(row: dict[str, Any]) -> dict[str, Any]:
    """The job of a row."""
    split = isinstance(row["line"][0], list)
    command, args = row["line"] if split else (row["line"], [])
    env = [{"name": name, "value": value} for name, value in row.get("env", {}).items()]
    container = {"imageUri": row.get("image", IMAGE), "command": command, "args": args, "env": env}
    container = {field: value for field, value in container.items() if value}
    machine: dict[str, Any] = {"machineType": row.get("machine", "n1-standard-8")}
    if gpus := row.get("gpus"):
        machine |= {"machineType": {1: "g2-standard-4", 4: "g2-standard-48"}[gpus]}
        machine |= {"acceleratorType": "NVIDIA_L4", "acceleratorCount": gpus}
    counts = row.get("pools", [1])
    specs = [
        {"machineSpec": machine, "replicaCount": n, "containerSpec": container} for n in counts
    ]
    return {"workerPoolSpecs": specs}


@pytest.mark.parametrize("row", LINES, ids=lambda row: " ".join(map(str, row["line"]))[:60])
def test_a_command_line_is_judged_against_its_machines(row: dict[str, Any]) -> None:
    given = {"job": job_of(row), "change": {"backend": row.get("backend", "vertex")}}
    assert [
        f"{problem.rule} {problem.value}"
        for problem in check(given).problems
        if problem.rule not in ("machine-type", "script-goes-on", "region-machines")
    ] == row.get("expected", [])
