"""Jobs of one stack judged together."""

from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import JobFile, Submission
from vertex_training.customjob.rules import BucketFacts, Context, StackFacts

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
