"""What would surprise the owner of a stack is a warning with a place, and stops nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.infra.stacks import (
    rows,
    unjudged,
)
from vertex_training.customjob.kinds import TUNING_JOB
from vertex_training.plan.reservations import plan_reservations
from vertex_training.stack_rules import advice

Rows = list[tuple[str, str, str, str]]


def told(requests: dict[str, Any] | None = None, **sections: Any) -> Rows:
    settings = unjudged(**sections)
    found = advice.warnings(settings, plan_reservations(settings), requests or {})
    assert {problem.level for problem in found} <= {"warning"}
    return rows(found)


def test_a_region_that_the_catalogue_lacks_is_pointed_out() -> None:
    what = "runs no training jobs, as far as this release knows"
    assert told(region="us-central9") == [
        ("region", what, "us-central9", "`vt catalogue` lists regions")
    ]


def test_roles_retentions_and_models_are_looked_at_as_well() -> None:
    found = told(
        buckets={
            "data": {"members": {"roles/storge.objectViewer": ["group:a@example.com"]}},
            "old": {"storageClass": "ARCHIVE"},
        },
        serviceAccounts={"trainer": {"reads": ["old"]}},
        endpoints={"m": {"machine": "x9-none-4", "split": {"run 1": 100}}},
    )
    assert [(path, value) for path, _, value, _ in found] == [
        ("buckets.old.storageClass", "ARCHIVE"),
        ("buckets.data.members.roles/storge.objectViewer", "roles/storge.objectViewer"),
        ("endpoints.m.machine", "x9-none-4"),
    ]


def request(*used: str, bodies: tuple[str, ...] = ("{}",)) -> SimpleNamespace:
    rungs = [SimpleNamespace(body=each) for each in bodies]
    return SimpleNamespace(used=set(used), rungs=rungs, trial={}, message={})


SUBMITS = "roles/aiplatform.user"
SPEECH = {"team": "speech"}


def logs_to_tensorboard(account: str) -> SimpleNamespace:
    made = request()
    made.trial = {"jobSpec": {"serviceAccount": account, "tensorboard": "projects/1/x"}}
    return made


@pytest.mark.parametrize(
    ("account", "bucket", "jobs", "is_told"),
    [
        ({"team": "vision", "callsVertex": True}, SPEECH, [], True),
        ({"callsVertex": True}, SPEECH, [], True),
        ({"team": "vision", "roles": {"acme-ml-prod": [SUBMITS]}}, SPEECH, [], True),
        ({"team": "vision", "callsVertex": True}, {}, [], False),
        ({"team": "vision"}, SPEECH, ["other@acme-ml-prod.iam.gserviceaccount.com"], False),
        ({"team": "vision", "roles": {"acme-ml-prod": ["roles/dns.peer"]}}, SPEECH, [], False),
    ],
)
def test_who_submits_jobs_reaches_what_other_teams_own(
    account: dict[str, Any], bucket: dict[str, Any], jobs: list[str], is_told: bool
) -> None:
    what = (
        "reads and writes the buckets of all teams: it may submit jobs, and one that names no "
        "account runs as the Custom Code Service Agent, which does"
    )
    hint = "if teams must not share data, give each its own stack and project"
    sections = {"teams": {"vision": {}, "speech": {}}, "buckets": {"b": bucket}}
    requests = {each: logs_to_tensorboard(each) for each in jobs}
    found = told(requests, **sections, serviceAccounts={"own": account})
    assert found == ([("serviceAccounts.own", what, "", hint)] if is_told else [])


@pytest.mark.parametrize(
    ("own", "account", "count"),
    [
        (15, "theirs", 0), (16, "theirs", 56), (55, "theirs", 95), (56, "theirs", 0),
        (18, "plain", 0), (25, "plain", 0), (26, "plain", 56), (26, "", 56), (14, "theirs", 0),
    ],
)  # fmt: skip
def test_labels_of_a_job_its_stack_and_its_team_are_64_with_those_of_the_program(
    own: int, account: str, count: int
) -> None:
    """30 of the stack, and of the team nine of its own, one of the stack's again and its name."""
    stacks = {f"s{number}": "x" for number in range(30)}
    teams = {"vision": {"labels": {f"t{number}": "x" for number in range(9)} | {"s1": "y"}}}
    accounts = {"theirs": {"team": "vision"}, "plain": {}}
    email = account and f"{account}-prod@acme-ml-prod.iam.gserviceaccount.com"
    labels = {f"o{number}": "x" for number in range(own)}
    job = SimpleNamespace(
        used=set(), rungs=[], trial={}, message={"labels": labels}, account=email, kind=TUNING_JOB
    )
    what = "its labels with those of the stack and of its team are too many"
    hint = "at most 55: a job has 64, some are the program's"
    found = told({"fit": job}, labels=stacks, teams=teams, serviceAccounts=accounts)
    assert found == ([("tuning.fit", what, str(count), hint)] if count else [])
