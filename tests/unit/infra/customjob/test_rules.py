"""The registry of rules and its page. Which file breaks which rule: ``test_corpus``."""

from __future__ import annotations

import re

import pytest

from vertex_training import catalog
from vertex_training.customjob import rules
from vertex_training.customjob.request import checking
from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import JobFile, Submission
from vertex_training.customjob.rules.context import (
    BucketFacts,
    Context,
    JobFacts,
    ReservationRequest,
    StackFacts,
)
from vertex_training.customjob.rules.job import concerns


def test_every_rule_has_an_id_a_summary_a_source_and_a_level():
    for rule in rules.ALL:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id)
        assert rule.summary.endswith(".")
        assert "\n" not in rule.summary
        assert len(rule.summary) <= 110
        assert rule.source
        assert rule.level in ("error", "warning", "note")
    assert len({rule.id for rule in rules.ALL}) == len(rules.ALL)


def test_the_sites_tables_have_every_rule_with_its_level():
    from tools.generate.reference import rule_tables

    rows = re.findall(r"^\| `(\S+)` \| (\w+) \|", rule_tables(), re.MULTILINE)
    assert rows == [(each.id, each.level) for each in rules.ALL]


def test_no_job_file_can_ignore_a_rule_about_its_stack():
    of_stack = {each.id for each in rules.RULES if each.subject in rules.OF_A_STACK}
    assert of_stack >= {"secret-granted", "limit-strategy", "interface-room", "reservation-any"}
    assert not checking.IGNORABLE & of_stack
    rest = {each.id for each in rules.RULES} - of_stack - checking.IGNORABLE
    assert rest == {"service-account", "label-reserved", "job-region"}


def test_the_messages_of_both_kinds_of_jobs_have_different_names():
    custom = catalog.load("custom_job.json")["messages"]
    assert not custom.keys() & catalog.load("tuning_job.json")["messages"].keys()


TRAINER = "trainer-dev@acme-ml-dev.iam.gserviceaccount.com"
STACK = StackFacts(
    project="acme-ml-dev",
    project_number="210987654321",
    region="us-central1",
    accounts=frozenset({TRAINER}),
    buckets={
        "data": BucketFacts(readers=frozenset({TRAINER})),
        "out": BucketFacts(writers=frozenset({TRAINER})),
    },
    secrets={
        "projects/acme-ml-dev/secrets/wandb": frozenset({TRAINER}),
        "projects/shared/secrets/mine": frozenset({TRAINER}),
        "projects/shared/secrets/theirs": frozenset({"other@acme-ml-dev.iam.gserviceaccount.com"}),
    },
)
JOB = """serviceAccount: {account}
baseOutputDirectory: {{outputUriPrefix: "{output}"}}
workerPoolSpecs:
- machineSpec: {{machineType: n1-standard-4}}
  containerSpec:
    imageUri: us-docker.pkg.dev/acme/train/x@sha256:{digest}
    args: [{args}]
"""


def file(name, output="gs://out/x", account=TRAINER, args=""):
    text = JOB.format(account=account, output=output, args=args, digest="0" * 64)
    return JobFile(text.encode(), f"{name}.yaml", Submission("p", "us-central1", "dev", name, 1))


def errors(*files):
    results = spec.check_job_files(files, {}, Context.of(STACK))
    return {name: [p.rule for p in result.errors] for name, result in results.items()}


def test_two_jobs_with_one_output_directory_are_both_refused():
    found = errors(file("a"), file("b"), file("c", "gs://out/y"))
    assert found == {"a": ["output-shared"], "b": ["output-shared"], "c": []}
    assert errors(file("a")) == {"a": []}


NETWORK, ATTACHED = JobFacts(network="n"), JobFacts(attachment="a")
REQUESTS = JobFacts(reservation_requests=(ReservationRequest((), "m", "", 0, 1),))
WRITES, NOTHING = JobFacts(output="gs://o/x"), JobFacts()


@pytest.mark.parametrize(
    ("one", "others", "expected"),
    [
        (NOTHING, [NETWORK, ATTACHED, REQUESTS, WRITES, NOTHING], False),
        (WRITES, [], False),
        (WRITES, [WRITES], True),
        (NETWORK, [NOTHING, JobFacts(network="m")], True),
        (ATTACHED, [JobFacts(attachment="b")], True),
        (REQUESTS, [REQUESTS], True),
        (NETWORK, [ATTACHED, REQUESTS, WRITES, NOTHING], False),
        (ATTACHED, [NETWORK, REQUESTS, WRITES, NOTHING], False),
        (REQUESTS, [NETWORK, ATTACHED, WRITES, NOTHING], False),
        (WRITES, [NETWORK, ATTACHED, REQUESTS, NOTHING], False),
    ],
)
def test_jobs_are_checked_together_if_they_share_a_kind_of_resource(one, others, expected):
    facts = {f"j{number}": each for number, each in enumerate(others)}
    assert bool(concerns(one, facts)) is expected
