"""Who a submission acts as where the environment names another account."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.auth import impersonated_credentials as official

from vertex_training.customjob import google as clients
from vertex_training.customjob.google import (
    IMPERSONATION_VARIABLE,
    impersonated_credentials,
    intent_store,
    job_service,
)
from vertex_training.errors import OperatorError

DEPLOYER = "deployer@acme-ml-dev.iam.gserviceaccount.com"


class Tokens(http.server.BaseHTTPRequestHandler):
    """Answers as the token endpoint of OAuth and as ``generateAccessToken`` do."""

    refused = False
    asked: list[tuple[str, str]] = []  # noqa: RUF012 - filled by the tests

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        code, body = 200, {"access_token": "token-of-the-caller", "expires_in": 3600}
        if "generateAccessToken" in self.path:
            until = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
            body = {"accessToken": "token-of-the-deployer", "expireTime": until}
            if self.refused:
                code, body = 403, {"error": {"code": 403, "message": "denied"}}
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Tokens]]:
    """A caller with a key of its own, and endpoints on this machine."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tokens)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    user = {"type": "authorized_user", "client_id": "c", "client_secret": "s",
            "refresh_token": "r", "token_uri": f"{url}/token"}  # fmt: skip
    file = tmp_path / "caller.json"
    file.write_text(json.dumps(user))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    # Both steps are served here; the library has their addresses as constants.
    monkeypatch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{url}/token")
    made = official.Credentials.__init__

    def here(self: Any, caller: Any, account: str, scopes: list[str]) -> None:
        made(self, caller, account, scopes,
             iam_endpoint_override=f"{url}/{account}:generateAccessToken")  # fmt: skip

    monkeypatch.setattr(official.Credentials, "__init__", here)
    Tokens.refused, Tokens.asked = False, []
    clients._credentials.cache_clear()
    intent_store._client.cache_clear()
    yield Tokens
    clients._credentials.cache_clear()
    intent_store._client.cache_clear()
    server.shutdown()
    server.server_close()


def test_without_the_variable_every_client_has_its_own_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(IMPERSONATION_VARIABLE, raising=False)
    assert impersonated_credentials() is None


def test_jobs_of_a_component_are_submitted_as_the_account_of_its_provider(
    tokens: type[Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IMPERSONATION_VARIABLE, "other@acme-ml-dev.iam.gserviceaccount.com")
    service: Any = job_service.connect("acme-ml-dev", "us-central1", account=DEPLOYER)._client
    records: Any = intent_store.storage_client("acme-ml-dev", DEPLOYER)._credentials
    assert records.service_account_email == DEPLOYER
    assert service.transport._credentials is impersonated_credentials(DEPLOYER)
    asked = [path for path, _ in tokens.asked if "generateAccessToken" in path]
    assert len(asked) == 1
    assert DEPLOYER in asked[0]


def test_an_account_that_the_caller_may_not_act_as_is_named_before_anything_is_sent(
    tokens: type[Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(IMPERSONATION_VARIABLE, DEPLOYER)
    tokens.refused = True
    with pytest.raises(OperatorError) as refused:
        job_service.client("acme-ml-dev", "us-central1")
    assert str(refused.value) == (
        f"the caller cannot impersonate {DEPLOYER}, the value of "
        "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT: Unable to acquire impersonated credentials "
        "Hint: grant the caller "
        "roles/iam.serviceAccountTokenCreator on that account, or unset "
        "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT."
    )


@pytest.mark.parametrize("name", ["me@example.com", "x", "a@b.gserviceaccount.com/../x", " "])
def test_only_a_service_account_can_be_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(IMPERSONATION_VARIABLE, name)
    named = {
        "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": "",
        "impersonate_service_account of the gcp provider": name,
    }
    for source, account in named.items():
        with pytest.raises(OperatorError) as refused:
            impersonated_credentials(account)
        assert str(refused.value) == f"{source} must be the address of a service account"
