"""Values of secrets: jobs get what their accounts may read, and nobody else finds them."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localgcp.inventory.store import SERVICE, project_number
from localgcp.reads.secretmanager import add_version
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


def test_concurrent_commands_add_a_version_each(tmp_path: Path) -> None:
    folder, values = tmp_path / "secrets", [b"%d" % number for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        added = [*pool.map(lambda value: add_version(folder, "p", "s", value), values)]
    assert sorted(added) == [*range(1, 17)]
    assert [(folder / "p" / "s" / str(each)).read_bytes() for each in added] == values
