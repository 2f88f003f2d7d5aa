"""Values of secrets: jobs get what their accounts may read, and nobody else finds them."""

from __future__ import annotations

import http.client
import json
import sys
from pathlib import Path

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import secretmanager_v1 as secretmanager
from google.cloud.secretmanager_v1.services.secret_manager_service import transports

from localgcp.access.guests import Guest
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, Store, project_number
from localgcp.secretmanager import SecretService, add_version, read_version
from tests.unit.localcloud.conftest import PROJECT, TRAINER, Cloud, command_job, set_grant
from vertex_training.naming import is_local

NAME = f"projects/{PROJECT}/secrets/api-key-local"
LATEST = f"{NAME}/versions/latest"
VALUE = b"s3cr3t-4711"
#: By both transports of the official client, as a job's code calls it.
READ = """\
import os, sys, grpc
from google.auth.credentials import AnonymousCredentials
from google.cloud import secretmanager_v1 as s
from google.cloud.secretmanager_v1.services.secret_manager_service import transports
at = os.environ["CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"].rstrip("/")
rest = s.SecretManagerServiceClient(
    transport="rest", credentials=AnonymousCredentials(), client_options={"api_endpoint": at})
channel = grpc.insecure_channel(at.removeprefix("http://"))
plain = s.SecretManagerServiceClient(
    transport=transports.SecretManagerServiceGrpcTransport(channel=channel))
for client in (rest, plain):
    try:
        found = client.access_secret_version(name=sys.argv[1])
        print(found.name, len(found.payload.data), found.payload.data[:3])
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.fixture
def secret(cloud: Cloud) -> Cloud:
    """A cloud with a secret of one version."""
    assert is_local(PROJECT)
    cloud.store.put(SERVICE, f"{PROJECT}/secretmanager.googleapis.com", PROJECT, {}, {})
    cloud.store.put("gcp:secretmanager/secret:Secret", NAME, PROJECT, {}, {})
    add_version(cloud.home.secrets, PROJECT, "api-key-local", VALUE)
    return cloud


def client_of(cloud: Cloud) -> secretmanager.SecretManagerServiceClient:
    channel = grpc.insecure_channel(f"127.0.0.1:{cloud.port}")
    cloud.undo.append(channel.close)
    transport = transports.SecretManagerServiceGrpcTransport(channel=channel)
    return secretmanager.SecretManagerServiceClient(transport=transport)


def read_in_job(cloud: Cloud, **spec: str) -> list[str]:
    """What a job says that reads the secret over REST, then over gRPC."""
    job = cloud.run(command_job(sys.executable, "-c", READ, LATEST, **spec))
    return [
        line
        for line in cloud.log(job).splitlines()
        if line.startswith(("projects/", "Forbidden", "Perm"))
    ]


def test_a_job_whose_account_may_reads_its_secret_over_rest_and_grpc(secret: Cloud) -> None:
    secret.grant(NAME, "roles/secretmanager.secretAccessor")
    name = f"projects/{project_number(PROJECT)}/secrets/api-key-local/versions/1"
    assert read_in_job(secret, service_account=TRAINER) == [f"{name} 11 b's3c'"] * 2


@pytest.mark.parametrize("account", [TRAINER, ""])
def test_a_job_whose_account_may_not_is_refused_whatever_it_sends(
    secret: Cloud, account: str
) -> None:
    secret.grant(NAME, "roles/secretmanager.viewer")
    secret.grant(NAME, "roles/secretmanager.secretAccessor", "serviceAccount:other@x.iam")
    said = read_in_job(secret, **({"service_account": account} if account else {}))
    assert [line.split()[0] for line in said] == ["Forbidden", "PermissionDenied"]
    for line in said:
        assert f"'secretmanager.versions.access' denied for resource '{LATEST}'" in line


@pytest.mark.parametrize(
    ("on", "role", "may"),
    [
        (NAME, "roles/secretmanager.secretAccessor", True),
        (NAME, "roles/secretmanager.admin", True),
        (NAME, "roles/owner", True),
        (NAME, "roles/editor", False),
        (f"projects/{PROJECT}", "roles/secretmanager.secretAccessor", True),
        (f"projects/{PROJECT}", "roles/viewer", False),
        (f"{NAME}2", "roles/secretmanager.secretAccessor", False),
        ("projects/local-other", "roles/owner", False),
    ],
)
def test_an_account_reads_a_secret_by_a_role_on_it_or_on_its_project(
    home: Home, on: str, role: str, may: bool
) -> None:
    store = Store(home.database)
    set_grant(store, on, role, TRAINER)
    service = SecretService(home, store)
    assert service._may_access(Guest(TRAINER), PROJECT, "api-key-local") is may
    assert not service._may_access(Guest("other@x.iam"), PROJECT, "api-key-local")
    assert not service._may_access(Guest(""), PROJECT, "api-key-local")


def test_the_owners_programs_read_it_by_project_id_or_number_and_by_version(
    secret: Cloud,
) -> None:
    add_version(secret.home.secrets, PROJECT, "api-key-local", b"newer")
    client = client_of(secret)
    number = NAME.replace(PROJECT, project_number(PROJECT))
    for name, value in (
        (LATEST, b"newer"),
        (f"{number}/versions/latest", b"newer"),
        (f"{NAME}/versions/1", VALUE),
    ):
        found = client.access_secret_version(name=name)
        assert found.payload.data == value
        assert found.payload.data_crc32c


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        (f"{NAME}/versions/9", exceptions.NotFound, r"Secret Version \[.*/versions/9\] not found"),
        (f"projects/{PROJECT}/secrets/other/versions/latest", exceptions.NotFound, "not found or"),
        (f"{NAME}/versions/../../x", exceptions.InvalidArgument, "Invalid resource field"),
        (f"projects/{PROJECT}/secrets/../versions/1", exceptions.InvalidArgument, "Invalid"),
        (f"{NAME}/versions/1.part", exceptions.InvalidArgument, "Invalid resource field"),
        ("projects/local-other/secrets/x/versions/1", exceptions.PermissionDenied, "disabled"),
    ],
)
def test_what_is_not_there_is_refused_as_the_service_does(
    secret: Cloud, name: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        client_of(secret).access_secret_version(name=name)


def test_a_secret_that_was_deleted_has_no_value(secret: Cloud) -> None:
    secret.store.delete("gcp:secretmanager/secret:Secret", NAME)
    with pytest.raises(exceptions.NotFound):
        client_of(secret).access_secret_version(name=LATEST)


def test_plain_rest_answers_with_the_value_and_a_page_gets_nothing(secret: Cloud) -> None:
    answers = []
    for headers in ({}, {"Origin": "http://evil.example"}):
        connection = http.client.HTTPConnection("127.0.0.1", secret.port, timeout=60)
        connection.request("GET", f"/v1/{LATEST}:access", headers=headers)
        answer = connection.getresponse()
        answers.append((answer.status, json.loads(answer.read())))
        connection.close()
    assert answers[0][0] == 200
    assert answers[0][1]["payload"]["data"] == "czNjcjN0LTQ3MTE="
    assert answers[1][0] == 403
    assert "payload" not in answers[1][1]


def test_a_name_of_a_connection_cannot_be_invented(secret: Cloud) -> None:
    """Metadata that names no connection is no way around the caller's own."""
    with pytest.raises(exceptions.ServiceUnavailable):
        client_of(secret).access_secret_version(
            name=LATEST, metadata=[("vt-connection", "0" * 32)], retry=None, timeout=60
        )


def files_with(home: Home, value: bytes) -> set[Path]:
    return {
        path.relative_to(home.root)
        for path in home.root.rglob("*")
        if path.is_file() and value in path.read_bytes()
    }


def test_a_value_lies_in_one_file_for_its_owner_and_in_no_log(secret: Cloud) -> None:
    secret.grant(NAME, "roles/secretmanager.secretAccessor")
    assert len(read_in_job(secret, service_account=TRAINER)) == 2
    [found] = files_with(secret.home, VALUE)
    file = secret.home.root / found
    assert found == Path(f"secrets/{PROJECT}/api-key-local/1")
    assert file.stat().st_mode & 0o777 == 0o600
    assert secret.home.secrets.stat().st_mode & 0o077 == 0


def test_two_commands_at_once_make_two_versions(home: Home) -> None:
    import threading

    made: dict[int, bytes] = {}

    def add(value: bytes) -> None:
        made[add_version(home.secrets, "p", "s", value)] = value

    each = [str(n).encode() for n in range(100)]
    threads = [threading.Thread(target=add, args=(value,)) for value in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == list(range(1, 101))
    for number, value in made.items():
        assert read_version(home.secrets, "p", "s", str(number)) == (number, value)
