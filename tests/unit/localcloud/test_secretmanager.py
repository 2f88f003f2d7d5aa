"""Values of secrets: jobs get what their accounts may read, and nobody else finds them."""

from __future__ import annotations

import sys

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import secretmanager_v1 as secretmanager
from google.cloud.secretmanager_v1.services.secret_manager_service import transports

from localgcp.inventory.store import SERVICE, project_number
from localgcp.secretmanager import add_version
from tests.unit.localcloud.conftest import PROJECT, TRAINER, Cloud, command_job
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


def test_a_name_of_a_connection_cannot_be_invented(secret: Cloud) -> None:
    """Metadata that names no connection is no way around the caller's own."""
    with pytest.raises(exceptions.ServiceUnavailable):
        client_of(secret).access_secret_version(
            name=LATEST, metadata=[("vt-connection", "0" * 32)], retry=None, timeout=60
        )
