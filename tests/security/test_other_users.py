"""Tests that a process of another user of this machine can neither read, write nor run anything."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform_v1 as vertex
from google.cloud import storage
from google.cloud.aiplatform_v1.services.job_service.transports.grpc import JobServiceGrpcTransport
from google.longrunning import operations_pb2

from localgcp.runner.gcsfuse import storage_client
from localgcp.storage.proxy import StorageFront
from tests.security.other_user import needs_root, relay, send
from tests.unit.localcloud.conftest import PARENT, Cloud, command_job

pytestmark = needs_root
TEXT = "only processes of the user who started the local cloud may connect"


@pytest.fixture
def stranger(front: StorageFront) -> Iterator[storage.Client]:
    """Return Google's client, used by another user."""
    with relay(front.port) as port:
        options = ClientOptions(api_endpoint=f"http://127.0.0.1:{port}")
        host = {"Host": f"127.0.0.1:{front.port}"}  # as without the relay
        yield storage.Client(
            "local-x", AnonymousCredentials(), client_options=options, extra_headers=host
        )


STORAGE: dict[str, Callable[[storage.Client], Any]] = {
    "reads an object": lambda client: client.bucket("box").blob("inside").download_as_bytes(),
    "reads an object's metadata": lambda client: client.bucket("box").get_blob("inside"),
    "writes an object": lambda client: client.bucket("box").blob("evil").upload_from_string(b"e"),
    "writes a large object": lambda client: (
        client.bucket("box").blob("evil", chunk_size=1 << 18).upload_from_string(bytes(600_000))
    ),
    "writes over an object": lambda client: (
        client.bucket("box").blob("inside").upload_from_string(b"evil")
    ),
    "copies an object": lambda client: client.bucket("box").copy_blob(
        client.bucket("box").blob("inside"), client.bucket("box"), "evil"
    ),
    "deletes an object": lambda client: client.bucket("box").blob("inside").delete(),
    "lists a bucket": lambda client: list(client.bucket("box").list_blobs()),
    "lists buckets": lambda client: list(client.list_buckets()),
    "makes a bucket": lambda client: client.create_bucket("evil"),
    "deletes a bucket": lambda client: client.bucket("box").delete(),
}


@pytest.mark.parametrize("call", STORAGE.values(), ids=STORAGE)
def test_other_user_cannot_access_storage(
    front: StorageFront, box: storage.Bucket, stranger: storage.Client,
    call: Callable[[storage.Client], Any],
) -> None:  # fmt: skip
    with pytest.raises(exceptions.Forbidden, match=TEXT):
        call(stranger)
    own = storage_client(front.url)
    assert [each.name for each in own.list_buckets()] == ["box"]
    assert [each.name for each in box.list_blobs()] == ["inside"]
    assert box.blob("inside").download_as_bytes() == b"secret"


def test_refused_connection_stays_refused(front: StorageFront, box: storage.Bucket) -> None:
    with relay(front.port) as port, socket.create_connection(("127.0.0.1", port)) as connection:
        host = f"Host: 127.0.0.1:{front.port}\r\n"
        request = f"DELETE /storage/v1/b/box/o/inside HTTP/1.1\r\n{host}\r\n".encode()
        connection.sendall(request * 20)
        connection.settimeout(120)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert box.blob("inside").exists()


@pytest.mark.parametrize("manner", ["hang up", "reset", "half", "slowly"])
def test_other_user_closing_a_connection_writes_nothing(
    front: StorageFront, box: storage.Bucket, manner: str
) -> None:
    head = f"DELETE /storage/v1/b/box/o/inside HTTP/1.1\r\nHost: 127.0.0.1:{front.port}\r\n\r\n"
    for _ in range(10):
        send(front.port, head.encode(), "AF_INET", "", manner)
    time.sleep(0.5)  # what was wrongly let in would run now
    assert box.blob("inside").exists()


def job_client(port: int) -> vertex.JobServiceClient:
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    return vertex.JobServiceClient(transport=JobServiceGrpcTransport(channel=channel))


@pytest.fixture
def job(cloud: Cloud) -> str:
    """Return the name of a job of the owner."""
    return cloud.submit(command_job("sleep", "60")).name


JOBS: dict[str, Callable[[vertex.JobServiceClient, str], Any]] = {
    "submits a job": lambda client, _: client.create_custom_job(
        parent=PARENT, custom_job=command_job("true"), retry=None
    ),
    "reads a job": lambda client, name: client.get_custom_job(name=name, retry=None),
    "lists jobs": lambda client, _: list(client.list_custom_jobs(parent=PARENT, retry=None)),
    "cancels a job": lambda client, name: client.cancel_custom_job(name=name, retry=None),
    "deletes a job": lambda client, name: client.delete_custom_job(name=name, retry=None),
    "reads an operation": lambda client, name: client.get_operation(
        operations_pb2.GetOperationRequest(name=f"{name}/operations/1")
    ),
    "calls a method that is not there": lambda client, _: list(
        client.list_hyperparameter_tuning_jobs(parent=PARENT, retry=None)
    ),
}


@pytest.mark.parametrize("call", JOBS.values(), ids=JOBS)
def test_other_user_cannot_access_jobs(
    cloud: Cloud, job: str, call: Callable[[vertex.JobServiceClient, str], Any]
) -> None:
    with relay(cloud.port) as port, pytest.raises(exceptions.PermissionDenied, match=TEXT):
        call(job_client(port), job)
    assert [each.name for each in cloud.client.list_custom_jobs(parent=PARENT)] == [job]
    assert cloud.client.get_custom_job(name=job).state.name in (
        "JOB_STATE_QUEUED", "JOB_STATE_PENDING", "JOB_STATE_RUNNING",
    )  # fmt: skip


def test_other_user_cannot_read_job_logs(cloud: Cloud) -> None:
    with relay(cloud.port) as port, grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: Any = channel.unary_unary("/google.logging.v2.LoggingServiceV2/ListLogEntries")
        with pytest.raises(grpc.RpcError) as error:
            call(b"", timeout=60)
    assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED  # pyright: ignore


#: Metadata by which a caller might pass for another one.
CLAIMS: dict[str, Sequence[tuple[str, str]]] = {
    "says nothing": (),
    "has a token": (("authorization", "Bearer local"),),
    "is root": (("x-uid", "0"), ("authorization", "Basic cm9vdDo=")),
    "comes from elsewhere": (("x-forwarded-for", "127.0.0.1"), ("forwarded", "for=127.0.0.1")),
    "comes from a proxy": (("x-real-ip", "127.0.0.1"), ("via", "1.1 localhost")),
    "has an account": (("x-goog-authenticated-user-email", "admin@local-x"),),
    "names the project": (("x-goog-user-project", "local-training"),),
    "has routing": (("x-goog-request-params", f"parent={PARENT}"),),
    "has a user agent": (("user-agent", "pulumi/3"),),
    "has a key": (("x-goog-api-key", "AIza"),),
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_forged_metadata_gives_other_user_no_access(
    cloud: Cloud, claim: Sequence[tuple[str, str]]
) -> None:
    with relay(cloud.port) as port, pytest.raises(exceptions.PermissionDenied, match=TEXT):
        job_client(port).create_custom_job(
            parent=PARENT, custom_job=command_job("true"), retry=None, metadata=claim
        )
    assert not list(cloud.client.list_custom_jobs(parent=PARENT))


@contextmanager
def recorder(target: int) -> Iterator[tuple[int, bytearray]]:
    """Yield a port that leads to ``target``, and the bytes that the client sent there."""
    heard = bytearray()

    def copy(source: socket.socket, sink: socket.socket, record: bool) -> None:
        try:
            while data := source.recv(65536):
                if record:
                    heard.extend(data)
                sink.sendall(data)
        except OSError:
            return

    def accept() -> None:
        inward, _ = listener.accept()
        outward = socket.create_connection(("127.0.0.1", target))
        for source, sink, record in ((inward, outward, True), (outward, inward, False)):
            threading.Thread(target=copy, args=(source, sink, record), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1], heard


@pytest.fixture
def submission(cloud: Cloud) -> bytes:
    """Return the bytes of a client's job submission; the job is deleted again."""
    with recorder(cloud.port) as (port, heard):
        name = job_client(port).create_custom_job(
            parent=PARENT, custom_job=command_job("true"), retry=None
        ).name  # fmt: skip
    cloud.jobs.delete(name.rpartition("/")[2])
    return bytes(heard)


REPLAYS = [
    ("AF_INET", "", "wait"),
    ("AF_INET", "", "hang up"),
    ("AF_INET", "", "reset"),
    ("AF_INET", "", "half"),
    ("AF_INET", "", "slowly"),
    ("AF_INET", "127.0.0.2", "wait"),
    ("AF_INET", "127.1.2.3", "hang up"),
    ("AF_INET6", "", "wait"),
    ("AF_INET6", "", "hang up"),
    ("AF_INET6", "", "reset"),
    ("AF_INET6", "::ffff:127.0.0.2", "half"),
]


@pytest.mark.parametrize(("family", "source", "manner"), REPLAYS)
def test_submission_replayed_by_another_user_is_refused(
    cloud: Cloud, submission: bytes, family: str, source: str, manner: str
) -> None:
    for _ in range(5):
        send(cloud.port, submission, family, source, manner)
    time.sleep(0.5)  # what was wrongly let in would run now
    assert not list(cloud.client.list_custom_jobs(parent=PARENT))


def test_submission_replayed_by_the_same_user_creates_a_job(
    cloud: Cloud, submission: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", cloud.port)) as connection:
        connection.sendall(submission)
        connection.settimeout(120)
        while not list(cloud.client.list_custom_jobs(parent=PARENT)):
            assert connection.recv(65536)


def test_many_connections_of_another_user_do_not_block_the_owner(cloud: Cloud) -> None:
    with relay(cloud.port) as port:
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        assert not list(cloud.client.list_custom_jobs(parent=PARENT, timeout=60))
        for each in held:
            each.close()


def test_other_user_receives_a_refusal_over_http(front: StorageFront) -> None:
    with relay(front.port) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("PUT", "/box/evil", bytes(3 << 20), {"Host": f"127.0.0.1:{front.port}"})
        answer = connection.getresponse()
        assert answer.status == 403
        assert TEXT in answer.read().decode()


def test_other_user_cannot_submit_a_job_over_rest(cloud: Cloud) -> None:
    with relay(cloud.port) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        host = {"Host": f"127.0.0.1:{cloud.port}", "Content-Type": "application/json"}
        connection.request("POST", f"/v1/{PARENT}/customJobs", "{}", host)
        answer = connection.getresponse()
        assert answer.status == 403
        answer.read()
    assert not list(cloud.client.list_custom_jobs(parent=PARENT))
