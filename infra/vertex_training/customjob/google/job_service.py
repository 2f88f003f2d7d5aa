"""Calls Vertex AI, with retries and error messages.

Reads and cancels are retried, creates are not. Functions import the client when called: the import
takes a second.
"""

from __future__ import annotations

import functools
import json
import os
import re
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

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

from vertex_training.customjob.google import IMPERSONATION_VARIABLE, impersonated_credentials
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
else:
    AnyJob = Any  # vertex_api loads slowly

#: Variable with host:port of the local job service, used only for projects named ``local-…``.
EMULATOR: Final = "VERTEX_EMULATOR_HOST"
NO_CREDENTIALS: Final = (
    "Google Cloud credentials are missing. Sign in with `gcloud auth application-default login`, "
    "or use workload identity in CI."
)
CREATE_TIMEOUT: Final = 60.0
READ_TIMEOUT: Final = 20.0
READ_DEADLINE: Final = 60.0
#: Channel option against resending: by default gRPC resends requests that seem to be
#: unprocessed.
NO_RESEND: Final = ("grpc.enable_retries", 0)

#: gRPC code that proves that no job was created -> hint. Other codes prove nothing: after
#: UNAVAILABLE the request may have arrived (google.aip.dev/194, grpc/status codes).
PROVES_NOT_CREATED: Final = {
    "INVALID_ARGUMENT": "correct the job file",
    "PERMISSION_DENIED": "grant the permission; a new grant can take minutes to have effect",
    "UNAUTHENTICATED": "sign in: gcloud auth application-default login",
    "NOT_FOUND": "check that the project, the region and all resources of the job file exist",
    "FAILED_PRECONDITION": "fix the cause named above, then run the command again",
    "OUT_OF_RANGE": "correct the job file",
    "UNIMPLEMENTED": "use a service that supports these jobs",
    "RESOURCE_EXHAUSTED": "wait, or request more quota of aiplatform.googleapis.com",
}

#: Beginning of the error of a job that failed because no machines were available -> source. Other
#: errors, such as missing quota, are no proof.
PROVES_STOCK_OUT: Final = {
    "Resources are insufficient in region": "training/understanding-training-service; as observed, "
    "github.com/openreview/openreview-expertise/issues/401",
    "STOCKOUT": "training/use-spot-vms: a SPOT job that was preempted for the last time",
}
#: Optional gRPC code before a text of ``PROVES_STOCK_OUT``.
_CODE: Final = re.compile(r"[A-Z_]{3,40}: (?=\S)")

#: Hints for refused reads.
READ_HINTS: Final = {
    "PERMISSION_DENIED": "grant roles/aiplatform.viewer (for logs roles/logging.viewer) in the "
    "project, and enable the API",
    "UNAUTHENTICATED": "sign in: gcloud auth application-default login",
    "RefreshError": "sign in again: gcloud auth application-default login",
}

_connect_lock = threading.Lock()


def connect(project: str, region: str, kind: JobKind = CUSTOM_JOB, account: str = "") -> VertexJobs:
    """Return the job service of a project's region; see :func:`service_client`."""
    return VertexJobs(client(project, region, account), kind)


def client(project: str, region: str, account: str = "") -> vertex_api.JobServiceClient:
    """Return the official client for jobs; see :func:`service_client`."""
    from vertex_training.customjob.google import vertex_api

    types = vertex_api.JobServiceClient, vertex_api.JobServiceGrpcTransport
    return service_client(*types, project, region, account)


def local_address(project: str, variable: str = EMULATOR) -> str | None:
    """Return the address of the local cloud for ``local-…`` projects; None for other projects.

    ``variable`` contains the address. Raises OperatorError for a local project without a local
    cloud, or the reverse.
    """
    address = os.environ.get(variable, "")
    if is_local(project):
        if not address:
            raise OperatorError(
                f"project '{project}' is in the local cloud, and {variable} is not set. "
                "Run the command in `vt local shell`."
            )
        return address
    if address:
        # Without this, a forgotten `vt local shell` would receive the jobs of a real stack.
        raise OperatorError(
            f"{variable} is set, but project '{project}' is not a local project (local-…). "
            "Leave `vt local shell` to use Google Cloud."
        )
    return None


def service_client(
    client_type: Any,
    transport_type: Any,
    project: str,
    region: str = "",
    account: str = "",
    endpoint: str = "",
) -> Any:
    """Return an official client; for a ``local-…`` project, one that calls the local cloud.

    All threads share the client. It impersonates ``account``, never resends requests, and raises an
    error for endless lists. An empty ``endpoint`` means Vertex AI in the region.

    Raises:
        OperatorError: a local project without a local cloud, or no credentials.
    """
    host = endpoint or f"{region}-aiplatform.googleapis.com"
    accounts = account, os.environ.get(IMPERSONATION_VARIABLE, "")
    with _connect_lock:
        return _shared(client_type, transport_type, project, local_address(project), accounts, host)


@functools.lru_cache(maxsize=64)
def _shared(
    client_type: Any,
    transport_type: Any,
    _project: str,
    address: str | None,
    accounts: tuple[str, str],
    endpoint: str,
) -> Any:
    import grpc

    if address:
        channel = _with_lists_that_end(grpc.insecure_channel(address, options=[NO_RESEND]))
        return client_type(transport=transport_type(channel=channel))

    def transport(**arguments: Any) -> Any:
        def channel(host: str, **settings: Any) -> grpc.Channel:
            settings["options"] = [*settings.get("options", ()), NO_RESEND]
            return _with_lists_that_end(transport_type.create_channel(host, **settings))

        return transport_type(channel=channel, **arguments)

    credentials = impersonated_credentials(accounts[0])
    options = ClientOptions(api_endpoint=endpoint)
    try:
        return client_type(credentials=credentials, client_options=options, transport=transport)
    except DefaultCredentialsError:
        raise OperatorError(NO_CREDENTIALS) from None


def _with_lists_that_end(channel: grpc.Channel) -> grpc.Channel:
    """Return a channel that fails if a page names itself as next: Google's clients would loop."""
    import grpc

    class Pages(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(
            self, continuation: Callable[..., Any], client_call_details: Any, request: Any
        ) -> Any:
            call = continuation(client_call_details, request)
            token = getattr(request, "page_token", "")
            if token and call.exception() is None and call.result().next_page_token == token:
                method = client_call_details.method.rpartition("/")[2]
                raise OperatorError(f"the service returned the same page of {method} twice")
            return call

    return grpc.intercept_channel(channel, Pages())


class VertexJobs:
    """``ports.JobService`` with the official client, for jobs of one kind."""

    service: ClassVar = "Vertex AI"
    hints: ClassVar = READ_HINTS

    def __init__(self, client: Any, kind: JobKind = CUSTOM_JOB) -> None:
        self._client, self._kind = client, kind

    def _method(self, verb: str) -> Callable[..., Any]:
        return getattr(self._client, f"{verb}_{self._kind.argument}")

    def _read(self, call: Callable[..., Any], **arguments: Any) -> Any:
        return read(call, service=self.service, hints=self.hints, **arguments)

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:
        """Send the job once. Raises NotSubmittedError, or InDoubtError if a job may exist."""
        from vertex_training.customjob.google import vertex_api

        job_type, sent = getattr(vertex_api, self._kind.message), self._kind.sent_labels(labels)
        message: dict[str, Any] = {self._kind.argument: to_proto(job_type, json.loads(body), sent)}
        create = self._method("create")
        job = send_once(create, "the job", PROVES_NOT_CREATED, parent=parent, **message)
        if not job.name:
            raise InDoubtError("the response of Vertex AI has no job name")
        return snapshot(job, self._kind)

    def get(self, name: str) -> JobSnapshot | None:
        job = self.message(name)
        return None if job is None else self._snapshot(job)

    def message(self, name: str) -> Any:
        """Return the job in the service's form; None if its record was deleted."""
        return read_or_none(self._method("get"), name=name, service=self.service, hints=self.hints)

    def _snapshot(self, job: Any) -> JobSnapshot:
        return snapshot(job, self._kind)

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:
        """Return all jobs with the request id."""
        return self.labelled(parent, {REQUEST_ID_LABEL: request_id})

    def labelled(self, parent: str, labels: Mapping[str, str]) -> list[JobSnapshot]:
        """Return all jobs with these values of the program's labels."""
        terms = self._kind.sent_labels(labels).items()
        jobs = self.listed(parent, [f"labels.{key}={value}" for key, value in terms])
        return [self._snapshot(job) for job in jobs]

    def listed(self, parent: str, terms: list[str]) -> list[Any]:
        """Return all jobs that match a filter, in the service's form. Raises OperatorError."""
        request = {"parent": parent, "filter": " AND ".join(terms)}
        try:
            return self._read(self.list_jobs, request=request)
        except (NotFound, FailedPrecondition) as error:
            raise OperatorError(
                f"{self.service} cannot list jobs of {parent}: {self.describe(error)}"
            ) from None

    def list_jobs(self, **arguments: Any) -> list[Any]:
        """Return the jobs of all pages; a later page may fail as well."""
        return list(getattr(self._client, f"list_{self._kind.argument}s")(**arguments))

    def describe(self, error: Exception) -> str:
        return described(error)

    def log_ids(self, name: str) -> list[str]:
        """Return the ids of the logs with the reason for a failure of the job or a trial."""
        if self._kind is CUSTOM_JOB:
            return [name.rpartition("/")[2]]
        trials = self._read(self._method("get"), name=name).trials
        failed = [trial.custom_job for trial in trials if enum_name(trial.state) == "INFEASIBLE"]
        return [job.rpartition("/")[2] for job in failed if job][-1:]

    def cancel(self, name: str) -> None:
        try:
            self._read(self._method("cancel"), name=name)
        except (FailedPrecondition, NotFound):
            return  # the job has ended, or was deleted

    def delete(self, name: str) -> None:
        try:
            operation = self._read(self._method("delete"), name=name)
            operation.result(timeout=READ_DEADLINE)
        except NotFound:
            return
        except (GoogleAPICallError, RetryError, GoogleAuthError, TimeoutError) as error:
            raise OperatorError(
                f"{self.service} did not confirm the deletion of {name}: {self.describe(error)}"
            ) from None


def send_once(
    call: Callable[..., Any],
    what: str,
    hints: Mapping[str, str],
    *,
    service: str = "Vertex AI",
    **arguments: Any,
) -> Any:
    """Make a call that must not be repeated. ``hints``: code that proves a refusal -> hint.

    Raises:
        NotSubmittedError: the service refused ``what``.
        InDoubtError: the service may have accepted ``what``.
    """
    try:
        return call(retry=None, timeout=CREATE_TIMEOUT, **arguments)
    except GoogleAPICallError as error:
        code = code_of(error)
        if code in hints:
            refused = PermissionDeniedError if code == "PERMISSION_DENIED" else NotSubmittedError
            raise refused(
                f"{service} refused {what}. Nothing was submitted. {described(error)} "
                f"Hint: {hints[code]}."
            ) from None
        raise InDoubtError(f"{service} may have accepted {what}: {described(error)}") from None
    except RetryError as repeated:  # ``call`` itself retried: any attempt may have arrived
        error = described(repeated.cause or repeated)
        raise InDoubtError(f"{service} may have accepted {what}: {error}") from None
    except GoogleAuthError as error:
        raise NotSubmittedError(
            f"credentials for {service} are missing. Nothing was submitted. {error}"
        ) from None


def retry_of_reads() -> Retry:
    """Return the retries of a call that is safe to repeat, also after a timeout."""

    def is_transient(error: Exception) -> bool:
        return if_transient_error(error) or isinstance(error, DeadlineExceeded)

    return Retry(predicate=is_transient, initial=0.2, maximum=5.0, timeout=READ_DEADLINE)


def read(
    call: Callable[..., Any],
    *,
    service: str = "Vertex AI",
    hints: Mapping[str, str] = READ_HINTS,
    **arguments: Any,
) -> Any:
    """Make a call that is safe to repeat, with limited retries.

    Raises:
        NotFound, FailedPrecondition: the errors of the client.
        OperatorError: any other failure, with a hint.
    """
    try:
        return call(**arguments, retry=retry_of_reads(), timeout=READ_TIMEOUT)
    except (NotFound, FailedPrecondition):
        raise
    except (GoogleAPICallError, RetryError, GoogleAuthError) as raised:
        error = getattr(raised, "cause", None) or raised  # RetryError has only the duration
        code, what = code_of(error), f"{call.__name__} of {service} failed"
        hint = f" Hint: {hints[code]}." if code in hints else ""
        raise OperatorError(f"{what}: {described(error)}{hint}") from None


def read_or_none(call: Callable[..., Any], doing: str = "", **arguments: Any) -> Any:
    """Make a call like :func:`read`; return None for a missing resource.

    Raises OperatorError with the text ``doing``, like ``read NAME``.
    """
    try:
        return read(call, **arguments)
    except NotFound:
        return None
    except FailedPrecondition as error:
        if not doing:
            raise
        raise OperatorError(f"Vertex AI cannot {doing}: {error.message}") from None


def to_proto(
    type_: Any, message: Mapping[str, Any], labels: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """Convert a message of REST to the client's type; add ``labels``. Raises NotSubmittedError."""
    result = type_()
    own = {"labels": {**message.get("labels", {}), **labels}} if labels else {}
    try:
        ParseDict({**message, **own}, type_.pb(result))
    except ParseError as error:
        raise NotSubmittedError(
            f"the request is not a valid {type_.__name__}. Nothing was submitted. {error}"
        ) from None
    return result


def operation_name(started: Any) -> str:
    """Return the name of a started long-running operation. Raises InDoubtError without a name."""
    if not started.operation.name:
        raise InDoubtError("the response of Vertex AI has no operation name")
    return started.operation.name


def snapshot(job: AnyJob, kind: JobKind) -> JobSnapshot:
    """Convert a job of Vertex AI into a ``JobSnapshot``."""
    message, labels = type(job).pb(job), own_labels(kind.labels_of(job.labels))
    state, turn = enum_name(job.state), labels.get(TURN_LABEL, "")
    spec: Any = getattr(job, "job_spec" if kind.spec == CUSTOM_JOB.spec else "trial_job_spec")
    return JobSnapshot(
        name=job.name,
        state=state,
        created=message.create_time.ToNanoseconds(),
        digest=labels.get(DIGEST_LABEL, ""),
        error=job.error.message if job.error else "",
        turn=int(turn) if turn.isascii() and turn.isdecimal() else 1,
        started=message.start_time.ToNanoseconds(),
        ended=message.end_time.ToNanoseconds(),
        output=spec.base_output_directory.output_uri_prefix,
        request_id=labels.get(REQUEST_ID_LABEL, ""),
        out_of_stock=state == "JOB_STATE_FAILED" and is_stock_out(job.error.message),
        accelerators=_accelerators(job) if kind is CUSTOM_JOB else (),
    )


def _accelerators(job: Any) -> tuple[tuple[str, int], ...]:
    """Return the name (as in logs and metrics) and the accelerator count of each replica."""
    return tuple(
        (f"workerpool{number}-{replica}", pool.machine_spec.accelerator_count)
        for number, pool in enumerate(job.job_spec.worker_pool_specs)
        if pool.machine_spec.accelerator_count
        for replica in range(pool.replica_count)
    )


def is_stock_out(error: str) -> bool:
    """Return whether the error of a failed job proves that no machines were available.

    >>> is_stock_out("Resources are insufficient in region: us-central1. Try a different region.")
    True
    >>> is_stock_out("RESOURCE_EXHAUSTED: The following quota metrics exceed quota limits: x")
    False
    """
    texts = (error, _CODE.sub("", error, count=1))
    return any(text.startswith(tuple(PROVES_STOCK_OUT)) for text in texts)


def enum_name(value: Any) -> str:
    """Return the name of an enum value; its number if unknown to the installed client."""
    return getattr(value, "name", str(value))


def described(error: Exception) -> str:
    """Return the gRPC code and the message of an error."""
    return f"{code_of(error)}: {getattr(error, 'message', error)}"


def code_of(error: Exception) -> str:
    """Return the gRPC code of an error, or the name of its class."""
    status = getattr(error, "grpc_status_code", None)
    return status.name if status is not None else type(error).__name__
