"""Values of secrets, and the method ``AccessSecretVersion``, for which a job needs a role."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import ClassVar, Final

import google_crc32c
import grpc
from google.cloud.secretmanager_v1 import types

from localgcp.access import gate
from localgcp.access.callers import Guest
from localgcp.apis.client import Api
from localgcp.errors import ApiError
from localgcp.home import Home
from localgcp.inventory import resource_paths
from localgcp.inventory.store import Store, project_number

API: Final = "secretmanager.googleapis.com"
_NAME: Final = re.compile(r"projects/([^/]+)/secrets/([a-zA-Z0-9_-]{1,255})/versions/([^/]+)")
#: Roles that contain secretmanager.versions.access.
SECRET_READERS: Final = frozenset(
    {"roles/secretmanager.secretAccessor", "roles/secretmanager.admin", "roles/owner"}
)
_CODE: Final = grpc.StatusCode


class SecretService:
    """Serves ``AccessSecretVersion`` of ``google.cloud.secretmanager.v1.SecretManagerService``."""

    api: ClassVar = Api("google.cloud.secretmanager_v1", "secret_manager_service")

    def __init__(self, home: Home, store: Store) -> None:
        self.home, self.store = home, store

    def access_secret_version(
        self, request: types.AccessSecretVersionRequest, context: grpc.ServicerContext
    ) -> types.AccessSecretVersionResponse:
        """Return the value of a secret's version. Raises ApiError."""
        guest = gate.guest_behind(context)
        match = _NAME.fullmatch(request.name)
        if not match or not re.fullmatch(r"latest|[1-9][0-9]{0,8}", match[3]):
            text = f"Invalid resource field value in the request: {request.name[:300]}"
            raise ApiError(_CODE.INVALID_ARGUMENT, text)
        project, secret, version = match.groups()
        project = resource_paths.project_id(self.store, project) or project
        if not self.store.service_enabled(project, API):
            text = f"Secret Manager API has not been used in project {match[1]} before or it is"
            raise ApiError(_CODE.PERMISSION_DENIED, f"{text} disabled.")
        if guest is not None and not self._may_access(guest, project, secret):
            text = "Permission 'secretmanager.versions.access' denied for resource"
            text = f"{text} '{request.name}' (or it may not exist)."
            who = f" The job runs as {guest.account}." if guest.account else ""
            raise ApiError(_CODE.PERMISSION_DENIED, text + who)
        name = f"projects/{project_number(project)}/secrets/{secret}"
        resource = find_version(self.store, self.home.secrets, project, secret, version)
        if resource is None:
            text = f"Secret [{name}] not found or has no versions."
            if version != LATEST:
                text = f"Secret Version [{name}/versions/{version}] not found."
            hint = f"Set a value for the secret: vt local secret set {secret}"
            raise ApiError(_CODE.NOT_FOUND, f"{text} {hint}")
        number, value = resource
        return types.AccessSecretVersionResponse(
            name=f"{name}/versions/{number}",
            payload=types.SecretPayload(data=value, data_crc32c=google_crc32c.value(value)),
        )

    def _may_access(self, guest: Guest, project: str, secret: str) -> bool:
        places = (f"projects/{project}/secrets/{secret}", f"projects/{project}")
        member = f"serviceAccount:{guest.account}"
        return any(SECRET_READERS & self.store.roles(place, member) for place in places)


#: Maximum bytes of a secret (https://docs.cloud.google.com/secret-manager/quotas).
MAX_BYTES: Final = 65_536
LATEST: Final = "latest"


def add_version(folder: Path, project: str, secret: str, value: bytes) -> int:
    """Store a value as the secret's next version and return its number. Raises OSError."""
    place = folder / project / secret
    for place_ in (folder, place.parent, place):
        place_.mkdir(0o700, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place, prefix=".value-") as part:  # with mode 0600
        part.write(value)
        part.flush()
        number = max(versions(folder, project, secret), default=0) + 1
        while True:
            try:
                os.link(part.name, place / str(number))
                return number
            except FileExistsError:
                number += 1


def versions(folder: Path, project: str, secret: str) -> list[int]:
    """Return the numbers of the secret's versions, in order."""
    place = folder / project / secret
    names = [file.name for file in place.iterdir()] if place.is_dir() else []
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


def find_version(
    store: Store, folder: Path, project: str, secret: str, version: str
) -> tuple[int, bytes] | None:
    """Return number and value of a version (a number or ``latest``) of an existing secret."""
    if store.get("gcp:secretmanager/secret:Secret", f"projects/{project}/secrets/{secret}") is None:
        return None
    numbers = versions(folder, project, secret)
    chosen = numbers[-1:] if version == LATEST else [n for n in numbers if str(n) == version]
    if not chosen:
        return None
    return chosen[0], (folder / project / secret / str(chosen[0])).read_bytes()
