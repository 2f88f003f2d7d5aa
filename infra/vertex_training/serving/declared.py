"""Declared model versions, and declared endpoints with their versions. Pure.

All values, such as a version's identity and a deployed model's id, are known before the resources
exist, so that a preview shows them and the service recognizes repeated calls.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.customjob.request.job_file import ID_LENGTH, canonical
from vertex_training.naming import digits

#: Prefix of a version's alias. The request id follows the prefix.
ALIAS_PREFIX: Final = "r-"
#: Label of a version with its model's key in the stack file. Jobs have all other labels, too.
MODEL_LABEL: Final = "vt-model"
#: Label of an endpoint with its key in the stack file.
ENDPOINT_LABEL: Final = "vt-endpoint"
#: Number of digits in a deployed model's id. The API accepts 1 to 10 digits.
DEPLOYED_ID_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The run that wrote a version's artifacts. The stack file has the keys of model and job."""

    project: str
    region: str
    stack: str
    model: str
    job: str
    run: int


@dataclass(frozen=True, slots=True)
class DeclaredVersion:
    """A version of a model: the artifacts of a run, and the container that serves them."""

    source: ModelSource
    model_id: str
    """Id of the model in the registry."""
    container: str
    """The ``ModelContainerSpec`` as JSON, with the field names of REST."""
    artifacts: str
    """Folder of the artifacts, below the run's output directory."""
    files: tuple[str, ...] = ()
    """Required files in that folder."""
    key: str = ""
    """Name of the encryption key; empty for Google's key."""

    @property
    def request_id(self) -> str:
        """Return the id of the upload: a digest of its source, container, folder and key."""
        source = self.source
        parts = [
            *("model", source.project, source.region, source.stack, source.model, source.job),
            *(str(source.run), self.model_id, self.container, self.artifacts, self.key),
        ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:ID_LENGTH]

    @property
    def image(self) -> str:
        """Return the image of the serving container."""
        return str(json.loads(self.container)["imageUri"])


@dataclass(frozen=True, slots=True)
class DeclaredDeployment:
    """A version that an endpoint serves, with its machines."""

    version: DeclaredVersion
    machine: Mapping[str, Any]
    """A ``MachineSpec`` with the field names of REST."""
    minimum: int
    maximum: int
    account: str = ""
    """Address of the containers' service account; empty for Google's default account."""

    @property
    def id(self) -> str:
        """Return the id of the deployed model: a digest of the properties that cannot change."""
        machine = json.dumps(self.machine, sort_keys=True)
        return digits(DEPLOYED_ID_DIGITS, self.version.request_id, machine, self.account)


@dataclass(frozen=True, slots=True)
class DeclaredEndpoint:
    """An endpoint, the versions that it serves by run, and the versions' shares of the traffic."""

    key: str
    project: str
    region: str
    stack: str
    id: str
    """Id of the endpoint: nine digits, a digest of the four fields above."""
    display_name: str
    deployments: Mapping[int, DeclaredDeployment]
    split: Mapping[int, int]
    """Percentage of the traffic for each run. All percentages add up to 100."""
    is_private: bool
    """True if only Private Service Connect provides access."""
    is_named_public: bool
    """True if the stack file has ``public: true``."""
    labels: Mapping[str, str]
    key_name: str = ""
    """Name of the encryption key; empty for Google's key."""
    model: str = ""
    """Key of the model in the stack file."""
    team: str | None = None
    account: str = ""
    """Address of the containers' service account; empty for Google's default account."""

    @property
    def name(self) -> str:
        """Return the resource name, ``projects/P/locations/R/endpoints/ID``."""
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
    """Return a ``ModelContainerSpec`` as canonical JSON, without empty fields."""
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
    return canonical({key: value for key, value in message.items() if value})
