"""Models of sections ``models`` and ``endpoints`` of a stack file.

A model has one version for each listed run of its job; an endpoint serves some of the versions.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import pydantic
from pydantic import Field

from vertex_training.settings.section import BELOW, Key, NamedSection, Section, form

#: Variables of a serving container that Vertex AI sets: predictions/custom-container-requirements.
RESERVED_ENV: Final = "AIP_"
#: Maximum number of versions of a model.
MOST_RUNS: Final = 50
#: Seconds of ``deploymentTimeout``: the limit is 2 hours (ModelContainerSpec).
MOST_SECONDS: Final = 7200

Run = Annotated[int, Field(ge=1, le=1_000_000)]
Route = Annotated[str, form(r"/[A-Za-z0-9_.~:/-]{0,255}", "/predict")]
RunName = Annotated[str, form(r"run [1-9][0-9]{0,6}", '"run 3"')]


class ServingContainer(Section):
    """Container that serves predictions, as Vertex AI requires for custom containers."""

    image: Annotated[str, Field(min_length=1, max_length=1000)]
    """Image: ``${images.NAME}``, or the URI of an image in Artifact Registry with its digest."""
    predict_route: Route = "/predict"
    """Path of prediction requests (POST)."""
    health_route: Route = "/health"
    """Path of health checks, which answers 200 when the container is ready."""
    port: Annotated[int, Field(ge=1, le=65_535)] = 8080
    """Port that the container listens on."""
    env: dict[Annotated[str, form(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "LOG_LEVEL")], str] = {}
    """Environment variables. Every user who can view the model can read them."""
    command: list[str] = []
    """Command that replaces the image's ENTRYPOINT."""
    args: list[str] = []
    """Arguments that replace the image's CMD."""
    deployment_timeout: Annotated[str, form(r"[1-9][0-9]{0,3}s", "600s")] | None = None
    """Maximum time until the container is healthy, at most 7200s; default: half an hour."""

    @pydantic.field_validator("deployment_timeout")
    @classmethod
    def _within_the_limit(cls, text: str | None) -> str | None:
        if text and int(text.removesuffix("s")) > MOST_SECONDS:
            raise ValueError(
                f"{text} exceeds the limit of Vertex AI: write {MOST_SECONDS}s or less"
            )
        return text

    @pydantic.field_validator("env")
    @classmethod
    def _no_reserved_names(cls, env: dict[str, str]) -> dict[str, str]:
        if reserved := sorted(name for name in env if name.startswith(RESERVED_ENV)):
            raise ValueError(f"Vertex AI sets {', '.join(reserved)} itself: remove the variable")
        return env


class Model(NamedSection):
    """A model of the Vertex AI registry, with one version for each listed run of a job."""

    job: Key | None = None
    """Key of the job that trains the model; default: the model's own key."""
    run: Annotated[
        list[Run],
        Field(min_length=1, max_length=MOST_RUNS),
        pydantic.BeforeValidator(
            lambda run: [run] if type(run) is int else run, json_schema_input_type=Run | list[Run]
        ),
    ]
    """Run of the job, or a list of runs like ``[3, 4]``."""
    container: Annotated[
        ServingContainer,
        pydantic.BeforeValidator(
            lambda value: {"image": value} if isinstance(value, str) else value,
            json_schema_input_type=str | ServingContainer,
        ),
    ]
    """Serving container: an image, or a mapping with image, routes, port and environment."""
    artifacts: Annotated[str, form(BELOW, "model, a folder of the run's output")] = "model"
    """Folder of the artifacts below the run's output directory; ``model`` is AIP_MODEL_DIR."""
    files: list[Annotated[str, form(BELOW, "model.json, a file in the folder")]] = []
    """Required files in the artifacts folder. A preview fails if a run lacks one of the files."""
    on_delete: Literal["keep", "delete"] = "keep"
    """Action on a version in Vertex AI when its run is removed from the list: keep or delete."""
    team: Key | None = None
    """Team that owns the model."""

    @pydantic.field_validator("run")
    @classmethod
    def _each_once(cls, runs: list[int]) -> list[int]:
        if len(set(runs)) != len(runs):
            raise ValueError("a run is listed twice: remove one entry")
        return sorted(runs)


class Accelerator(Section):
    """Accelerators of each replica."""

    type: Annotated[str, form(r"[A-Z][A-Z0-9_]{1,62}", "NVIDIA_TESLA_T4")]
    """Accelerator type, as spelled in the API."""
    count: Annotated[int, Field(ge=1, le=16)] = 1
    """Number of accelerators per replica."""


class Replicas(Section):
    """Number of replicas of each version. Replicas cost money while they are deployed."""

    min: Annotated[int, Field(ge=1, le=1000)] = 1
    """Minimum number of replicas, also without traffic; at least 1."""
    max: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Maximum number of replicas; default: ``min``."""

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> Replicas:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"max {self.max} is less than min {self.min}: raise max")
        return self

    @property
    def most(self) -> int:
        return self.max or self.min


class Endpoint(NamedSection):
    """An endpoint for predictions, and the model versions that it serves."""

    model: Key | None = None
    """Key of the model; default: the endpoint's own key."""
    machine: Annotated[str, form(r"[a-z0-9]+(?:-[a-z0-9]+){1,4}", "n1-standard-2")]
    """Machine type of the replicas."""
    accelerator: Accelerator | None = None
    """Accelerators of each replica; default: none."""
    replicas: Replicas = Replicas()
    """Number of replicas of each version."""
    account: Key | None = None
    """Key of the service account that the containers run as; default: an account of Google."""
    split: dict[RunName, Annotated[int, Field(ge=0, le=100)]]
    """Percentage of the traffic by run, like ``{"run 3": 90, "run 4": 10}``; the sum is 100. A run
    with 0 stays deployed. An unlisted run is undeployed when it has no more traffic."""
    public: bool | None = None
    """Allow access from the internet; default: false with network mode ``psc``, otherwise true."""
    team: Key | None = None
    """Team that owns the endpoint."""

    @pydantic.field_validator("split")
    @classmethod
    def _all_of_it(cls, split: dict[str, int]) -> dict[str, int]:
        if (total := sum(split.values())) != 100:
            raise ValueError(f"shares must sum to 100, but sum to {total}")
        return split

    @property
    def shares(self) -> dict[int, int]:
        """Return the shares of deployed runs by run number, in order."""
        by_run = {int(name.removeprefix("run ")): share for name, share in self.split.items()}
        return dict(sorted(by_run.items()))
