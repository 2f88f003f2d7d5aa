"""A missing object and one that the account may not read are told apart."""

import json

import pytest

from vertex_training_cli import read_errors
from vertex_training_cli.drift import findings

OBJECT = (
    "googleapi: Error 403: plan@acme.iam.gserviceaccount.com does not have storage.objects.get "
    "access to the Google Cloud Storage object. Permission 'storage.objects.get' denied on "
    "resource (or it may not exist)., forbidden"
)
JOB = (
    "Vertex AI did not answer get_custom_job: PERMISSION_DENIED: Permission "
    "'aiplatform.customJobs.get' denied on resource "
    "'//aiplatform.googleapis.com/projects/1/locations/us-central1/customJobs/2' (or it may not "
    "exist)."
)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (OBJECT, "may not look: storage.objects.get is missing: roles/storage.objectViewer"),
        (JOB, "roles/aiplatform.viewer on the project is needed for projects/1/locations/"),
        ("googleapi: Error 403: no, forbidden", "may not look: it takes a role"),
        ("Permission 'x.y.get' denied: PERMISSION_DENIED", "x.y.get is missing: a role with it"),
        ("googleapi: Error 404: No such object: data/a/b.npz, notFound", "not there: data/a/b.npz"),
        ("Vertex AI: NOT_FOUND: projects/1/locations/x", "not there: projects/1/locations/x"),
    ],
)
def test_a_refused_read_is_followed_by_what_it_means(error, meaning):
    first, second = read_errors.explained([error])
    assert first == error
    assert meaning in second
    assert ("may not look" in second) != ("not there" in second)


@pytest.mark.parametrize("error", ["", "the program has 404 lines", "quota exceeded: Error 429"])
def test_another_error_stays_alone(error):
    assert read_errors.explained([error]) == (error,)


@pytest.mark.parametrize("exit_code", [1, 255])
def test_a_comparison_that_may_not_look_has_failed_and_says_why(exit_code):
    document = json.dumps({"diagnostics": [{"severity": "error", "message": OBJECT}], "steps": []})
    for stdout, stderr in (("", OBJECT), (document, "")):
        found = findings.read("prod", exit_code, stdout, stderr)
        assert found.outcome is findings.DriftOutcome.FAILED
        assert "may not look" in found.errors[-1]
