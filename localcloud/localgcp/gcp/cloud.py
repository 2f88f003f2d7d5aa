"""The local cloud's database, checks of projects and APIs, and object storage."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener
from uuid import uuid4

from localgcp.errors import CloudError, RefusedError, UnlistableBucketError
from localgcp.gcp.codec import plain
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import TypeSchema
from localgcp.inventory.resource_paths import LOCAL_PREFIX, is_local
from localgcp.inventory.store import Store, project_number

#: Inputs or outputs of a resource.
Values = dict[str, Any]
HOME_VARIABLE: Final = "VT_LOCAL_HOME"

# Titles of the services in the message about a disabled API.
_TITLES: Final = {
    "aiplatform.googleapis.com": "Vertex AI API",
    "artifactregistry.googleapis.com": "Artifact Registry API",
    "billingbudgets.googleapis.com": "Cloud Billing Budget API",
    "cloudkms.googleapis.com": "Cloud Key Management Service (KMS) API",
    "cloudresourcemanager.googleapis.com": "Cloud Resource Manager API",
    "compute.googleapis.com": "Compute Engine API",
    "dns.googleapis.com": "Cloud DNS API",
    "iam.googleapis.com": "Identity and Access Management (IAM) API",
    "logging.googleapis.com": "Cloud Logging API",
    "monitoring.googleapis.com": "Cloud Monitoring API",
    "secretmanager.googleapis.com": "Secret Manager API",
    "servicenetworking.googleapis.com": "Service Networking API",
    "storage.googleapis.com": "Cloud Storage API",
}


@dataclass
class Cloud:
    """The local cloud, for calls of one resource type with one provider configuration."""

    type: TypeSchema
    settings: Settings
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @cached_property
    def store(self) -> Store:
        """Return the database of the local cloud. Raises RefusedError outside the local shell."""
        home = self.environment.get(HOME_VARIABLE)
        if not home:
            raise RefusedError(
                f"the environment variable {HOME_VARIABLE} is not set, so the plugin cannot find "
                "the local cloud. Hint: use `vt local up`, or `pulumi` inside `vt local shell`"
            )
        return Store(Path(home) / "cloud.sqlite")

    def in_project_of(self, id_: str, state: Mapping[str, Any]) -> Cloud:
        """Return a copy with the project of the resource ``id_`` as the provider's project."""
        project = plain(state.get("project"))
        if not project and self.environment.get(HOME_VARIABLE):
            resource = self.store.get(self.type.token, id_)
            project = resource.project if resource else None
        if not project:
            return self
        return replace(self, settings=replace(self.settings, project=str(project)))

    def guard(self, project: str) -> None:
        """Check that the project is local. Raises RefusedError."""
        if not project:
            raise RefusedError(
                f"{self.type.token}: project: required field is not set. "
                "Hint: run `pulumi config set gcp:project PROJECT`, then `pulumi up`"
            )
        if not is_local(project):
            raise RefusedError(
                f"project '{project}' is not a local project: the id does not begin with "
                f"'{LOCAL_PREFIX}'. The local gcp plugin can preview this project, but cannot read "
                "or change its resources. Hint: run pulumi outside `vt local shell` to reach "
                "Google Cloud"
            )

    def need_api(self, project: str, service: str | None) -> None:
        """Check that an API is enabled in the project. Raises CloudError with status 403."""
        if service is None or self.store.service_enabled(project, service):
            return
        title = _TITLES.get(service, service)
        raise CloudError(
            403,
            f"{title} has not been used in project {project} before or it is disabled. Enable it "
            f"by adding {service} to the stack's gcp.projects.Service resources, and make this "
            "resource depend on it",
            "SERVICE_DISABLED",
        )


def normal_project(path: str, project: str) -> str:
    """Return a resource path with the project's number replaced by the project's id."""
    number = project_number(project) if project else ""
    return path.replace(f"projects/{number}/", f"projects/{project}/", 1) if number else path


def now() -> str:
    """Return the current time in the format of Google's APIs."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def new_number() -> str:
    """Return a random resource number of 19 digits."""
    return str(10**18 + secrets.randbelow(8 * 10**18))


def text(inputs: Mapping[str, Any], key: str) -> str:
    """Return the input ``key`` as a string, or "" if the input is unset."""
    value = inputs.get(key)
    return "" if value is None else str(value)


VARIABLE: Final = "STORAGE_EMULATOR_HOST"
# The emulator runs on this machine, so ignore the proxies of the environment.
_OPENER: Final = build_opener(ProxyHandler({}))


@dataclass(frozen=True)
class Emulator:
    """The emulator's buckets and objects."""

    base: str

    @staticmethod
    def of(cloud: Cloud) -> Emulator:
        """Return the emulator at the address ``STORAGE_EMULATOR_HOST``. Raises RefusedError."""
        host = cloud.environment.get(VARIABLE, "").rstrip("/")
        if not host:
            raise RefusedError(
                f"the environment variable {VARIABLE} is not set, so the plugin cannot find the "
                "local object storage. Hint: use `vt local up`, or `pulumi` inside `vt local shell`"
            )
        return Emulator(host if "://" in host else f"http://{host}")

    def create_bucket(self, project: str, name: str, location: str) -> None:
        """Create a bucket unless a bucket of this name exists."""
        body = {"name": name, "location": location}
        url = f"/storage/v1/b?{urlencode({'project': project})}"
        self._call("POST", url, json.dumps(body).encode(), absent=409)

    def has_bucket(self, name: str) -> bool:
        """Return whether the bucket exists."""
        return self._call("GET", f"/storage/v1/b/{quote(name, safe='')}") is not None

    def delete_bucket(self, name: str) -> None:
        """Delete an empty bucket, if it exists."""
        self._call("DELETE", f"/storage/v1/b/{quote(name, safe='')}")

    def objects(self, bucket: str) -> Iterator[str]:
        """Yield the names of the objects in a bucket. Raises UnlistableBucketError."""
        token = ""
        while True:
            query = urlencode({"maxResults": 1000, **({"pageToken": token} if token else {})})
            page = self._call("GET", f"/storage/v1/b/{quote(bucket, safe='')}/o?{query}")
            if page is None:
                if self.has_bucket(bucket):
                    raise UnlistableBucketError(bucket)
                return
            yield from (item["name"] for item in page.get("items", ()))
            token = page.get("nextPageToken", "")
            if not token:
                return

    def upload(
        self, bucket: str, metadata: dict[str, Any], content: bytes
    ) -> dict[str, Any] | None:
        """Write an object; return its metadata, or None if the bucket does not exist."""
        boundary = uuid4().hex
        head = (
            f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n"
            f"{json.dumps(metadata)}\r\n--{boundary}\r\n"
            f"Content-Type: {metadata['contentType']}\r\n\r\n"
        )
        body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        url = f"/upload/storage/v1/b/{quote(bucket, safe='')}/o?uploadType=multipart"
        return self._call("POST", url, body, f"multipart/related; boundary={boundary}")

    def object(self, bucket: str, name: str) -> dict[str, Any] | None:
        """Return the metadata of an object, or None for a missing object."""
        return self._call("GET", _object_url(bucket, name))

    def delete_object(self, bucket: str, name: str) -> None:
        """Delete an object, if it exists."""
        self._call("DELETE", _object_url(bucket, name))

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        *,
        absent: int = 404,
    ) -> dict[str, Any] | None:
        request = Request(self.base + path, body, {"Content-Type": content_type}, method=method)
        try:
            with _OPENER.open(request, timeout=60.0) as response:
                answer = response.read()
        except HTTPError as error:
            if error.code == absent:
                return None
            raise RefusedError(
                f"the local object storage refused {method} {path}: HTTP {error.code} "
                f"{' '.join(error.read().decode(errors='replace').split())[:300]}"
            ) from error
        except (URLError, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise RefusedError(
                f"the local object storage at {self.base} does not answer ({reason}). "
                "Hint: start the local cloud with `vt local up`"
            ) from error
        return json.loads(answer) if answer.strip() else {}


def _object_url(bucket: str, name: str) -> str:
    return f"/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
