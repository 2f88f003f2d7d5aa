"""What a job file leaves out, and the stack file gives."""

import dataclasses

from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.customjob.rules.context import Context, FileDefaults

WHO = Submission("acme-ml-dev", "us-central1", "dev", "x", 1)
TABLE = {
    "serviceAccounts.trainer": "trainer@acme-ml-dev.iam.gserviceaccount.com",
    "buckets.out": "gs://out",
}
FILE = """\
workerPoolSpecs:
- replicaCount: 1
  machineSpec: {machineType: n1-standard-4}
  containerSpec: {imageUri: us-docker.pkg.dev/acme-ml/images/x:1}
"""
DEFAULTS = FileDefaults(
    {
        ("serviceAccount",): "${serviceAccounts.trainer}",
        ("scheduling", "timeout"): "3600s",
        ("baseOutputDirectory", "outputUriPrefix"): "${buckets.out}/${job.name}/${job.requestId}",
    },
    {"cost-center": "ml"},
)


def check(text, defaults=DEFAULTS):
    return spec.check_job_file(text.encode(), "jobs/x.yaml", WHO, TABLE, Context(defaults=defaults))


def test_what_is_missing_is_filled_in_and_told():
    request = check(FILE).request
    job = request.message["jobSpec"]
    assert job["serviceAccount"] == TABLE["serviceAccounts.trainer"]
    assert job["scheduling"] == {"timeout": "3600s"}
    assert job["baseOutputDirectory"]["outputUriPrefix"] == f"gs://out/x/{request.request_id}"
    assert request.message["labels"] == {"cost-center": "ml"}
    assert list(request.filled_in) == [
        "serviceAccount",
        "scheduling.timeout",
        "baseOutputDirectory.outputUriPrefix",
        "labels.cost-center",
    ]
    assert {"serviceAccounts.trainer", "buckets.out"} <= request.used


def test_what_the_file_says_wins():
    text = FILE + "scheduling: {timeout: 60s, strategy: SPOT}\n"
    job = check(text).request.message["jobSpec"]
    assert job["scheduling"] == {"timeout": "60s", "strategy": "SPOT"}
    rest = "labels: {cost-center: own}\njobSpec:\n" + "".join(
        f"  {line}\n" for line in FILE.splitlines()
    )
    assert check(rest).request.message["labels"] == {"cost-center": "own"}


def test_a_file_that_says_all_of_it_has_the_same_id_with_and_without_defaults():
    text = FILE + (
        "serviceAccount: ${serviceAccounts.trainer}\nscheduling: {timeout: 60s}\n"
        "baseOutputDirectory: {outputUriPrefix: '${buckets.out}/y'}\n"
    )
    no_labels = dataclasses.replace(DEFAULTS, labels={})
    with_defaults = check(text, no_labels).request
    assert with_defaults.request_id == check(text, FileDefaults()).request.request_id
    assert not with_defaults.filled_in
