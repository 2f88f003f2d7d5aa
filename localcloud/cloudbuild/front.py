"""Cloud Build on gRPC: generic handlers, because the library brings client stubs only."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import grpc
from google.cloud.devtools import cloudbuild_v1
from google.longrunning import operations_pb2

from localcloud.cloudbuild.service import BuildService
from localcloud.errors import ApiError

SERVICE = "google.devtools.cloudbuild.v1.CloudBuild"


def handler(service: BuildService) -> grpc.GenericRpcHandler:
    """The service for a gRPC server."""

    def unary(
        method: Callable[[Any], Any], read: Callable[..., Any], write: Callable[..., bytes]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: _answer(method, request, context),
            request_deserializer=read,
            response_serializer=write,
        )

    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            "CreateBuild": unary(
                service.create_build,
                cloudbuild_v1.CreateBuildRequest.deserialize,
                operations_pb2.Operation.SerializeToString,
            ),
            "GetBuild": unary(
                service.get_build,
                cloudbuild_v1.GetBuildRequest.deserialize,
                cloudbuild_v1.Build.serialize,
            ),
            "ListBuilds": unary(
                service.list_builds,
                cloudbuild_v1.ListBuildsRequest.deserialize,
                cloudbuild_v1.ListBuildsResponse.serialize,
            ),
            "CancelBuild": unary(
                service.cancel_build,
                cloudbuild_v1.CancelBuildRequest.deserialize,
                cloudbuild_v1.Build.serialize,
            ),
        },
    )


def _answer(method: Callable[[Any], Any], request: Any, context: grpc.ServicerContext) -> Any:
    try:
        return method(request)
    except ApiError as error:
        context.abort(error.code, error.message)
    except Exception as error:
        traceback.print_exc()  # to server.log; the caller gets one line
        context.abort(
            grpc.StatusCode.INTERNAL, f"Internal error encountered: {type(error).__name__}."
        )
