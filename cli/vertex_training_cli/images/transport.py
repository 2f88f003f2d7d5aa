"""HTTP requests to one registry. Only this registry gets credentials.

Redirects are followed over TLS, without credentials, and only for content with a verified digest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import requests
from google.auth.exceptions import GoogleAuthError

from vertex_training.errors import RegistryError

#: Maximum size of manifests, configurations and lists, in bytes.
MAX_DOCUMENT: Final = 4 * 1024 * 1024
#: Timeouts in seconds: of a connection, and between two parts of a response.
TIMEOUT: Final = (10, 60)
#: Pauses in seconds before a request is repeated, if the registry is busy or fails.
RETRY_AFTER: Final = (0.5, 2.0)
_BUSY: Final = (429, 500, 502, 503, 504)
_MOST_REDIRECTS: Final = 3
_CHUNK: Final = 64 * 1024
LOGIN: Final = "sign in with `gcloud auth application-default login`"


def anonymous_session() -> requests.Session:
    """Return a session without credentials."""
    session = requests.Session()
    session.auth = lambda request: request  # Without it, requests reads credentials from .netrc.
    return session


class Transport:
    """Sends requests to the registry at ``base``, such as ``https://us-central1-docker.pkg.dev``.

    Methods raise RegistryError if the registry refuses a request or cannot be reached.
    """

    def __init__(
        self,
        base: str,
        session: requests.Session,
        *,
        anonymous: Callable[[], requests.Session] = anonymous_session,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.base = base
        self.session = session
        self._anonymous = anonymous
        self._sleep = sleep

    def send(
        self, method: str, url: str, path: str, accepted: tuple[int, ...] = (), **options: Any
    ) -> requests.Response:
        """Send one request and return the response. Only reading requests are repeated."""
        answer = self._ask(method, url, options)
        if answer.is_redirect:
            raise RegistryError(f"{path}: the registry redirects {method} to another address.")
        return _accepted(answer, method, path, accepted)

    def content(self, url: str, path: str, **options: Any) -> requests.Response:
        """Return the response for content with a known digest, possibly after a redirect."""
        answer = self._ask("GET", url, {"stream": True, **options})
        for _ in range(_MOST_REDIRECTS):
            if not answer.is_redirect:
                return _accepted(answer, "GET", path, (404,))
            url = urljoin(url, answer.headers["Location"])
            if urlsplit(url).scheme != "https":
                break
            answer.close()
            answer = self._once(self._anonymous(), "GET", url, {"stream": True})
        raise RegistryError(
            f"{path}: the registry redirects GET to an address that is not allowed."
        )

    def exists(self, url: str, path: str) -> bool:
        """Return True if the response of ``url`` is content or a redirect."""
        answer = self._ask("HEAD", url, {})
        if answer.is_redirect:
            return True
        return _accepted(answer, "HEAD", path, (404,)).status_code != 404

    def own(self, url: str, path: str) -> str:
        """Return the full URL of an address from the registry; refuse another host."""
        absolute = urljoin(f"{self.base}/", url)
        target, here = urlsplit(absolute), urlsplit(self.base)
        if (target.scheme, target.netloc) != (here.scheme, here.netloc):
            raise RegistryError(f"{path}: the registry returned the address of another host.")
        return absolute

    def _ask(self, method: str, url: str, options: dict[str, Any]) -> requests.Response:
        reads = method in ("GET", "HEAD")
        answer = self._once(self.session, method, url, options)
        for seconds in RETRY_AFTER:
            if not reads or answer.status_code not in _BUSY:
                break
            answer.close()
            self._sleep(seconds)
            answer = self._once(self.session, method, url, options)
        return answer

    def _once(
        self, session: requests.Session, method: str, url: str, options: dict[str, Any]
    ) -> requests.Response:
        options = {"timeout": TIMEOUT, **options, "allow_redirects": False}
        try:
            return session.request(method, url, **options)
        except GoogleAuthError as failed:
            raise no_credentials(self.base, failed) from None
        except requests.RequestException as failed:
            raise RegistryError(f"cannot reach {self.base}: {line(failed)}.") from None


def read(answer: requests.Response, path: str) -> bytes:
    """Return the body of a response, up to the maximum size of a document."""
    body = bytearray()
    try:
        with answer:
            for chunk in answer.iter_content(_CHUNK):
                body += chunk
                if len(body) > MAX_DOCUMENT:
                    raise RegistryError(
                        f"{path}: the registry sent a document of more than {MAX_DOCUMENT:,} bytes."
                    )
    except requests.RequestException as failed:
        raise RegistryError(f"{path}: the answer was interrupted: {line(failed)}.") from None
    return bytes(body)


def no_credentials(base: str, failed: BaseException) -> RegistryError:
    """Return the error for missing Google credentials."""
    return RegistryError(f"no Google credentials for {base}: {line(failed)}.", LOGIN)


def line(text: object) -> str:
    """Return a message of another program on one line, with at most 200 characters."""
    return " ".join(str(text).split())[:200].rstrip(".")


def _accepted(
    answer: requests.Response, method: str, path: str, accepted: tuple[int, ...]
) -> requests.Response:
    if answer.ok or answer.status_code in accepted:
        return answer
    code = answer.status_code
    try:
        with answer:
            detail = "; ".join(str(e.get("message", "")) for e in answer.json()["errors"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError):
        detail = answer.reason or ""
    writes = method in ("POST", "PUT", "PATCH")
    role = "roles/artifactregistry.writer" if writes else "roles/artifactregistry.reader"
    hint = {
        401: LOGIN,
        403: f"you need {role} on the repository",
        404: "create the repository with `vt up` before the first build",
        429: "try again in a minute",
        507: "free space on the registry's disk",
    }.get(code, "")
    what = f"{path}: the registry answered {code} to {method}"
    raise RegistryError(f"{what}{f' ({line(detail)})' if detail else ''}.", hint, code)
