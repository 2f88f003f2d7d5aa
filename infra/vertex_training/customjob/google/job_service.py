"""The Vertex AI calls, their retries and error messages.

Reads and cancels are retried; a create never is. Functions import the client when called: that
takes a second, and most operations on a stack submit nothing.
"""

from __future__ import annotations

import functools
import json
import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import (
    DeadlineExceeded,
    FailedPrecondition,
    GoogleAPICallError,
    NotFound,
    RetryError,
)
from google.api_core.retry import Retry, if_transient_error
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
from google.protobuf.json_format import ParseDict, ParseError

from vertex_training.customjob.google.impersonation import impersonated_credentials
from vertex_training.customjob.kinds import CUSTOM_JOB, JobKind
from vertex_training.customjob.protocol.ports import (
    DIGEST_LABEL,
    REQUEST_ID_LABEL,
    TURN_LABEL,
    JobSnapshot,
    own_labels,
)
from vertex_training.errors import (
    InDoubtError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
)
from vertex_training.naming import is_local

if TYPE_CHECKING:
    import grpc

    from vertex_training.customjob.google import vertex_api

    AnyJob = vertex_api.CustomJob | vertex_api.HyperparameterTuningJob

#: Variable with host:port of the local job service. Only projects named ``local-…`` use it.
EMULATOR: Final = "VERTEX_EMULATOR_HOST"
NO_CREDENTIALS: Final = (
    "no Google Cloud credentials. Sign in with `gcloud auth application-default login`, "
    "or let CI use workload identity."
)
CREATE_TIMEOUT: Final = 60.0
READ_TIMEOUT: Final = 20.0
READ_DEADLINE: Final = 60.0
#: Channel option. By default gRPC resends a request that it assumes was never processed.
NO_RESEND: Final = ("grpc.enable_retries", 0)

#: gRPC codes that prove that no job was created, with hints. Any other code leaves doubt: after
#: UNAVAILABLE the request may have arrived (google.aip.dev/194, grpc/status codes).
PROVES_NOT_CREATED: Final = {
    "INVALID_ARGUMENT": "correct the job file",
    "PERMISSION_DENIED": "grant what is missing; a new grant can take some minutes to have effect",
    "UNAUTHENTICATED": "sign in: gcloud auth application-default login",
    "NOT_FOUND": "check project, region and the resources the job names",
    "FAILED_PRECONDITION": "do what the message says, then run again",
    "OUT_OF_RANGE": "correct the job file",
    "UNIMPLEMENTED": "the service at this address does not offer such jobs",
    "RESOURCE_EXHAUSTED": "wait, or ask for more quota of aiplatform.googleapis.com",
}

#: How the error of a job begins that failed because there were no machines for it -> where that is
#: from. All else, a lack of quota above all, is no proof of it.
PROVES_STOCK_OUT: Final = {
    "Resources are insufficient in region": "training/understanding-training-service; as observed, "
    "github.com/openreview/openreview-expertise/issues/401",
    "STOCKOUT": "training/use-spot-vms: a SPOT job that was preempted for the last time",
}
#: What stands before that, if anything: a gRPC code.
_CODE: Final = re.compile(r"[A-Z_]{3,40}: (?=\S)")

#: Hints for refused calls that change nothing.
READ_HINTS: Final = {
    "PERMISSION_DENIED": "reading jobs takes roles/aiplatform.viewer in the project, "
    "reading their logs roles/logging.viewer; the API must be enabled",
    "UNAUTHENTICATED": "sign in: gcloud auth application-default login",
    "RefreshError": "sign in again: gcloud auth application-default login",
}

_connect_lock = threading.Lock()


def connect(project: str, region: str, kind: JobKind = CUSTOM_JOB, account: str = "") -> VertexJobs:
    """The job service of a project's region, shared by all threads; see ``client``.

    A client for each submission would open a connection and request a token each time.
    """
    with _connect_lock:
        return _connected(project, region, kind, account, local_address(project))


@functools.lru_cache(maxsize=32)
def _connected(
    project: str, region: str, kind: JobKind, account: str, address: str | None
) -> VertexJobs:
    return VertexJobs(_client_of(project, region, account, address), kind)


@functools.lru_cache(maxsize=16)
def _client_of(
    project: str, region: str, account: str, _address: str | None
) -> vertex_api.JobServiceClient:
    return client(project, region, account)


def local_address(project: str, variable: str = EMULATOR) -> str | None:
    """Return the address of the local cloud that serves this project; None for Google's projects.

    ``variable`` has the address of one of its services.

    Raises:
        OperatorError: a local project without a local cloud, or the other way round.
    """
    address = os.environ.get(variable, "")
    if is_local(project):
        if not address:
            raise OperatorError(
                f"project '{project}' lives in the local cloud, and {variable} is not set. "
                "Run this in `vt local shell`."
            )
        return address
    if address:
        # Without this, a forgotten `vt local shell` would receive the jobs of a real stack.
        raise OperatorError(
            f"{variable} is set, but project '{project}' is no local one (local-…). "
            "Leave `vt local shell` to reach Google Cloud."
        )
    return None


def client(project: str, region: str, account: str = "") -> vertex_api.JobServiceClient:
    """The official client of jobs; see :func:`service_client`."""
    from vertex_training.customjob.google import vertex_api

    return service_client(
        vertex_api.JobServiceClient, vertex_api.JobServiceGrpcTransport, project, region, account
    )


def service_client(
    client_type: Callable[..., Any],
    transport_type: Any,
    project: str,
    region: str = "",
    account: str = "",
    endpoint: str = "",
) -> Any:
    """An official client: of Google's service, or of the local cloud's for ``local-…``.

    Raises:
        OperatorError: a local project without a local cloud, or no credentials.

    Acts as ``account``, or as the one that ``impersonation`` names, if there is one. Its channel
    sends nothing twice, and its lists end. ``endpoint`` is the region's of Vertex AI if empty.
    """
    import grpc

    if address := local_address(project):
        channel = _with_lists_that_end(grpc.insecure_channel(address, options=[NO_RESEND]))
        return client_type(transport=transport_type(channel=channel))

    def transport(**arguments: Any) -> Any:
        def channel(host: str, **settings: Any) -> grpc.Channel:
            settings["options"] = [*settings.get("options", ()), NO_RESEND]
            return _with_lists_that_end(transport_type.create_channel(host, **settings))

        return transport_type(channel=channel, **arguments)

    credentials = impersonated_credentials(account)
    options = ClientOptions(api_endpoint=endpoint or f"{region}-aiplatform.googleapis.com")
    try:
        return client_type(credentials=credentials, client_options=options, transport=transport)
    except DefaultCredentialsError:
        raise OperatorError(NO_CREDENTIALS) from None


def _with_lists_that_end(channel: grpc.Channel) -> grpc.Channel:
    """A page that names itself as the next one raises OperatorError: clients would never stop."""
    import grpc

    class Pages(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(
            self, continuation: Callable[..., Any], client_call_details: Any, request: Any
        ) -> Any:
            call = continuation(client_call_details, request)
            asked = getattr(request, "page_token", "")
            if asked and call.exception() is None and call.result().next_page_token == asked:
                method = client_call_details.method.rpartition("/")[2]
                raise OperatorError(f"{method} of the service has no end: a page is its own next")
            return call

    return grpc.intercept_channel(channel, Pages())


class VertexJobs:
    """``ports.JobService`` over the official client, for jobs of one kind."""

    def __init__(self, client: vertex_api.JobServiceClient, kind: JobKind = CUSTOM_JOB) -> None:
        self._client, self._kind = client, kind

    def _method(self, verb: str) -> Callable[..., Any]:
        """The client's method, like ``create_custom_job``."""
        plural = "s" if verb == "list" else ""
        return getattr(self._client, f"{verb}_{self._kind.argument}{plural}")

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:
        """Send once.

        Raises:
            NotSubmittedError: the service refused; no job was created.
            InDoubtError: there was no certain answer.
        """
        message: dict[str, Any] = {self._kind.argument: _to_proto(body, labels, self._kind)}
        create = self._method("create")
        job = send_once(create, "the job", PROVES_NOT_CREATED, parent=parent, **message)
        if not job.name:
            raise InDoubtError("Vertex AI answered without a job's name")
        return snapshot(job, self._kind)

    def get(self, name: str) -> JobSnapshot | None:
        """The job, or None if its record is gone."""
        try:
            return snapshot(read(self._method("get"), name=name), self._kind)
        except NotFound:
            return None

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:
        """All jobs labelled with the request id."""
        return self.labelled(parent, {REQUEST_ID_LABEL: request_id})

    def labelled(self, parent: str, labels: Mapping[str, str]) -> list[JobSnapshot]:
        """All jobs with these labels of the program."""

        def list_jobs(**arguments: Any) -> list[AnyJob]:
            return list(self._method("list")(**arguments))  # reading a later page may fail as well

        wanted = self._kind.sent_labels(labels).items()
        wanted_labels = " AND ".join(f"labels.{key}={value}" for key, value in wanted)
        request = {"parent": parent, "filter": wanted_labels}
        try:
            return [snapshot(job, self._kind) for job in read(list_jobs, request=request)]
        except (NotFound, FailedPrecondition) as error:
            raise OperatorError(
                f"Vertex AI did not list jobs of {parent}: {code_of(error)}: {error.message}"
            ) from None

    def log_ids(self, name: str) -> list[str]:
        """Ids of the logs that say why the job failed: its own, or that of a failed trial."""
        if self._kind is CUSTOM_JOB:
            return [name.rpartition("/")[2]]
        trials = read(self._method("get"), name=name).trials
        failed = [trial.custom_job for trial in trials if enum_name(trial.state) == "INFEASIBLE"]
        return [each.rpartition("/")[2] for each in failed if each][-1:]

    def cancel(self, name: str) -> None:
        """Request cancellation. Ignores a job that has ended or does not exist."""
        try:
            read(self._method("cancel"), name=name)
        except (FailedPrecondition, NotFound):
            return  # it has ended, or was deleted

    def delete(self, name: str) -> None:
        """Delete the record and wait until it is gone. Raises OperatorError."""
        try:
            operation = read(self._method("delete"), name=name)
            operation.result(timeout=READ_DEADLINE)
        except NotFound:
            return
        except (GoogleAPICallError, RetryError, GoogleAuthError, TimeoutError) as error:
            raise OperatorError(
                f"Vertex AI did not confirm that {name} was deleted: {code_of(error)}: "
                f"{getattr(error, 'message', error)}"
            ) from None


def send_once(
    call: Callable[..., Any],
    what: str,
    hints: Mapping[str, str],
    *,
    service: str = "Vertex AI",
    **arguments: Any,
) -> Any:
    """Make a call that is not safe to repeat, once. ``hints``: by code that proves a refusal.

    Raises:
        NotSubmittedError: the service refused ``what``; nothing came of it.
        InDoubtError: there was no certain answer.
    """
    try:
        return call(retry=None, timeout=CREATE_TIMEOUT, **arguments)
    except GoogleAPICallError as error:
        code = code_of(error)
        if code in hints:
            refused = PermissionDeniedError if code == "PERMISSION_DENIED" else NotSubmittedError
            raise refused(
                f"{service} refused {what}, nothing was submitted: {code}: {error.message} "
                f"Hint: {hints[code]}."
            ) from None
        raise InDoubtError(f"no certain answer from {service}: {code}: {error.message}") from None
    except RetryError as repeated:  # by ``call`` itself: any attempt of it may have arrived
        error = repeated.cause or repeated
        raise InDoubtError(
            f"no certain answer from {service}: {code_of(error)}: "
            f"{getattr(error, 'message', error)}"
        ) from None
    except GoogleAuthError as error:
        raise NotSubmittedError(
            f"no credentials for {service}, nothing was sent: {error}"
        ) from None


def read(
    call: Callable[..., Any],
    *,
    service: str = "Vertex AI",
    hints: Mapping[str, str] = READ_HINTS,
    **arguments: Any,
) -> Any:
    """Make a call that is safe to repeat, with bounded retries.

    Raises:
        NotFound, FailedPrecondition: as the client raised them.
        OperatorError: any other failure, as a message with a hint.
    """

    def is_transient(error: Exception) -> bool:  # a call that timed out is safe to repeat
        return if_transient_error(error) or isinstance(error, DeadlineExceeded)

    retry = Retry(predicate=is_transient, initial=0.2, maximum=5.0, timeout=READ_DEADLINE)
    try:
        return call(**arguments, retry=retry, timeout=READ_TIMEOUT)
    except (NotFound, FailedPrecondition):
        raise
    except (GoogleAPICallError, RetryError, GoogleAuthError) as raised:
        error = getattr(raised, "cause", None) or raised  # RetryError itself has only the duration
        code = code_of(error)
        hint = f" Hint: {hints[code]}." if code in hints else ""
        raise OperatorError(
            f"{service} did not answer {call.__name__}: {code}: "
            f"{getattr(error, 'message', error)}{hint}"
        ) from None


def _to_proto(body: str, labels: Mapping[str, str], kind: JobKind) -> AnyJob:
    from vertex_training.customjob.google import vertex_api

    message = json.loads(body)
    message["labels"] = {**message.get("labels", {}), **kind.sent_labels(labels)}
    job = getattr(vertex_api, kind.message)()
    try:
        ParseDict(message, type(job).pb(job))
    except ParseError as error:
        raise NotSubmittedError(
            f"the request is no {kind.message}, nothing was sent: {error}"
        ) from None
    return job


def snapshot(job: AnyJob, kind: JobKind) -> JobSnapshot:
    """A job as the protocol reads it."""
    message, labels = type(job).pb(job), own_labels(kind.labels_of(job.labels))
    state = enum_name(job.state)
    return JobSnapshot(
        name=job.name,
        state=state,
        created=message.create_time.ToNanoseconds(),
        digest=labels.get(DIGEST_LABEL, ""),
        error=job.error.message if job.error else "",
        turn=_turn(labels.get(TURN_LABEL, "")),
        started=message.start_time.ToNanoseconds(),
        ended=message.end_time.ToNanoseconds(),
        output=_spec(job, kind).base_output_directory.output_uri_prefix,
        request_id=labels.get(REQUEST_ID_LABEL, ""),
        out_of_stock=state == "JOB_STATE_FAILED" and is_stock_out(job.error.message),
        accelerators=_accelerators(job) if kind is CUSTOM_JOB else (),
    )


def _accelerators(job: Any) -> tuple[tuple[str, int], ...]:
    """Replicas as logs and metrics name them, and how many accelerators each has."""
    return tuple(
        (f"workerpool{number}-{replica}", pool.machine_spec.accelerator_count)
        for number, pool in enumerate(job.job_spec.worker_pool_specs)
        if pool.machine_spec.accelerator_count
        for replica in range(pool.replica_count)
    )


def is_stock_out(error: str) -> bool:
    """Return whether the error of a failed job proves that the service had no machines for it.

    >>> is_stock_out("Resources are insufficient in region: us-central1. Try a different region.")
    True
    >>> is_stock_out("RESOURCE_EXHAUSTED: The following quota metrics exceed quota limits: x")
    False
    """
    texts = (error, _CODE.sub("", error, count=1))
    return any(text.startswith(tuple(PROVES_STOCK_OUT)) for text in texts)


def _spec(job: AnyJob, kind: JobKind) -> Any:
    """The CustomJobSpec of a job, or of each trial of a tuning job."""
    return job.job_spec if kind.spec == CUSTOM_JOB.spec else job.trial_job_spec


def _turn(label: str) -> int:
    """The number of a job's turn; without one it is the first."""
    return int(label) if label.isascii() and label.isdecimal() else 1


def enum_name(value: Any) -> str:
    """The name of an enum's value; the number of one that is newer than the installed client."""
    return getattr(value, "name", str(value))


def code_of(error: Exception) -> str:
    """The gRPC code of an error, or the name of its class."""
    status = getattr(error, "grpc_status_code", None)
    return status.name if status is not None else type(error).__name__
