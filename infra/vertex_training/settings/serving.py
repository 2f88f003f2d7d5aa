"""The models of the sections ``models`` and ``endpoints`` of a stack file.

A model has a version for each run that is named; an endpoint serves some of them. What a run left
is files in a bucket, so a model names a job and its runs, never a path.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import Field

from vertex_training.settings.section import BELOW, Key, NamedSection, Section, form

#: Variables of a serving container that Vertex AI sets: predictions/custom-container-requirements.
RESERVED_ENV: Final = "AIP_"
#: At most this many versions of one model at once.
MOST_RUNS: Final = 50
#: Seconds of ``deploymentTimeout``: the limit is 2 hours (ModelContainerSpec).
MOST_SECONDS: Final = 7200

Run = Annotated[int, Field(ge=1, le=1_000_000)]
Route = Annotated[str, form(r"/[A-Za-z0-9_.~:/-]{0,255}", "/predict")]
RunName = Annotated[str, form(r"run [1-9][0-9]{0,6}", '"run 3"')]


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, int) and not isinstance(given, bool) else given


def _container(given: Any) -> Any:
    return {"image": given} if isinstance(given, str) else given


class ServingContainer(Section):
    """The container that answers predictions, by Vertex AI's contract for containers."""

    image: Annotated[str, Field(min_length=1, max_length=1000)]
    """An image: ``${images.NAME}``, or one in Artifact Registry, by digest."""
    predict_route: Route = "/predict"
    """Path of predictions, by POST."""
    health_route: Route = "/health"
    """Path that answers 200 once it can serve."""
    port: Annotated[int, Field(ge=1, le=65_535)] = 8080
    """The port that it listens on."""
    env: dict[Annotated[str, form(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "LOG_LEVEL")], str] = {}
    """Environment variables. Everybody who can see the model can read them."""
    command: list[str] = []
    """In place of the image's ENTRYPOINT."""
    args: list[str] = []
    """In place of the image's CMD."""
    deployment_timeout: Annotated[str, form(r"[1-9][0-9]{0,3}s", "600s")] | None = None
    """Longest time to become healthy, at most 7200s; half an hour without it."""

    @pydantic.field_validator("deployment_timeout")
    @classmethod
    def _within_the_limit(cls, given: str | None) -> str | None:
        if given and int(given.removesuffix("s")) > MOST_SECONDS:
            raise ValueError(f"{given} is more than Vertex AI allows, {MOST_SECONDS}s")
        return given

    @pydantic.field_validator("env")
    @classmethod
    def _no_reserved_names(cls, env: dict[str, str]) -> dict[str, str]:
        if reserved := sorted(name for name in env if name.startswith(RESERVED_ENV)):
            raise ValueError(f"the service sets {', '.join(reserved)} itself: remove it")
        return env


class Model(NamedSection):
    """A model of the registry: one version for each run of a job that is named."""

    job: Key | None = None
    """Key of the job whose artifacts it has; the model's own without it."""
    run: Annotated[
        list[Run],
        Field(min_length=1, max_length=MOST_RUNS),
        pydantic.BeforeValidator(_listed, json_schema_input_type=Run | list[Run]),
    ]
    """The run of the job, or several: ``[3, 4]``."""
    container: Annotated[
        ServingContainer,
        pydantic.BeforeValidator(_container, json_schema_input_type=str | ServingContainer),
    ]
    """The container that serves it: an image, or an image with routes, port and environment."""
    artifacts: Annotated[str, form(BELOW, "model, a folder of the run's output")] = "model"
    """Folder below the run's output directory; ``model`` is what code has as AIP_MODEL_DIR."""
    files: list[Annotated[str, form(BELOW, "model.json, a file in the folder")]] = []
    """Files that the container expects in that folder; a preview refuses a run without them."""
    on_delete: Literal["keep", "delete"] = "keep"
    """Keep or delete versions that leave the stack."""
    team: Key | None = None
    """The team that it belongs to."""

    @pydantic.field_validator("run")
    @classmethod
    def _each_once(cls, runs: list[int]) -> list[int]:
        if len(set(runs)) != len(runs):
            raise ValueError("names a run twice")
        return sorted(runs)


class Accelerator(Section):
    """Accelerators of each replica."""

    type: Annotated[str, form(r"[A-Z][A-Z0-9_]{1,62}", "NVIDIA_TESLA_T4")]
    """Their type, as the API spells it."""
    count: Annotated[int, Field(ge=1, le=16)] = 1
    """Number of accelerators of a replica."""


class Replicas(Section):
    """Numbers of replicas of each version. All of them are paid for while they are deployed."""

    min: Annotated[int, Field(ge=1, le=1000)] = 1
    """The least, also without any traffic; at least 1."""
    max: Annotated[int, Field(ge=1, le=1000)] | None = None
    """The most; ``min`` without it."""

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> Replicas:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"max {self.max} is less than min {self.min}")
        return self

    @property
    def most(self) -> int:
        """The most replicas there can be."""
        return self.max or self.min


class Endpoint(NamedSection):
    """An address for predictions, and the versions of a model that answer them."""

    model: Key | None = None
    """Key of the model; the endpoint's own without it."""
    machine: Annotated[str, form(r"[a-z0-9]+(?:-[a-z0-9]+){1,4}", "n1-standard-2")]
    """Machine type of the replicas."""
    accelerator: Accelerator | None = None
    """Accelerators of each replica; none without it."""
    replicas: Replicas = Replicas()
    """Numbers of replicas of each version."""
    account: Key | None = None
    """Key of the service account that the containers act as; Google's own without it."""
    split: dict[RunName, Annotated[int, Field(ge=0, le=100)]]
    """Share of the traffic by run, like ``{"run 3": 90, "run 4": 10}``; 100 in total. A run with 0
    stays deployed. One that is left out is undeployed once it has no traffic."""
    public: bool | None = None
    """Reachable from the internet. Without it, it is private where the stack's network
    has mode ``psc``, and public elsewhere."""
    team: Key | None = None
    """The team that owns it."""

    @pydantic.field_validator("split")
    @classmethod
    def _all_of_it(cls, split: dict[str, int]) -> dict[str, int]:
        if (total := sum(split.values())) != 100:
            raise ValueError(f"shares sum to {total}, and must to 100")
        return split

    @property
    def shares(self) -> dict[int, int]:
        """Share by number of the run, in order; each run of it is deployed."""
        found = {int(name.removeprefix("run ")): share for name, share in self.split.items()}
        return dict(sorted(found.items()))
