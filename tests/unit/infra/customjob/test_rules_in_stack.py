"""Jobs of one stack, checked together."""

import pytest

from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import JobFile, Submission
from vertex_training.customjob.rules import BucketFacts, Context, JobFacts, StackFacts
from vertex_training.customjob.rules.context import ReservationRequest
from vertex_training.customjob.rules.job_facts import concerns

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
