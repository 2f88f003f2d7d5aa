"""Models and endpoints of a stack file: what they name is there, and fits together."""

import pytest

from tests.unit.infra.stacks import planned, refused

JOBS = {"titanic": {"file": "jobs/titanic.yaml", "run": 4}}
IMAGE = "us-central1-docker.pkg.dev/acme-ml-prod/training-prod/serve@sha256:" + "a" * 64
MODEL = {"run": [3, 4], "container": IMAGE}
ENDPOINT = {"machine": "n1-standard-2", "split": {"run 3": 90, "run 4": 10}}


def served(model=None, endpoint=None, **changes):
    """A stack's sections with one model behind one endpoint."""
    models = {"titanic": MODEL | (model or {})}
    endpoints = {"titanic": ENDPOINT | (endpoint or {})}
    return {"models": models, "endpoints": endpoints} | changes


@pytest.fixture(autouse=True)
def no_files(monkeypatch):
    """The job file is no part of these rules."""
    monkeypatch.setattr("vertex_training.stack.files.problems", lambda *_: [])


def wrong(model=None, endpoint=None, **changes):
    return refused(jobs=JOBS, **served(model, endpoint, **changes))


@pytest.mark.parametrize(
    ("model", "path", "what"),
    [
        ({"run": 5}, "run[0]", "job 'titanic' has had 4 runs (got 5). Hint: train first"),
        ({"run": [3, 3]}, "run", "names a run twice"),
        ({"run": []}, "run", "at least 1 item"),
        ({"run": True}, "run", "must be a list"),
        (
            {"container": IMAGE.replace("us-central1", "europe-west4")},
            "container.image",
            "the image is in europe-west4, and a model is served from us-central1 alone",
        ),
        ({"container": "${images.serve}"}, "container.image", "names what this stack does not"),
    ],
)
def test_a_model_that_cannot_be_is_refused(model, path, what):
    found = dict(wrong(model, {"split": {"run 3": 100}}))
    assert what in found[f"models.titanic.{path}"]


def test_a_name_that_makes_no_id_of_a_model_is_refused():
    models = {"m" * 40: MODEL | {"job": "titanic"}}
    [(_, problem)] = refused(stack="an-environment-with-a-long-name", jobs=JOBS, models=models)
    assert "makes a model id that is not 1 to 63" in problem


WEST = "us-west1"


@pytest.mark.parametrize(
    ("region", "machine", "told"),
    [
        (WEST, "ct5lp-hightpu-1t", []),
        ("us-south1", "ct5lp-hightpu-8t", []),  # not for training there, but for endpoints
        ("us-east5", "ct6e-standard-8t", []),
        ("us-central1", "tpu7x-standard-4t", ["no source has its price: nothing that counts"]),
        ("us-east1", "ct6e-standard-1t", ["in us-east1 for projects on Google's allowlist alone"]),
    ],
)
def test_a_tpu_of_endpoints_is_taken_and_what_is_not_known_is_told(region, machine, told):
    image = IMAGE.replace("us-central1", region)
    given = served({"container": image}, {"machine": machine}, region=region)
    found = [str(each) for each in planned(jobs=JOBS, **given).warnings({}) if machine in str(each)]
    assert len(found) == len(told)
    assert all(text in each for text, each in zip(told, found, strict=True))
