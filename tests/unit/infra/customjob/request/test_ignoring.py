"""A file's author may judge a finding, with a reason; never what belongs to the stack."""

from vertex_training.customjob.request import ignoring
from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.customjob.rules import Context, StackFacts

WHO = Submission("acme-ml-dev", "us-central1", "dev", "x", 1)
STACK = Context.of(StackFacts("acme-ml-dev", "210987654321", "us-central1"))
FILE = """\
serviceAccount: x@acme-ml-dev.iam.gserviceaccount.com
workerPoolSpecs:
- replicaCount: 1
  machineSpec: {machineType: n1-standard-4}
  containerSpec:
    imageUri: us-docker.pkg.dev/acme-ml/images/x:latest
"""


def check(text, context=spec.FILE_ONLY):
    return spec.check_job_file(text.encode(), "jobs/x.yaml", WHO, {}, context)


def rules(problems):
    return [problem.rule for problem in problems]


def test_an_error_of_the_file_alone_can_be_ignored_as_well():
    wrong = FILE.replace("replicaCount: 1", "replicaCount: 3")
    assert rules(check(wrong).errors) == ["chief-replicas"]
    text = wrong.replace("3\n", "3  # vt: ignore[chief-replicas] the framework needs it\n")
    assert check(text).request is not None


def test_neither_access_nor_limits_nor_the_fit_to_a_stack_can_be_ignored():
    for rule in (
        "service-account",
        "limit-cost",
        "bucket-access",
        "label-reserved",
        "output-shared",
    ):
        if any(each.id == rule for each in ignoring.rules.ALL):
            assert rule not in ignoring.IGNORABLE
    text = FILE.replace("serviceAccount", "# vt: ignore[service-account] none\nserviceAccount")
    [error] = [e for e in check(text, STACK).errors if e.rule == "ignore"]
    assert "cannot be ignored" in str(error)


def test_a_comment_that_hides_nothing_is_told_to_who_asks():
    result = check(
        FILE.replace(
            "replicaCount: 1", "replicaCount: 1  # vt: ignore[placeholder] filled in later"
        )
    )
    assert rules(result.errors) == []
    assert "ignore" in rules(result.notes)


def test_levels_of_the_stack_hold_for_warnings_and_notes_and_never_for_errors():
    wrong = FILE.replace("replicaCount: 1", "replicaCount: 3")
    context = Context(levels={"image-pinned": "error", "chief-replicas": "note"})
    result = check(wrong, context)
    assert sorted(rules(result.errors)) == ["chief-replicas", "image-pinned"]
    assert rules(check(FILE, Context(levels={"image-pinned": "note"})).warnings) == []
