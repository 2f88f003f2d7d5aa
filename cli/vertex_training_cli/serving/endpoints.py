"""Command lines of ``vt endpoints``, and batches of rows for predictions."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Final

import typer
from google.api_core.exceptions import (
    GoogleAPICallError,
    RetryError,
    ServiceUnavailable,
    TooManyRequests,
)
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import GoogleAuthError
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.struct_pb2 import Value
from requests.exceptions import RequestException

from vertex_training import stack as declared_stacks
from vertex_training.errors import CommandError, OperatorError
from vertex_training.serving.declared import DeclaredEndpoint
from vertex_training.settings import reader
from vertex_training_cli.console import (
    console,
    json_document,
    json_text,
    plain,
    print_status,
    table,
)
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.command import TIME_IS_UP
from vertex_training_cli.jobs.service import declared_elsewhere
from vertex_training_cli.options import Format, FormatOption, SelectedStack, seconds
from vertex_training_cli.serving import service

#: Duration of retries after a response 429 or 503, in seconds.
PATIENCE: Final = 30.0
#: Timeouts of requests in seconds. Vertex AI's own timeouts are 60 seconds for shared public
#: endpoints and an hour for dedicated endpoints.
SHARED_SECONDS: Final = 60
DEDICATED_SECONDS: Final = 600
PAUSE: Final = 2.0

EndpointArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The endpoint's name in the stack file, or its id.")
]


def list_(stack: SelectedStack = None, format_: FormatOption = Format.TEXT) -> None:
    """List the stack's endpoints: traffic split, versions and reachability."""
    ref = service.connected(stack)
    runs = {
        version.name: f"run {version.run}"
        for version in service.ModelReader(ref).versions()
        if version.run
    }
    entries = [
        {
            "endpoint": key,
            "split": service.shares(endpoint, runs),
            "reach": service.reach(endpoint),
            "address": endpoint.dedicated_endpoint_dns,
            "id": endpoint.name.rpartition("/")[2],
            "name": endpoint.name,
        }
        for key, endpoint in service.Endpoints(ref).list().items()
    ]
    if format_ is Format.JSON:
        print(json_document(entries))
        return
    if not entries:
        hint = declared_elsewhere(ref, "endpoints", "vt endpoints list")
        print_status(f"no endpoints in stack {ref.stack}{hint}")
        return
    cells = [
        (
            entry["endpoint"],
            split_text(entry["split"]),
            entry["reach"],
            entry["address"],
            entry["id"],
        )
        for entry in entries
    ]
    console().print(table("ENDPOINT", "SPLIT", "REACH", "ADDRESS", "ID", rows=cells))


def wait(
    endpoint: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Names of endpoints in the stack file.")
    ],
    stack: SelectedStack = None,
    deadline: Annotated[str, typer.Option(help="Maximum time: 90s, 30m, 2h, 1d.")] = "30m",
) -> None:
    """Wait until endpoints serve the versions and the traffic split of the stack file.

    Example: `vt endpoints wait titanic --deadline 1h`.

    Exit code: 0 served, 124 after the deadline (the command prints the remaining differences).
    """
    limit, ref = seconds(deadline, "--deadline"), service.connected(stack)
    loaded, endpoints = declared_stacks.load(ref.root, ref.stack), service.Endpoints(ref)
    declared = {
        key: loaded.endpoints[reader.first_key(key, entry)]
        for key, entry in loaded.settings.endpoints.items()
    }
    if unknown := [key for key in endpoint if key not in declared]:
        hint = f"declared endpoints: {', '.join(declared)}." if declared else ""
        raise CommandError(f"stack {ref.stack} does not declare endpoint {unknown[0]!r}.", hint)
    ends, reported = time.monotonic() + limit, dict[str, list[str]]()
    while True:
        live = endpoints.list()
        pending = {key: texts for key in endpoint if (texts := _missing(declared[key], live))}
        for key, texts in pending.items():
            if reported.get(key) != texts:
                print_status(f"endpoint {key} {plain('; '.join(texts))}")
        reported = pending
        if not pending:
            return
        if time.monotonic() >= ends:
            print_status(f"deadline exceeded. Endpoints that are not ready: {', '.join(pending)}")
            raise typer.Exit(TIME_IS_UP)
        time.sleep(PAUSE)


def predict(
    endpoint: EndpointArgument,
    input_: Annotated[
        Path,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help="File with one JSON value per line. - reads stdin.",
        ),
    ],
    stack: SelectedStack = None,
) -> None:
    """Send rows to an endpoint and print one prediction per row as a line of JSON, in order.

    The command sends rows in batches. If the endpoint refuses a batch, the command ends, and the
    message names the batch's lines.

    Example: `vt endpoints predict titanic -i - < rows.jsonl`.
    """
    ref = service.connected(stack)
    target = service.Endpoints(ref).find(endpoint)
    is_dedicated = target.dedicated_endpoint_enabled
    most, send = DEDICATED_BYTES if is_dedicated else SHARED_BYTES, sender(ref, target)
    with nullcontext(sys.stdin.buffer) if str(input_) == "-" else input_.open("rb") as file:
        for batch in batches(file, most):
            for prediction in send(batch):
                print(json_text(prediction))


def sender(ref: StackRef, endpoint: Any) -> Callable[[Batch], list[Any]]:
    """Return the function that sends rows to an endpoint, and returns a prediction for each row."""
    if not endpoint.deployed_models:
        hint = "wait for a deployed version with `vt endpoints wait`."
        raise CommandError(f"endpoint {endpoint.display_name} has no deployed model.", hint)
    if service.reach(endpoint) == "private" and not ref.is_local:
        hint = "send requests to the endpoint's Private Service Connect address from its network."
        raise CommandError(f"endpoint {endpoint.display_name} is private.", hint)
    dns = endpoint.dedicated_endpoint_dns if endpoint.dedicated_endpoint_enabled else ""
    client = service.client(ref.project, ref.region, "prediction", dns)
    retry = Retry(if_exception_type(ServiceUnavailable, TooManyRequests), timeout=PATIENCE)
    timeout = DEDICATED_SECONDS if dns else SHARED_SECONDS

    def send(batch: Batch) -> list[Any]:
        try:
            instances = [ParseDict(value, Value()) for value in batch.values]
            response = client.predict(
                endpoint=endpoint.name, instances=instances, retry=retry, timeout=timeout
            )
        except (ParseError, ValueError) as error:
            raise CommandError(f"cannot send {batch}: {error}") from None
        except (GoogleAPICallError, RetryError, GoogleAuthError, RequestException) as error:
            text = getattr(error, "cause", None) or error
            raise OperatorError(
                f"the endpoint did not answer the request for {batch}: {text}"
            ) from None
        predictions = type(response).pb(response).predictions
        if len(predictions) != len(instances):
            raise OperatorError(
                f"the endpoint returned {len(predictions)} predictions for the "
                f"{len(instances)} rows of {batch}"
            )
        return [to_plain(prediction) for prediction in predictions]

    return send


def split_text(split: Mapping[str, int]) -> str:
    """Return a split as text: ``run 3: 90, run 4: 10``."""
    return ", ".join(f"{name}: {share}" for name, share in split.items()) or "no traffic"


def _missing(declared: DeclaredEndpoint, endpoints: Mapping[str, Any]) -> list[str]:
    live = endpoints.get(declared.key)
    if live is None or live.name.rpartition("/")[2] != declared.id:
        return ["does not exist yet"]
    runs = {deployment.id: f"run {run}" for run, deployment in declared.deployments.items()}
    ids = {model.id for model in live.deployed_models}
    missing = [f"does not serve {run} yet" for id_, run in runs.items() if id_ not in ids]
    wanted = {declared.deployments[run].id: share for run, share in declared.split.items() if share}
    split = {id_: int(share) for id_, share in live.traffic_split.items() if share}
    if not missing and split != wanted:
        now = {runs.get(id_, f"model {id_}"): share for id_, share in split.items()}
        missing.append(f"has the split {split_text(now)}")
    return missing


#: Maximum size of a request's rows in bytes. Requests may have 1.5 MB for a shared public endpoint
#: and 10 MB for a dedicated endpoint (predictions/choose-endpoint-type, read on 2026-08-22).
SHARED_BYTES: Final = 1_400_000
DEDICATED_BYTES: Final = 9_500_000
#: Maximum number of rows of a request, because a container may process rows one by one.
MOST_ROWS: Final = 256


@dataclass(frozen=True, slots=True)
class Batch:
    """Values of consecutive lines. ``line`` is the number of the first line."""

    line: int
    values: list[Any]

    def __str__(self) -> str:
        last = self.line + len(self.values) - 1
        return f"line {last}" if last == self.line else f"lines {self.line} to {last}"


def batches(file: IO[bytes], most_bytes: int) -> Iterator[Batch]:
    """Yield the rows of a file, one JSON value per line, in batches of at most ``most_bytes``."""
    batch, size, line = Batch(1, []), 0, 0
    while text := file.readline(most_bytes + 1):
        line += 1
        if len(text) > most_bytes:
            raise CommandError(
                f"line {line} is longer than {most_bytes:,} bytes, the limit of a request."
            )
        try:
            value = json.loads(text)
            # Python parses NaN, 1e999 and unpaired surrogates, but requests cannot contain these.
            length = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "unsupported value"
            raise CommandError(f"line {line} is not a valid JSON value: {reason}.") from None
        if batch.values and (len(batch.values) >= MOST_ROWS or size + length > most_bytes):
            yield batch
            batch, size = Batch(line, []), 0
        batch.values.append(value)
        size += length + 1
    if batch.values:
        yield batch


def to_plain(value: Value) -> Any:
    """Return a protobuf ``Value`` as plain data, with whole numbers as integers."""
    match value.WhichOneof("kind"):
        case "struct_value":
            return {key: to_plain(field) for key, field in value.struct_value.fields.items()}
        case "list_value":
            return [to_plain(item) for item in value.list_value.values]
        case "number_value" if value.number_value.is_integer() and abs(value.number_value) < 2**53:
            return int(value.number_value)
        case "number_value":
            return value.number_value
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None
