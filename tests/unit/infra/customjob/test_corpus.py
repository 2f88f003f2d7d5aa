"""The corpus: files that are right, and files with the ids of the rules they break.

``tests/corpus/wrong`` and ``right`` are judged alone, as ``vt check FILE`` does, and ``in-stack``
in the stack below. A file's first line says what is expected; lines after it may name the region,
the network of the stack and its other jobs.
"""

import dataclasses
import datetime
import functools
import itertools
import json
import os
import re
from pathlib import Path

import pytest
import yaml

from tests.unit.infra.customjob.rules import tuning_cases
from vertex_training.customjob import rules
from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.customjob.rules.context import (
    FILE_ONLY,
    BucketFacts,
    Context,
    JobFacts,
    JobLimits,
    NetworkFacts,
    ReservationFacts,
    ReservationRequest,
    StackFacts,
)
from vertex_training.errors import dotted

CORPUS = Path(__file__).parents[3] / "corpus"
#: Values of the right form, as `vt check` puts them in without a stack.
PROJECT, NUMBER, REGION = "acme-ml-dev", "210987654321", "us-central1"
TRAINER = "trainer-dev@acme-ml-dev.iam.gserviceaccount.com"
TABLE = {
    "serviceAccounts.trainer": TRAINER,
    "buckets.data": "gs://acme-ml-dev-data-dev",
    "buckets.artifacts": "gs://acme-ml-dev-artifacts-dev",
    "buckets.artifacts.mount": "/gcs/acme-ml-dev-artifacts-dev",
    "packages.code": "gs://acme-ml-dev-staging-dev/packages/code-0000000000000000.tar.gz",
    "images.trainer": f"us-central1-docker.pkg.dev/acme-ml-dev/x/trainer@sha256:{'0' * 64}",
    "secrets.hf-token": "projects/acme-ml-dev/secrets/hf-token-dev",
    "secrets.wandb-api-key": "projects/acme-ml-dev/secrets/wandb-api-key-dev",
    "reservations.h100": {"reservationAffinityType": "ANY_RESERVATION"},
    "network.name": f"projects/{NUMBER}/global/networks/training",
    "reservations.h100.name": f"projects/{PROJECT}/zones/{REGION}-a/reservations/h100-dev",
    "network.attachment": f"projects/{PROJECT}/regions/{REGION}/networkAttachments/training",
    "stack.region": REGION,
}
STACK = StackFacts(
    project=PROJECT,
    project_number=NUMBER,
    region=REGION,
    accounts=frozenset({TRAINER}),
    buckets={
        "acme-ml-dev-data-dev": BucketFacts(readers=frozenset({TRAINER})),
        "acme-ml-dev-artifacts-dev": BucketFacts(writers=frozenset({TRAINER})),
        "acme-ml-dev-private-dev": BucketFacts(),
        "acme-ml-dev-control-dev": BucketFacts(),
        "acme-ml-dev-staging-dev": BucketFacts(readers=frozenset({TRAINER})),
    },
    packages={TABLE["packages.code"]: frozenset({"code.task", "titanic.task"})},
    secrets={
        "projects/acme-ml-dev/secrets/hf-token-dev": frozenset(),
        "projects/acme-ml-dev/secrets/wandb-api-key-dev": frozenset({TRAINER}),
    },
)
H100 = f"projects/{PROJECT}/zones/{REGION}-a/reservations/h100-dev"
H100_NODE = ("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8)
T4 = f"projects/{PROJECT}/zones/{REGION}-a/reservations/t4-dev"
L4 = f"projects/{PROJECT}/zones/{REGION}-a/reservations/l4-dev"
STACK = dataclasses.replace(
    STACK,
    reservations={
        H100: ReservationFacts("h100", *H100_NODE, count=5, specific=True),
        T4: ReservationFacts("t4", "n1-standard-8", "NVIDIA_TESLA_T4", 1, 2, True, local_ssds=1),
        L4: ReservationFacts("l4", "g2-standard-8", "NVIDIA_L4", 1, count=4, specific=False),
    },
)
PEERED = TABLE["network.name"]
#: Networks of the stack, by the word in a file's head.
NETWORKS = {
    "peering": NetworkFacts("peering", PEERED, ranges={"training-workers-dev": 18}),
    "host": NetworkFacts("peering", "projects/345678901234/global/networks/training"),
    "psc": NetworkFacts("psc", "", TABLE["network.attachment"], subnet_prefix=28),
}
#: The other jobs of the stack, by the word in a file's head.
OTHERS = {
    "": {"other": JobFacts(output="gs://acme-ml-dev-artifacts-dev/shared")},
    "fifteen-peered": {f"job-{n}": JobFacts(network=PEERED, nodes=8) for n in range(15)},
    "peered-elsewhere": {"other": JobFacts(network=f"projects/{NUMBER}/global/networks/other")},
    "reserving-four": {
        "other": JobFacts(
            reservation_requests=(ReservationRequest((H100,), *H100_NODE, machines=4),)
        )
    },
}


def files(folder):
    return sorted((CORPUS / folder).glob("*.yaml"))


def check(path, context=FILE_ONLY):
    who = Submission(PROJECT, REGION, "dev", path.stem[:40], run=1)
    return spec.check_job_file(path.read_bytes(), path.name, who, TABLE, context)


def lines(path):
    return path.read_bytes().decode("utf-8", errors="replace").splitlines()


def expected(path):
    assert lines(path)[0].startswith("# expect: "), path.name
    return sorted(lines(path)[0].removeprefix("# expect: ").split(", "))


def found(result):
    return sorted(problem.rule for problem in result.problems)


def around(path):
    """The context its first comments tell: ``# region: R``, ``# limits: {usd: 5}``, and so on."""
    head = itertools.takewhile(lambda line: line.startswith("# "), lines(path))
    said = dict(line.removeprefix("# ").split(": ", 1) for line in head if ": " in line)
    network = NETWORKS[said["network"]] if "network" in said else None
    limits = yaml.safe_load(said["limits"]) if "limits" in said else None
    return Context(
        region=said.get("region", REGION),
        stack=dataclasses.replace(STACK, network=network),
        others=OTHERS[said.get("others", "")],
        limits=limits and JobLimits(**limits),
        backend=said.get("backend", "vertex"),
        model=yaml.safe_load(said.get("model", "{}")),
    )


@pytest.mark.parametrize("path", files("wrong"), ids=lambda path: path.stem)
def test_a_wrong_file_breaks_exactly_the_rules_it_is_for(path):
    assert found(check(path)) == expected(path)


@pytest.mark.parametrize("path", files("in-stack"), ids=lambda path: path.stem)
def test_a_file_that_is_wrong_in_its_stack_breaks_exactly_the_rules_it_is_for(path):
    assert found(check(path, around(path))) == expected(path)


@pytest.mark.parametrize("path", files("right"), ids=lambda path: path.stem)
def test_a_right_file_breaks_no_rule(path):
    assert found(check(path)) == []


@pytest.mark.parametrize("path", files("right"), ids=lambda path: path.stem)
def test_a_right_file_is_what_the_official_parser_takes(path):
    from google.cloud import aiplatform_v1
    from google.protobuf import json_format

    body = check(path).request.body
    message = aiplatform_v1.CustomJob.pb(aiplatform_v1.CustomJob())
    json_format.ParseDict(json.loads(body), message)
    # What comes back is the same request: read again, it is the same message.
    again = aiplatform_v1.CustomJob.pb(aiplatform_v1.CustomJob())
    json_format.ParseDict(json_format.MessageToDict(message), again)
    assert again == message
    names = ("serviceAccount", "network", "baseOutputDirectory")
    back = json_format.MessageToDict(message)["jobSpec"]
    sent = json.loads(body)["jobSpec"]
    assert [back.get(name) for name in names] == [sent.get(name) for name in names]


#: What references stand for in right files.
KNOWN = {**TABLE, "job.run": "1"}
#: What a person is told of each wrong file.
REPORTS = CORPUS / "reports.txt"
HINT = "If this is what you meant: UPDATE_GOLDEN=1 pytest -k report tests/unit/infra/customjob"
#: The rules about support that ends look at the date.
TODAY = datetime.date(2026, 11, 26)


def told(name):
    """Every problem of a wrong file in a line, with its level, its rule and what mends it."""
    if name.startswith("tuning: "):
        case = next(case for case in tuning_cases.CASES if f"tuning: {case.name}" == name)
        text = tuning_cases.RIGHT.replace(case.old, case.new).encode()
        who = Submission(PROJECT, REGION, "dev", "tune", run=1)
        context = dataclasses.replace(FILE_ONLY, today=TODAY)
        result = spec.check_job_file(text, "x.yaml", who, TABLE, context)
    else:
        path = CORPUS / name
        context = around(path) if path.parent.name == "in-stack" else FILE_ONLY
        result = check(path, dataclasses.replace(context, today=TODAY))
    return "".join(
        f"  {problem.level} {problem.rule}: {problem}\n"
        + (f"    {mended(problem.mend)}\n" if problem.mend else "")
        for problem in result.problems
    )


def mended(mend):
    """``rename machineType``, ``value 1``, ``move workerPoolSpecs[0]``; a guess is told as one."""
    words = [mend.action, str(mend.to), dotted(mend.at), dotted(mend.target)]
    return " ".join(filter(None, ["guess:" if mend.guessed else "", *words]))


WRONG = [
    *(f"{path.parent.name}/{path.name}" for path in (*files("wrong"), *files("in-stack"))),
    *(f"tuning: {case.name}" for case in tuning_cases.CASES),
]


@functools.cache
def reports():
    """Name of a wrong file -> its report, as committed."""
    found = re.split(r"^(?! )(.*)\n", REPORTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_every_wrong_file_has_a_committed_report():
    if os.environ.get("UPDATE_GOLDEN"):
        REPORTS.write_text("".join(f"{name}\n{told(name)}" for name in WRONG), encoding="utf-8")
    assert list(reports()) == WRONG


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_reported_with_place_value_hint_and_fix(name):
    assert told(name) == reports()[name], HINT


def as_written(value, key=""):
    """A part of a right file by REST's names, with its references replaced."""
    if isinstance(value, dict):
        return {
            k if key == "labels" else camel(k): as_written(v, camel(k)) for k, v in value.items()
        }
    if isinstance(value, list):
        return [as_written(item) for item in value]
    if key == "replicaCount":
        return int(value)  # JSON writes int64 as text
    if isinstance(value, str):
        for name, text in KNOWN.items():
            if value == f"${{{name}}}":
                return text
            value = value.replace(f"${{{name}}}", text) if isinstance(text, str) else value
    return value


def camel(key):
    head, *rest = key.split("_")
    return head + "".join(part.capitalize() for part in rest)


@pytest.mark.parametrize("path", files("right"), ids=lambda path: path.stem)
def test_the_request_of_a_right_file_equals_the_file(path):
    request = check(path).request
    wrote = yaml.safe_load(path.read_text(encoding="utf-8"))
    KNOWN.update({"job.name": path.stem[:40], "job.requestId": request.request_id})
    said = as_written(wrote)
    message = said if {"jobSpec", "trialJobSpec"} & said.keys() else {"jobSpec": said}
    message = {"displayName": f"dev-{path.stem[:40]}"} | message
    assert json.loads(request.body) == message


def test_every_rule_is_broken_by_some_file():
    met = {
        id_ for folder in ("wrong", "in-stack") for path in files(folder) for id_ in expected(path)
    }
    met |= {case.rule for case in tuning_cases.CASES}
    assert {rule.id for rule in rules.ALL} == met


def test_every_mistake_has_a_place_in_its_file():
    for path in files("wrong"):
        result = check(path)
        for problem in result.problems:
            assert problem.location.file == path.name
            assert 1 <= problem.location.line <= len(lines(path)) + 1
            assert problem.location.column >= 1
            assert "\n" not in str(problem)
            assert problem.hint, str(problem)
