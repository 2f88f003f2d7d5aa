"""Declaration of a model version and of the versions behind an endpoint. Pure.

All of it is known before anything exists: the identity of a version does not follow from where its
run happened to write, and the id of a deployed model is ours to choose. So a preview shows it, and
a repeated call is recognised by it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.customjob.request.job_file import ID_LENGTH

#: How the alias begins that a version has for its request; the request's id follows.
ALIAS_PREFIX: Final = "r-"
#: Label of a version with the key of its model; the others are those of jobs.
MODEL_LABEL: Final = "vt-model"
#: Label of an endpoint with its key.
ENDPOINT_LABEL: Final = "vt-endpoint"
#: Digits of a deployed model's id: the API takes 1 to 10.
DEPLOYED_ID_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The run that a version is made of. ``model`` and ``job`` are keys of the stack file."""

    project: str
    region: str
    stack: str
    model: str
    job: str
    run: int


@dataclass(frozen=True, slots=True)
class DeclaredVersion:
    """One version of a model: of one run, served by one container."""

    source: ModelSource
    model_id: str
    """Its model's id in the registry."""
    container: str
    """The ``ModelContainerSpec`` as JSON, by REST's names."""
    artifacts: str
    """Folder below the run's output directory."""
    files: tuple[str, ...] = ()
    """Required files of that folder."""
    key: str = ""
    """The key that encrypts it; Google's without one."""

    @property
    def request_id(self) -> str:
        """Identity of the upload: equal for the same source, container and folder only."""
        source = self.source
        parts = [
            *("model", source.project, source.region, source.stack, source.model, source.job),
            *(str(source.run), self.model_id, self.container, self.artifacts, self.key),
        ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:ID_LENGTH]

    @property
    def image(self) -> str:
        """The image that serves it."""
        return str(json.loads(self.container)["imageUri"])


@dataclass(frozen=True, slots=True)
class DeclaredDeployment:
    """One version behind an endpoint, and the machines that it has there."""

    version: DeclaredVersion
    machine: Mapping[str, Any]
    """A ``MachineSpec`` by REST's names."""
    minimum: int
    maximum: int
    account: str = ""
    """Address of the account that its containers act as; Google's own without it."""

    @property
    def id(self) -> str:
        """Id of the deployed model. What cannot be changed in place is part of it."""
        parts = [self.version.request_id, json.dumps(self.machine, sort_keys=True), self.account]
        digest = int(hashlib.sha256("\0".join(parts).encode()).hexdigest(), 16)
        lowest = 10 ** (DEPLOYED_ID_DIGITS - 1)
        return str(lowest + digest % (9 * lowest))


@dataclass(frozen=True, slots=True)
class DeclaredEndpoint:
    """An endpoint, the versions behind it by run, and the share of each."""

    key: str
    project: str
    region: str
    stack: str
    id: str
    """Nine digits that follow from the four above."""
    display_name: str
    deployments: Mapping[int, DeclaredDeployment]
    split: Mapping[int, int]
    """Share by run; 100 in total."""
    is_private: bool
    """True if it is reached by Private Service Connect alone."""
    is_named_public: bool
    """True if the stack file has ``public: true``."""
    labels: Mapping[str, str]
    key_name: str = ""
    """The key that encrypts it; Google's without one."""
    model: str = ""
    """Key of its model."""
    team: str | None = None

    account: str = ""
    """Address of the account that its containers act as; Google's own without it."""

    @property
    def name(self) -> str:
        """``projects/P/locations/R/endpoints/ID``."""
        return f"projects/{self.project}/locations/{self.region}/endpoints/{self.id}"


def container_spec(
    image: str,
    predict_route: str,
    health_route: str,
    port: int,
    env: Mapping[str, str],
    command: Sequence[str],
    args: Sequence[str],
    deployment_timeout: str | None,
) -> str:
    """A ``ModelContainerSpec`` as canonical JSON; without what is left empty."""
    message = {
        "imageUri": image,
        "predictRoute": predict_route,
        "healthRoute": health_route,
        "ports": [{"containerPort": port}],
        "env": [{"name": name, "value": env[name]} for name in sorted(env)],
        "command": list(command),
        "args": list(args),
        "deploymentTimeout": deployment_timeout,
    }
    given = {key: value for key, value in message.items() if value}
    return json.dumps(given, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
