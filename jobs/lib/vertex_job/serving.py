"""Prediction server for custom containers of Vertex AI.

GET of AIP_HEALTH_ROUTE answers 200; POST of AIP_PREDICT_ROUTE takes ``{"instances": [...]}`` and
answers ``{"predictions": [...]}``, both on AIP_HTTP_PORT:
https://docs.cloud.google.com/vertex-ai/docs/predictions/custom-container-requirements

It listens at VERTEX_JOB_HOST, everywhere without it, and asks nobody who they are: on a machine
that others reach, set it to 127.0.0.1, as the local cloud does.

Needs starlette and uvicorn, which the image installs.
"""

# These come with the serving image.
# pyright: reportMissingImports=false
from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from vertex_job.errors import VertexJobError
from vertex_job.stores import store_at

#: Rows of a refused request that its answer tells of.
_ROWS_TOLD: Final = 10


class Model(Protocol):
    """Base class of models."""

    def parse(self, instance: Any) -> Any:
        """Validate and convert one instance of a request. Raises ValueError for invalid input."""
        ...

    def predict(self, rows: list[Any]) -> Sequence[Any]:
        """Return a prediction for each parsed instance. Several threads may call this at once."""
        ...


def artifact(name: str, environ: Mapping[str, str] = os.environ) -> bytes:
    """Return a file of the model's artifacts, at AIP_STORAGE_URI.

    Raises StoreError.
    """
    return store_at(environ.get("AIP_STORAGE_URI", "").rstrip("/") or "model").read(name)


def serve(load: Callable[[], Model], environ: Mapping[str, str] = os.environ) -> int:
    """Load the model and serve until SIGTERM, completing requests in progress.

    Returns the exit code: 1 if the model cannot be loaded, which is told in a line.
    """
    import uvicorn

    try:
        model = load()
    except (VertexJobError, ValueError) as error:
        print(f"no model: {error}", file=sys.stderr)
        return 1
    port = int(environ.get("AIP_HTTP_PORT", "8080"))
    host = environ.get("VERTEX_JOB_HOST", "0.0.0.0")
    # Of every request, Vertex AI keeps a log itself.
    uvicorn.run(application(model, environ), host=host, port=port, access_log=False)
    return 0


def application(model: Model, environ: Mapping[str, str] = os.environ) -> Any:
    """Build the ASGI application."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def health(_: Request) -> JSONResponse:
        return JSONResponse({})

    async def answer(request: Request) -> JSONResponse:
        status, body = await run_in_threadpool(partial(respond, model, await request.body()))
        return JSONResponse(body, status)

    return Starlette(
        routes=[
            Route(environ.get("AIP_HEALTH_ROUTE", "/health"), health),
            Route(environ.get("AIP_PREDICT_ROUTE", "/predict"), answer, methods=["POST"]),
        ]
    )


def respond(model: Model, body: bytes) -> tuple[int, dict[str, Any]]:
    """Return status and body of the answer to a request's body.

    Raises:
        RuntimeError: the model did not return a prediction for each instance.
    """
    try:
        content = json.loads(body)
    except ValueError as error:
        return 400, {"error": f"not JSON: {error}"}
    instances = content.get("instances") if isinstance(content, dict) else None
    if not isinstance(instances, list):
        return 400, {"error": 'not {"instances": [...]}'}
    rows, mistakes = list[Any](), list[str]()
    for number, instance in enumerate(instances, start=1):
        try:
            rows.append(model.parse(instance))
        except ValueError as error:
            mistakes.append(f"row {number}: {error}")
    if mistakes:
        more = len(mistakes) - _ROWS_TOLD
        shown = mistakes[:_ROWS_TOLD] + ([f"{more} more rows"] if more > 0 else [])
        return 400, {"error": "; ".join(shown)}
    predictions = list(model.predict(rows)) if rows else []
    if len(predictions) != len(rows):
        raise RuntimeError(
            f"predict() returned {len(predictions)} predictions for {len(rows)} instances"
        )
    return 200, {"predictions": predictions}
