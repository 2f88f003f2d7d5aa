"""Models and endpoints that name what is not there, or does not fit: whole reports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import rows, unjudged
from vertex_training.stack_rules import serving

IMAGE = f"us-central1-docker.pkg.dev/acme-ml-prod/training-prod/serve@sha256:{'a' * 64}"
JOBS = {"train": {"file": "x", "run": 2}, "once": {"file": "x"}}
T4 = (
    "it can have NVIDIA_TESLA_T4 with count 1 or 2 or 4, NVIDIA_TESLA_P4 with count 1 or 2 or 4, "
    "NVIDIA_TESLA_P100 with count 1 or 2 or 4, NVIDIA_TESLA_V100 with count 1 or 2 or 4 or 8"
)
NO_TEAM = "this stack has no such team"


def model(**given: Any) -> dict[str, Any]:
    return {"job": "train", "run": 1, "container": {"image": IMAGE}, **given}


def endpoint(**given: Any) -> dict[str, Any]:
    return {"model": "m", "machine": "n1-standard-2", "split": {"run 1": 100}, **given}


def told(**sections: Any) -> list[tuple[str, str, str, str]]:
    return rows(serving.problems(unjudged(**{"jobs": JOBS} | sections)))


def test_a_version_is_of_a_run_of_a_job_that_is_there() -> None:
    image = {"container": {"image": IMAGE}}
    found = told(
        models={
            "train": {"run": [1, 3], **image},
            "once": {"run": [1, 2], **image},
            "trai": {"run": 1, **image},
            "other": model(job="nothing", run=5),
            "both": model(run=[1, 2], team="vison"),
        },
        teams={"vision": {}},
    )
    first = "train first: raise run on the job, and name it here once it has succeeded"
    missing = "this stack has no such job"
    assert found == [
        ("models.train.run.1", "job 'train' has had 2 runs", "3", first),
        ("models.once.run.1", "job 'once' has had 1 run", "2", first),
        ("models.trai.job", missing, "trai", "did you mean 'train'?"),
        ("models.other.job", missing, "nothing", "known here: once, train"),
        ("models.both.team", NO_TEAM, "vison", "did you mean 'vision'?"),
    ]
    assert told(jobs={}, models={"m": model(team="a")}) == [
        ("models.m.job", missing, "train", "declare the job in jobs"),
        ("models.m.team", NO_TEAM, "a", "add it to teams"),
    ]
    slots = {"train": {"file": "x", "schedule": {"cron": "0 6 * * 1"}}}
    assert told(jobs=slots, models={"m": model()}) == [
        ("models.m.job", "has a schedule: its jobs are slots, and a version is made of a run",
         "train", "name a job without a schedule; one with the same file will do"),
    ]  # fmt: skip


REGISTRY = "${images.NAME}, or REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME@sha256:…"
MISSING = "names what this stack does not have"


@pytest.mark.parametrize(
    ("image", "region", "found"),
    [
        ("${images.serve}", "us-central1", None),
        ("us-central1-docker.pkg.dev/p/r/n:v1", "us-central1", None),
        ("us-docker.pkg.dev/p/r/n:v1", "us-central1", None),
        ("europe-docker.pkg.dev/p/r/n:v1", "europe-west4", None),
        ("asia-docker.pkg.dev/p/r/n:v1", "asia-northeast1", None),
        ("${images.srve}", "us-central1", (MISSING, "did you mean 'images.serve'?")),
        ("us-docker.pkg.dev/p/r/n:${job.run}", "us-central1",
         (MISSING, "known here: images.serve")),
        ("python:3", "us-central1", ("not an image in Artifact Registry", REGISTRY)),
        ("us-docker.pkg.dev/p/r/n v1", "us-central1",
         ("not an image in Artifact Registry", REGISTRY)),
        ("us-docker.pkg.dev/p/n:v1", "us-central1",
         ("not an image in Artifact Registry", REGISTRY)),
        *((f"{location}-docker.pkg.dev/p/r/n:v1", region,
           (f"the image is in {location}, and a model is served from {region} alone",
            f"push it to a repository in {region}"))
          for location, region in (("us", "europe-west4"), ("asia", "us-central1"),
                                   ("us-east1", "us-central1"), ("us-central", "us-central1"))),
    ],
)  # fmt: skip
def test_an_image_is_known_and_in_the_region(
    image: str, region: str, found: tuple[str, str] | None
) -> None:
    images = {"serve": {"digest": f"sha256:{'0' * 64}"}}
    models = {"m": model(container={"image": image})}
    row = found and ("models.m.container.image", found[0], image, found[1])
    assert told(region=region, images=images, models=models) == ([row] if row else [])


def test_what_a_team_owns_is_served_by_its_own_endpoints() -> None:
    found = told(
        teams={"v": {}, "w": {}},
        models={"m": model(team="v"), "all": model()},
        serviceAccounts={"a": {"team": "v"}, "b": {}},
        endpoints={
            "x": endpoint(),
            "y": endpoint(team="v", account="a"),
            "z": endpoint(team="w", account="a"),
            "q": endpoint(model="all", team="u", account="c"),
            "r": endpoint(model="all", team="w", account="b"),
        },
    )
    owned = "give the endpoint team: v, or share the model: remove its team"
    own = "give the endpoint team: v, or an account of its own"
    assert found == [
        ("endpoints.x.model", "belongs to team v", "m", owned),
        ("endpoints.z.model", "belongs to team v", "m", owned),
        ("endpoints.z.account", "belongs to team v", "a", own),
        ("endpoints.q.team", NO_TEAM, "u", "known here: v, w"),
        ("endpoints.q.account", "this stack has no such account", "c", "known here: a, b"),
    ]
    assert told(models={"m": model()}, endpoints={"x": endpoint(account="a")}) == [
        ("endpoints.x.account", "this stack has no such account", "a",
         "declare it in serviceAccounts"),
    ]  # fmt: skip


def test_two_endpoints_have_two_ids() -> None:
    given = {"a": endpoint(), "b": endpoint(formerly="a"), "c": endpoint()}
    [(path, what, value, hint)] = told(models={"m": model()}, endpoints=given)
    assert (path, what, hint) == (
        "endpoints.b", "has the same id as endpoint 'a'", "choose another name"
    )  # fmt: skip
    assert value.isdecimal()


@pytest.mark.parametrize(
    ("machine", "accelerator", "found"),
    [
        ("n1-standard-2", None, None),
        ("n1-standard-2", ("NVIDIA_TESLA_T4", 2), None),
        ("x9-none-4", ("NVIDIA_L4", 1), None),  # not in the catalogue
        ("a2-highgpu-1g", None, ("", "is missing; a2-highgpu-1g needs it", "",
                                 "it can have NVIDIA_TESLA_A100 with count 1")),
        ("a2-highgpu-1g", ("NVIDIA_TESLA_A100", 8), (
            ".count", "a2-highgpu-1g takes 1 of NVIDIA_TESLA_A100", "8",
            "it can have NVIDIA_TESLA_A100 with count 1")),
        ("n1-standard-2", ("NVIDIA_L4", 1), (
            ".type", "n1-standard-2 cannot have this accelerator", "NVIDIA_L4", T4)),
    ],
)  # fmt: skip
def test_a_machine_of_an_endpoint_has_the_accelerators_that_it_can_have(
    machine: str, accelerator: tuple[str, int] | None, found: tuple[str, ...] | None
) -> None:
    given = endpoint(machine=machine)
    if accelerator:
        given["accelerator"] = {"type": accelerator[0], "count": accelerator[1]}
    row = found and (f"endpoints.x.accelerator{found[0]}", *found[1:])
    assert told(models={"m": model()}, endpoints={"x": given}) == ([row] if row else [])


def test_what_is_valid_and_probably_not_meant_is_told() -> None:
    def prebuilt(name: str, location: str = "us") -> dict[str, Any]:
        return model(container={"image": f"{location}-docker.pkg.dev/vertex-ai/prediction/{name}"})

    settings = unjudged(
        jobs=JOBS,
        models={
            "a": prebuilt("xgboost-cpu.2-1:latest"),
            "b": prebuilt("sklearn-cpu.1-6:latest", "europe"),
            "c": prebuilt("sklearn-cpu.1-5:latest"),
            "m": model(),
        },
        endpoints={
            "odd": endpoint(machine="n1-highmen-2"),
            "tpu": endpoint(machine="ct5lp-hightpu-1t", replicas={"min": 2, "max": 3}),
            "new": endpoint(machine="a4-highgpu-8g"),
            "fine": endpoint(),
        },
    )
    until = "Google's prebuilt serving images are there until 2027-01-14"
    own = "an image of your own: ${images.NAME}"
    assert rows(serving.warnings(settings)) == [
        ("models.a.container.image", until, "xgboost-cpu.2-1", own),
        ("models.c.container.image", until, "sklearn-cpu.1-5", own),
        ("endpoints.odd.machine",
         "not in the catalogue: neither its price nor its accelerators are known",
         "n1-highmen-2", "did you mean 'n1-highmem-2'?"),
        ("endpoints.tpu.replicas.max",
         "is ignored: endpoints on TPUs always have the least replicas", "3",
         "set min to what you need, or remove max: there will be 2"),
        ("endpoints.new.machine",
         "no source has its price: nothing that counts costs counts this endpoint",
         "a4-highgpu-8g", ""),
    ]  # fmt: skip
