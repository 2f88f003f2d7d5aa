"""Jobs of one stack judged together."""

from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import JobFile, Submission
from vertex_training.customjob.rules import BucketFacts, Context, StackFacts
from vertex_training.customjob.rules.job_facts import outputs_clash

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
    return {name: [str(p) for p in result.errors] for name, result in results.items()}


def test_two_jobs_with_one_output_directory_are_reported_for_each_other():
    reported = errors(file("a"), file("b"), file("c", "gs://out/y"))
    assert reported["a"] == [
        "a.yaml:2:40: baseOutputDirectory.outputUriPrefix: job 'b' writes there too (got "
        "gs://out/x). Hint: give each job a folder, with ${job.name}; or each run, with "
        "${job.requestId}"
    ]
    assert "job 'a' writes there too" in reported["b"][0]
    assert reported["c"] == []


def test_the_request_id_or_the_jobs_name_makes_a_directory_its_own():
    for own in ("gs://out/${job.requestId}", "gs://out/${job.name}"):
        assert errors(file("a", own), file("b", own)) == {"a": [], "b": []}


def test_a_directory_inside_of_what_another_job_writes_clashes():
    assert outputs_clash("gs://out/x", "gs://out/x/checkpoints/7")
    assert outputs_clash("gs://out/x/model", "gs://out/x/")
    assert not outputs_clash("gs://out/x", "gs://out/x/other")
    assert not outputs_clash("gs://out/x", "gs://out/xy")
    assert not outputs_clash("", "")


def test_a_job_may_do_what_its_account_was_given():
    args = "--data=gs://data/x, --out=/gcs/out/x, --key=projects/acme-ml-dev/secrets/wandb"
    assert errors(file("a", args=args)) == {"a": []}


def test_missing_rights_name_the_bucket_and_the_account():
    reported = errors(file("a", "gs://data/x"))["a"]
    assert "the job's account may not write to this bucket (got data)" in reported[0]
    assert TRAINER in reported[0]


def test_of_a_foreign_account_nothing_else_is_reported():
    other = "x@other-project.iam.gserviceaccount.com"
    one = file("a", "gs://data/x", account=other)
    result = spec.check_job_files([one], {}, Context.of(STACK))["a"]
    assert result.errors == ()
    assert [p.rule for p in result.warnings] == ["account-foreign"]


def test_buckets_of_others_are_nobodys_business():
    assert errors(file("a", args="--data=gs://public-datasets/x")) == {"a": []}


def test_a_secret_of_another_project_that_the_stack_declares_has_to_be_granted():
    read = "projects/shared/secrets/{}/versions/latest"
    assert errors(file("a", args=read.format("mine"))) == {"a": []}
    [told] = errors(file("a", args=read.format("theirs")))["a"]
    assert "the job's account may not read this secret (got theirs)" in told
    # What no stack file says may be granted by its owner.
    assert errors(file("a", args=read.format("unknown"))) == {"a": []}
