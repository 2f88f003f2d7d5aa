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


def test_a_model_and_its_endpoint_are_planned_in_full_before_anything_exists():
    stack = planned(jobs=JOBS, **served())
    assert sorted(stack.versions) == [("titanic", 3), ("titanic", 4)]
    version = stack.versions["titanic", 4]
    assert (version.model_id, version.image) == ("titanic-prod", IMAGE)
    endpoint = stack.endpoints["titanic"]
    assert endpoint.split == {3: 90, 4: 10}
    assert len(endpoint.id) == 9
    assert not endpoint.is_private
    ids = {deployment.id for deployment in endpoint.deployments.values()}
    assert len(ids) == 2
    assert all(len(each) == 10 and each.isdecimal() for each in ids)


def test_a_run_may_stand_alone_and_an_image_of_the_stack_is_resolved():
    image = {"serve": {"digest": "sha256:" + "b" * 64}}
    model = {"run": 3, "container": {"image": "${images.serve}", "port": 9000}}
    stack = planned(jobs=JOBS, images=image, **served(model, {"split": {"run 3": 100}}))
    container = stack.versions["titanic", 3].container
    assert "training-prod/serve@sha256:bbbb" in container
    assert '"containerPort":9000' in container


def test_all_mistakes_are_told_at_once():
    model = {"job": "titanik", "container": "python:3.11", "team": "vision"}
    endpoint = {"split": {"run 3": 90, "run 5": 10}, "account": "servant", "team": "vision"}
    assert wrong(model, endpoint) == [
        (
            "models.titanic.job",
            "this stack has no such job (got titanik). Hint: did you mean 'titanic'?",
        ),
        (
            "models.titanic.team",
            "this stack has no such team (got vision). Hint: add it to teams",
        ),
        (
            "models.titanic.container.image",
            "not an image in Artifact Registry (got python:3.11). Hint: ${images.NAME}, or "
            "REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME@sha256:…",
        ),
        (
            "endpoints.titanic.split.run 5",
            "model 'titanic' has no version of this run (got run 5). Hint: it has run 3, run 4: "
            "add the run to models.titanic.run first",
        ),
        (
            "endpoints.titanic.team",
            "this stack has no such team (got vision). Hint: add it to teams",
        ),
        (
            "endpoints.titanic.account",
            "this stack has no such account (got servant). Hint: declare it in serviceAccounts",
        ),
    ]


@pytest.mark.parametrize(
    ("endpoint", "path", "what"),
    [
        ({"split": {"run 3": 90}}, "split", "shares sum to 90, and must to 100"),
        ({"split": {}}, "split", "shares sum to 0, and must to 100"),
        ({"split": {"3": 100}}, "split.3", 'must look like "run 3"'),
        ({"split": {"run 3": 150, "run 4": -50}}, "split.run 3", "less than or equal to 100"),
        ({"replicas": {"min": 0}}, "replicas.min", "greater than or equal to 1"),
        ({"replicas": {"min": 3, "max": 2}}, "replicas", "max 2 is less than min 3"),
        ({"machine": "n1 standard"}, "machine", "must look like n1-standard-2"),
        ({"model": "titanik"}, "model", "no such model (got titanik). Hint: did you mean"),
    ],
)
def test_an_endpoint_that_cannot_be_is_refused(endpoint, path, what):
    found = dict(wrong(None, endpoint))
    assert what in found[f"endpoints.titanic.{path}"]


@pytest.mark.parametrize(
    ("model", "path", "what"),
    [
        ({"run": 5}, "run[0]", "job 'titanic' has had 4 runs (got 5). Hint: train first"),
        ({"run": [3, 3]}, "run", "names a run twice"),
        ({"run": []}, "run", "at least 1 item"),
        ({"run": True}, "run", "must be a list"),
        ({"artifacts": "../other"}, "artifacts", "must look like model"),
        ({"files": ["/etc/passwd"]}, "files[0]", "must look like model.json"),
        (
            {"container": IMAGE.replace("us-central1", "europe-west4")},
            "container.image",
            "the image is in europe-west4, and a model is served from us-central1 alone",
        ),
        ({"container": "${images.serve}"}, "container.image", "names what this stack does not"),
        ({"container": "${secrets.key}"}, "container.image", "names what this stack does not"),
        (
            {"container": {"image": IMAGE, "env": {"AIP_HTTP_PORT": "1"}}},
            "container.env",
            "the service sets AIP_HTTP_PORT itself",
        ),
        (
            {"container": {"image": IMAGE, "deploymentTimeout": "7201s"}},
            "container.deploymentTimeout",
            "7201s is more than Vertex AI allows, 7200s",
        ),
        (
            {"container": {"image": IMAGE, "deploymentTimeout": "5m"}},
            "container.deploymentTimeout",
            "600s",
        ),
        ({"container": {"image": IMAGE, "port": 0}}, "container.port", "greater than or equal"),
        ({"container": {"image": IMAGE, "healthRoute": "//evil /x"}}, "container.healthRoute", ""),
    ],
)
def test_a_model_that_cannot_be_is_refused(model, path, what):
    found = dict(wrong(model, {"split": {"run 3": 100}}))
    assert what in found[f"models.titanic.{path}"]


def test_a_name_that_makes_no_id_of_a_model_is_refused():
    models = {"m" * 40: MODEL | {"job": "titanic"}}
    [(_, problem)] = refused(stack="an-environment-with-a-long-name", jobs=JOBS, models=models)
    assert "makes a model id that is not 1 to 63" in problem


def test_renamed_jobs_models_and_endpoints_keep_what_was_made():
    before = planned(jobs=JOBS, **served())
    after = planned(
        jobs={"ship": JOBS["titanic"] | {"formerly": "titanic"}},
        models={"boat": MODEL | {"job": "ship", "formerly": "titanic"}},
        endpoints={"front": ENDPOINT | {"model": "boat", "formerly": "titanic"}},
    )
    assert after.versions == before.versions
    assert after.endpoints == before.endpoints


def test_another_stack_has_other_models_and_endpoints():
    here = planned(jobs=JOBS, **served())
    there = planned(stack="dev", jobs=JOBS, **served())
    assert here.endpoints["titanic"].name != there.endpoints["titanic"].name
    assert here.versions["titanic", 3].request_id != there.versions["titanic", 3].request_id


def test_an_endpoint_is_private_where_the_network_is_unless_it_is_named_public():
    psc = {"mode": "psc", "subnet": {"range": "10.20.0.0/26"}}
    changes = {"network": psc}
    assert planned(jobs=JOBS, **served(**changes)).endpoints["titanic"].is_private
    public = planned(jobs=JOBS, **served(None, {"public": True}, **changes)).endpoints["titanic"]
    assert (public.is_private, public.is_named_public) == (False, True)
    assert planned(jobs=JOBS, **served(None, {"public": False})).endpoints["titanic"].is_private


@pytest.mark.parametrize(
    ("machine", "accelerator"),
    [
        ("n1-standard-2", {"type": "NVIDIA_TESLA_T4", "count": 2}),
        ("a2-highgpu-2g", {"type": "NVIDIA_TESLA_A100", "count": 2}),
    ],
)
def test_an_accelerator_that_the_machine_has_is_taken(machine, accelerator):
    given = {"machine": machine, "accelerator": accelerator}
    stack = planned(jobs=JOBS, **served(None, given))
    assert not [each for each in stack.warnings({}) if "machine" in str(each)]


WEST = "us-west1"


@pytest.mark.parametrize(
    ("region", "endpoint", "path", "what"),
    [
        (
            WEST,
            {"machine": "cloud-tpu"},
            "machine",
            "endpoints do not run on TPUs of this generation (got cloud-tpu). Hint: machines with "
            "TPUs: ct5lp-hightpu-1t, ct5lp-hightpu-4t, ct5lp-hightpu-8t, ct6e-standard-1t, "
            "ct6e-standard-4t, ct6e-standard-8t, tpu7x-standard-4t",
        ),
        (WEST, {"machine": "ct5p-hightpu-4t"}, "machine", "(got ct5p-hightpu-4t)"),
        (WEST, {"machine": "ct4p-hightpu-4t"}, "machine", "(got ct4p-hightpu-4t)"),
        (
            "us-central1",
            {"machine": "ct5lp-hightpu-1t"},
            "machine",
            "endpoints have no machines like this in us-central1 (got ct5lp-hightpu-1t). Hint: "
            "regions: europe-west4, us-south1, us-west1, us-west4",
        ),
        (WEST, {"machine": "ct6e-standard-1t"}, "machine", "in us-west1 (got ct6e-standard-1t)"),
        (
            WEST,
            {"machine": "ct5lp-hightpu-1t", "accelerator": {"type": "NVIDIA_L4"}},
            "accelerator.type",
            "ct5lp-hightpu-1t has TPUs built in, and nothing else (got NVIDIA_L4). Hint: remove it",
        ),
    ],
)
def test_a_tpu_that_endpoints_cannot_have_is_refused(region, endpoint, path, what):
    image = IMAGE.replace("us-central1", region)
    [(place, told)] = wrong({"container": image}, endpoint, region=region)
    assert place == f"endpoints.titanic.{path}"
    assert what in told


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
