"""REST queries before a submission: permissions, images, reservations, quota and TensorBoard.

Uses the session of ``google-auth`` instead of one client package for each service. The local cloud
has the same methods at the same paths.

A job with a TensorBoard contains the number of the stack's instance, which the service chooses. So
that creating the instance does not change the request, the request has ``tensorboards/0``. The
number is inserted when the request is sent.

https://docs.cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts/testIamPermissions
https://docs.cloud.google.com/resource-manager/reference/rest/v3/projects/testIamPermissions
https://docs.cloud.google.com/compute/docs/reference/rest/v1/reservations/get
https://docs.cloud.google.com/service-usage/docs/reference/rest/v1beta1/services.consumerQuotaMetrics/get
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import google.auth
from google.api_core.exceptions import FailedPrecondition, NotFound
from google.auth.exceptions import GoogleAuthError

from vertex_training.customjob.google import SCOPE, impersonated_credentials
from vertex_training.customjob.google.job_service import NO_CREDENTIALS, local_address
from vertex_training.customjob.protocol.ports import SubmissionRequest
from vertex_training.errors import NotSubmittedError, OperatorError
from vertex_training.naming import SERVICE_CHOSEN

if TYPE_CHECKING:
    import requests

#: Variable with host:port of the local cloud's image registry.
REGISTRY_EMULATOR: Final = "ARTIFACT_REGISTRY_EMULATOR_HOST"
TIMEOUT: Final = 10
UNLIMITED: Final = -1
MANIFESTS: Final = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)


def connect(project: str, account: str = "") -> GooglePrerequisites:
    """Return a client for these queries; for a ``local-…`` project, of the local cloud.

    The client connects at the first query, and impersonates ``account``. Raises OperatorError for a
    local project without a local cloud, or the reverse.
    """
    return GooglePrerequisites(local_address(project), account)


@functools.lru_cache(maxsize=4)
def session(*, local: bool, account: str) -> requests.Session:
    """Return a session that all threads share. Raises OperatorError without credentials."""
    if local:
        import requests

        plain = requests.Session()
        plain.trust_env = False  # no proxy to the local machine
        return plain
    from google.auth.transport.requests import AuthorizedSession

    try:
        credentials = impersonated_credentials(account) or google.auth.default(scopes=[SCOPE])[0]
    except GoogleAuthError:
        raise OperatorError(NO_CREDENTIALS) from None
    return AuthorizedSession(credentials)


class GooglePrerequisites:
    """``protocol.prerequisites.Prerequisites`` with REST calls."""

    def __init__(self, local: str | None, account: str) -> None:
        self._local, self._account = local, account

    def has_permission(self, resource: str, permission: str) -> bool:
        service, version = ("iam", "v1") if "/serviceAccounts/" in resource else _PROJECTS
        url = f"{self._base(service)}/{version}/{resource}:testIamPermissions"
        answer = self._call("POST", url, json={"permissions": [permission]})
        return permission in (answer or {}).get("permissions", ())

    def has_image(self, host: str, path: str, reference: str) -> bool:
        base = f"https://{host}"
        if self._local:
            if not (emulator := os.environ.get(REGISTRY_EMULATOR)):
                raise OperatorError("the local cloud has no running image registry")
            base = f"http://{emulator}"
        url = f"{base}/v2/{path}/manifests/{reference}"
        return self._call("HEAD", url, headers={"Accept": MANIFESTS}) is not None

    def has_reservation(self, name: str) -> bool:
        return self._call("GET", f"{self._base('compute')}/compute/v1/{name}") is not None

    def quota(self, project: str, region: str, metric: str) -> int | None:
        answer = self._call("GET", f"{self._base('serviceusage')}/{quota_path(project, metric)}")
        if answer is None:
            raise OperatorError(f"the quota {metric} does not exist")
        return effective_limit(answer, {"region": region})

    def _base(self, service: str) -> str:
        return f"http://{self._local}" if self._local else f"https://{service}.googleapis.com"

    def _call(self, method: str, url: str, **options: Any) -> Mapping[str, Any] | None:
        """Return the JSON response (empty without a body), or None for status 404."""
        import requests

        try:
            connected = session(local=bool(self._local), account=self._account)
            answer = connected.request(method, url, timeout=TIMEOUT, **options)
            if answer.status_code == 404:
                return None
            if not answer.ok:
                raise OperatorError(f"{url} returned {answer.status_code} {answer.reason}")
            return answer.json() if answer.content and method != "HEAD" else {}
        except (requests.RequestException, GoogleAuthError) as error:
            raise OperatorError(f"{url} did not respond: {type(error).__name__}") from None


def quota_path(project: str, metric: str) -> str:
    """Return the path of a project's quota metric; the basic view omits limits of regions."""
    service = f"projects/{project}/services/{metric.partition('/')[0]}"
    return f"v1beta1/{service}/consumerQuotaMetrics/{quote(metric, safe='')}?view=FULL"


def effective_limit(metric: Mapping[str, Any], dimensions: Mapping[str, str]) -> int | None:
    """Return the limit of a ``ConsumerQuotaMetric`` in a region; None for no limit.

    Raises OperatorError if the metric has no limit for these dimensions.
    """
    buckets = [
        bucket
        for limit in metric.get("consumerQuotaLimits", ())
        for bucket in limit.get("quotaBuckets", ())
        if bucket.get("dimensions", {}).items() <= dimensions.items()
    ]
    if not buckets:
        raise OperatorError("the limit of the quota is unknown")
    # The last bucket is the most specific. JSON omits a limit of 0.
    limit = int(buckets[-1].get("effectiveLimit", 0))
    return None if limit == UNLIMITED else limit


_PROJECTS: Final = ("cloudresourcemanager", "v3")
_UNNUMBERED: Final = f"/tensorboards/{SERVICE_CHOSEN}"


def to_send(request: SubmissionRequest, account: str) -> SubmissionRequest:
    """Return the request with the number of its TensorBoard. Raises NotSubmittedError."""
    body = with_number(request.body, request.parent, request.stack, account)
    return dataclasses.replace(request, body=body)


def obstacle(request: SubmissionRequest, account: str) -> str:
    """Return the reason why the request cannot be sent; empty without a reason."""
    try:
        to_send(request, account)
    except NotSubmittedError as error:
        return str(error).rstrip(".")
    return ""


def with_number(body: str, parent: str, stack: str, account: str) -> str:
    """Return ``body`` with the number of the stack's TensorBoard, if the job uses a TensorBoard.

    Raises NotSubmittedError unless exactly one TensorBoard has the label of the stack.
    """
    message = json.loads(body)
    spec = message.get("jobSpec") or message.get("trialJobSpec") or {}
    if not str(spec.get("tensorboard")).endswith(_UNNUMBERED):
        return body
    try:
        names = [
            instance.name
            for instance in _instances(parent, account)
            if instance.labels.get("stack") == stack
        ]
    except (OperatorError, NotFound, FailedPrecondition) as error:
        text = getattr(error, "message", error)
        raise NotSubmittedError(
            f"the TensorBoard of stack {stack} could not be looked up: {text}"
        ) from None
    if not names:
        raise NotSubmittedError(
            f"no TensorBoard in {parent} has the label stack={stack}. Run `pulumi up` to create "
            "the TensorBoard."
        )
    if len(names) > 1:
        raise NotSubmittedError(
            f"{len(names)} TensorBoards have the label stack={stack}: {', '.join(names)}. Keep the "
            "label on one TensorBoard, and remove the label from all others."
        )
    spec["tensorboard"] = names[0]
    return json.dumps(message)


def _instances(parent: str, account: str) -> list[Any]:
    from google.cloud.aiplatform_v1.services.tensorboard_service import (
        TensorboardServiceClient,
        transports,
    )

    from vertex_training.customjob.google.job_service import read, service_client

    project, region = parent.split("/")[1::2]
    types = TensorboardServiceClient, transports.TensorboardServiceGrpcTransport
    client = service_client(*types, project, region, account)

    def list_tensorboards(**arguments: Any) -> list[Any]:
        return list(client.list_tensorboards(**arguments))  # a later page may fail as well

    return read(list_tensorboards, request={"parent": parent})
