"""The HTTP of a registry's clients inside of this process."""

from __future__ import annotations

from io import BytesIO

import requests
from google.auth.transport.requests import AuthorizedSession
from google.oauth2.credentials import Credentials
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3 import HTTPResponse

from vertex_training_cli.images.registry import RemoteImage, anonymous_session


class Network(BaseAdapter):
    """Answers by address, or by method and address, else 404; and what was asked how."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, str, str]] = []
        """Method, address and credentials."""
        self.sent: list[tuple[dict[str, str], bytes | None, dict[str, object]]] = []
        """Headers, body, and how the request is carried out."""
        self.waits: list[float] = []

    def send(self, request: requests.PreparedRequest, **options: object) -> requests.Response:  # type: ignore[override]
        method, url = str(request.method), str(request.url)
        self.asked.append((method, url, request.headers.get("Authorization") or ""))
        body = request.body
        if body is not None and not isinstance(body, bytes):
            body = b"".join(body)
        self.sent.append((dict(request.headers), body, options))
        found = self.answers.get(f"{method} {url}") or self.answers.get(url) or (404, {}, b"")
        status, headers, content = found
        raw = HTTPResponse(BytesIO(content), headers, status, preload_content=False)
        answer = HTTPAdapter().build_response(request, raw)
        answer.request = request
        return answer

    def close(self) -> None:
        pass

    def image(self, base: str, path: str, token: str) -> RemoteImage:
        """An image in the registry at ``base``, with credentials and without waiting."""

        def mounted(session: requests.Session) -> requests.Session:
            session.trust_env = False
            session.mount("https://", self)
            session.mount("http://", self)
            return session

        session = mounted(AuthorizedSession(Credentials(token)))
        return RemoteImage(
            base,
            path,
            session,
            anonymous=lambda: mounted(anonymous_session()),
            sleep=self.waits.append,
        )
