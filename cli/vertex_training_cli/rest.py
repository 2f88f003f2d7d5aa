"""Client for REST methods of Google, or of the local cloud, with the caller's credentials.

The constants are all methods that ``vt`` reads from. The local cloud serves the same paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlencode, urlsplit

import google.auth
from google.auth.exceptions import GoogleAuthError

from vertex_training.catalog import resource_types
from vertex_training.customjob.google import SCOPE, impersonated_credentials
from vertex_training.customjob.google.job_service import local_address
from vertex_training.errors import CommandError, ForbiddenReadError, OperatorError
from vertex_training_cli.engine.stacks import StackRef

TIMEOUT: Final = 30
#: Maximum number of pages of a list. A page has up to 500 items.
MAX_PAGES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Read:
    """A REST request that reads one document or a list."""

    form: str
    permission: str
    collection: str = "items"
    within: str = ""
    """Field with the items of one location, in an aggregated list."""

    def url(self, *names: str) -> str:
        """Return the URL of the request."""
        return self.form.format(*names)


_COMPUTE: Final = "https://compute.googleapis.com/compute/v1/"
_PROJECTS: Final = f"{_COMPUTE}projects/{{}}"
_REPOSITORIES: Final = "https://artifactregistry.googleapis.com/v1/{}"
_CONNECTIONS: Final = "https://servicenetworking.googleapis.com/v1/services/{0}/connections?{1}"
_USAGE: Final = "https://serviceusage.googleapis.com/"
_POLICIES: Final = "https://orgpolicy.googleapis.com/v2/projects/{}/policies/{}:getEffectivePolicy"

PROJECT: Final = Read(
    "https://cloudresourcemanager.googleapis.com/v3/projects/{}", "resourcemanager.projects.get"
)
BILLING: Final = Read(
    "https://cloudbilling.googleapis.com/v1/projects/{}/billingInfo", "resourcemanager.projects.get"
)
SERVICES: Final = Read(
    _USAGE + "v1/projects/{}/services?filter=state:ENABLED&pageSize=200",
    "serviceusage.services.list",
    "services",
)
QUOTA: Final = Read(_USAGE + "{}", "serviceusage.quotas.get")
ORGANIZATION_POLICY: Final = Read(_POLICIES, "orgpolicy.policy.get")
BUCKET: Final = Read("https://storage.googleapis.com/storage/v1/b/{}", "storage.buckets.get")
ACCOUNT: Final = Read("https://iam.googleapis.com/v1/{}", "iam.serviceAccounts.get")
REPOSITORY: Final = Read(_REPOSITORIES, "artifactregistry.repositories.get")
REPOSITORY_POLICY: Final = Read(
    f"{_REPOSITORIES}:getIamPolicy?options.requestedPolicyVersion=3",
    "artifactregistry.repositories.getIamPolicy",
)
SECRET: Final = Read("https://secretmanager.googleapis.com/v1/{}", "secretmanager.secrets.get")
SECRET_VERSION: Final = Read(f"{SECRET.form}/versions/latest", "secretmanager.versions.get")
KEY: Final = Read("https://cloudkms.googleapis.com/v1/{}", "cloudkms.cryptoKeys.get")
CHANNEL: Final = Read(
    "https://monitoring.googleapis.com/v3/{}", "monitoring.notificationChannels.get"
)
COMPUTE_PROJECT: Final = Read(_PROJECTS, "compute.projects.get")
COMPUTE_REGION: Final = Read(f"{_PROJECTS}/regions/{{}}", "compute.regions.get")
SHARED_VPC_HOST: Final = Read(f"{_PROJECTS}/getXpnHost", "compute.projects.get")
NETWORK: Final = Read(f"{_COMPUTE}{{}}", "compute.networks.get")
ATTACHMENT: Final = Read(f"{_COMPUTE}{{}}", "compute.networkAttachments.get")
RESERVATION: Final = Read(f"{_COMPUTE}{{}}", "compute.reservations.get")
FIREWALLS: Final = Read(f"{_PROJECTS}/global/firewalls", "compute.firewalls.list")
ADDRESSES: Final = Read(f"{_PROJECTS}/global/addresses", "compute.globalAddresses.list")
ROUTES: Final = Read(f"{_PROJECTS}/global/routes", "compute.routes.list")
SUBNETWORKS: Final = Read(
    f"{_PROJECTS}/aggregated/subnetworks", "compute.subnetworks.list", within="subnetworks"
)
CONNECTIONS: Final = Read(_CONNECTIONS, "servicenetworking.services.get", "connections")
ZONES: Final = Read(
    "https://dns.googleapis.com/dns/v1/projects/{}/managedZones",
    "dns.managedZones.list",
    "managedZones",
)


def policy_url(policy: str, method: Literal["getIamPolicy", "testIamPermissions"]) -> str:
    """Return the URL of an IAM method of a policy's resource; empty for an unknown policy."""
    addresses = resource_types.policy_addresses()
    base = next((base for form, base in addresses if form.fullmatch(policy)), "")
    if policy.startswith("b/"):
        ending = "/iam" if method == "getIamPolicy" else "/iam/testPermissions"
    else:
        ending = f"/{method}" if "/subnetworks/" in policy else f":{method}"
    return f"{base}{policy}{ending}" if base else ""


class RestClient:
    """Client for REST requests. ``session`` is a session of ``requests`` that adds credentials."""

    def __init__(self, session: Any, local: str | None = None) -> None:
        """``local`` is ``HOST:PORT`` of the local cloud, None for Google's services."""
        self._session, self._local = session, local

    def items(self, read: Read, *names: str) -> Iterator[dict[str, Any]]:
        """Yield all items of a list, page by page.

        Raises:
            ForbiddenReadError: the caller lacks the permission to list the items.
            CommandError: the list cannot be read.
        """
        url = read.url(*names)
        what = urlsplit(url).path
        yield from items(read, url, what, lambda page: self.call("GET", page, what))

    def call(
        self, method: str, url: str, what: str, *, missing_ok: bool = True, **more: Any
    ) -> dict[str, Any] | None:
        """Call a method that reads, and return its response; None for 404 with ``missing_ok``.

        Raises:
            ForbiddenReadError: the caller lacks a permission.
            CommandError: the service does not answer, or refuses the call for another reason.
        """
        import requests

        if self._local:
            parts = urlsplit(url)
            url = f"http://{self._local}{parts.path}" + (f"?{parts.query}" if parts.query else "")
        try:
            answer = self._session.request(method, url, timeout=TIMEOUT, **more)
        except (requests.RequestException, GoogleAuthError) as failed:
            raise CommandError(f"cannot reach {what}: {failed}") from None
        document = _document(answer)
        if answer.status_code == 404 and missing_ok:
            return None
        if not answer.ok:
            text = f"{what} cannot be read: {answer.status_code} {answer.reason}"
            reason = _message(document)
            error = ForbiddenReadError if answer.status_code == 403 else CommandError
            raise error(f"{text}: {reason}" if reason else text)
        if not isinstance(document, dict):
            raise CommandError(f"{what} cannot be read: the answer is not a JSON object.")
        return document


def pages(
    url: str, what: str, get: Callable[[str], dict[str, Any] | None]
) -> Iterator[dict[str, Any]]:
    """Yield the pages of the list ``what``. ``get`` returns the page at a URL."""
    page, read_pages = "", set[str]()
    while page not in read_pages and len(read_pages) < MAX_PAGES:
        read_pages.add(page)
        query = f"{'&' if '?' in url else '?'}{urlencode({'pageToken': page})}" if page else ""
        document = get(url + query)
        if document is None and page:
            raise CommandError(f"{what} cannot be read: a page of the list does not exist.")
        yield document or {}
        page = str((document or {}).get("nextPageToken") or "")
        if not page:
            return
    raise CommandError(f"{what} cannot be read: the list does not end.")


def items(
    read: Read, url: str, what: str, get: Callable[[str], dict[str, Any] | None]
) -> Iterator[dict[str, Any]]:
    """Yield the items of a list, of all locations if the list is aggregated. See ``pages``."""
    for document in pages(url, what, get):
        collection = document.get(read.collection) or ()
        if isinstance(collection, dict):
            for place in collection.values():
                yield from place.get(read.within, ())
        else:
            yield from collection


def connect(stack: StackRef) -> RestClient:
    """Return a client for the stack's cloud: Google's, or the local cloud for ``local-…``."""
    if stack.is_local:
        import requests

        stack.connect_clients()
        session = requests.Session()
        session.trust_env = False  # Use no proxy for this machine.
        return RestClient(session, local_address(stack.project))
    from google.auth.transport.requests import AuthorizedSession

    try:
        credentials = impersonated_credentials() or google.auth.default(scopes=[SCOPE])[0]
    except (GoogleAuthError, OperatorError) as failed:
        raise CommandError(f"no Google Cloud credentials: {failed}") from None
    return RestClient(AuthorizedSession(credentials))


def _document(answer: Any) -> Any:
    """Return the JSON object of an answer; None for other content, such as a proxy's page."""
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _message(document: Any) -> str:
    """Return the message of an error (google.aip.dev/193); empty for another format."""
    try:
        return str(document["error"]["message"])
    except (KeyError, TypeError):
        return ""
