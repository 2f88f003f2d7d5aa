"""A missing object and one that the account may not read are told apart."""

import json

import pytest

from vertex_training_cli.drift import findings
from vertex_training_cli.engine import plan

OBJECT = (
    "googleapi: Error 403: plan@acme.iam.gserviceaccount.com does not have storage.objects.get "
    "access to the Google Cloud Storage object. Permission 'storage.objects.get' denied on "
    "resource (or it may not exist)., forbidden"
)
JOB = (
    "get_custom_job of Vertex AI failed: PERMISSION_DENIED: Permission "
    "'aiplatform.customJobs.get' denied on resource "
    "'//aiplatform.googleapis.com/projects/1/locations/us-central1/customJobs/2' (or it may not "
    "exist)."
)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (
            JOB,
            "The account cannot read projects/1/locations/us-central1/customJobs/2: "
            "permission aiplatform.customJobs.get is missing (granted by "
            "roles/aiplatform.viewer on the project). It is unknown whether the object exists.",
        ),
        (
            "googleapi: Error 403: no, forbidden",
            "The account cannot read the object: it lacks a permission that the error does not "
            "name. It is unknown whether the object exists.",
        ),
        (
            "Permission 'x.y.get' denied: PERMISSION_DENIED",
            "The account cannot read the object: permission x.y.get is missing. "
            "It is unknown whether the object exists.",
        ),
        (
            "PERMISSION_DENIED: Vertex AI API has not been used in project 1 before",
            (
                "An API is disabled in the project, so its resources cannot be read. The "
                "error names the API."
            ),
        ),
        (
            "googleapi: Error 404: No such object: data/a/b.npz, notFound",
            "Does not exist: data/a/b.npz. The account has the permission to read it.",
        ),
    ],
)
def test_a_refused_read_is_followed_by_what_it_means(error, meaning):
    assert plan.explained(["before", error]) == ("before", error, meaning)


@pytest.mark.parametrize("error", ["", "the program has 404 lines", "quota exceeded: Error 429"])
def test_another_error_stays_alone(error):
    assert plan.explained([error]) == (error,)


@pytest.mark.parametrize("exit_code", [1, 255])
def test_a_comparison_that_may_not_look_has_failed_and_says_why(exit_code):
    document = json.dumps({"diagnostics": [{"severity": "error", "message": OBJECT}], "steps": []})
    for stdout, stderr in (("", OBJECT), (document, "")):
        found = findings.read("prod", exit_code, stdout, stderr)
        assert found.outcome is findings.DriftOutcome.FAILED
        assert "The account cannot read" in found.errors[-1]
