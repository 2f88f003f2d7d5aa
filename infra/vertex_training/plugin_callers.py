"""Protect plugins of the engine: only root and the plugin's own user may call them.

Pulumi's SDK serves plugins on loopback TCP to every local user, and a call can run code: the
dynamic provider unpickles its arguments. ``guard_servers`` makes each gRPC server look up the owner
of the client's socket at every call, in ``/proc/net/tcp`` (proc(5)). Systems without this table
(macOS) accept every caller.

``plugin_callers.py MODULE ARGUMENT…`` runs a module with guarded servers, like ``python -m``. It
imports no other module of this package, which the environment of another program may lack.
"""

from __future__ import annotations

import functools
import os
import runpy
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

_ROOT: Final = 0
_TABLE: Final = Path("/proc/net/tcp")
#: State of an open connection (include/net/tcp_states.h). Closed connections have other states.
_ESTABLISHED: Final = "01"
#: Prefix of ``::ffff:a.b.c.d`` in the table: words in the machine's byte order.
_MAPPED: Final = "".join(f"{word:08X}" for word in struct.unpack("=3I", b"\0" * 10 + b"\xff" * 2))
_REFUSAL: Final = "refused a call by another user of this machine"


def owner(client: tuple[str, int], port: int) -> int | None:
    """Return the id of the user whose socket at ``client`` is connected to ``port``, or None.

    Raises OSError if the system has no table of sockets.
    """
    ends = [_in_table(*client), _in_table("127.0.0.1", port)]
    # IPv6 sockets, like those of gRPC, may be connected to IPv4 addresses.
    for table, prefix in ((_TABLE, ""), (_TABLE.with_name("tcp6"), _MAPPED)):
        if prefix and not table.exists():
            continue  # the kernel has no IPv6
        for line in table.read_text().splitlines()[1:]:
            row = line.split()
            held = row[3] == _ESTABLISHED and row[9] != "0"
            if held and row[1:3] == [prefix + end for end in ends]:
                return int(row[7])
    return None


def _in_table(host: str, port: int) -> str:
    (word,) = struct.unpack("=I", bytes(int(part) for part in host.split(".")))
    return f"{word:08X}:{port:04X}"


class _Guard:
    """Check of the callers of the server at ``port``."""

    port = 0

    def allows(self, peer: str) -> bool:
        """Return True if the client at ``peer``, as in gRPC, belongs to this user or root."""
        if not _TABLE.exists():
            return True
        family, host, port = [*peer.split(":"), "", ""][:3]
        if family != "ipv4" or not port.isdigit():
            return False
        return owner((host, int(port)), self.port) in (_ROOT, os.geteuid())


class _Interceptor(_Guard, grpc.ServerInterceptor):
    """Interceptor for ``grpc.server`` that refuses other users."""

    def intercept_service(
        self, continuation: Callable[[Any], Any], handler_call_details: Any
    ) -> Any:
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        streams = (handler.request_streaming, handler.response_streaming)
        name = "_".join("stream" if stream else "unary" for stream in streams)
        answer = getattr(handler, name)

        def checked(request: Any, context: grpc.ServicerContext) -> Any:
            # An active client had the address during the whole look-up.
            if not (self.allows(context.peer()) and context.is_active()):
                context.abort(grpc.StatusCode.PERMISSION_DENIED, _REFUSAL)
            return answer(request, context)

        make = getattr(grpc, f"{name}_rpc_method_handler")
        return make(checked, handler.request_deserializer, handler.response_serializer)


class _AioInterceptor(_Guard, grpc.aio.ServerInterceptor):
    """Interceptor for ``grpc.aio.server``; its plugins have no streaming methods."""

    async def intercept_service(
        self, continuation: Callable[[Any], Any], handler_call_details: Any
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            return None

        async def checked(request: Any, context: grpc.aio.ServicerContext) -> Any:
            if not self.allows(context.peer()):
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, _REFUSAL)
            return await handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(
            checked, handler.request_deserializer, handler.response_serializer
        )


def _guarded(make: Callable[..., Any], interceptor: type[_Guard]) -> Callable[..., Any]:
    @functools.wraps(make)
    def server(*arguments: Any, interceptors: Any = None, **options: Any) -> Any:
        guard = interceptor()
        created = make(*arguments, interceptors=[guard, *(interceptors or ())], **options)
        add = created.add_insecure_port

        def add_insecure_port(address: str) -> int:
            guard.port = add(address)
            return guard.port

        created.add_insecure_port = add_insecure_port
        return created

    return server


def guard_servers() -> None:
    """Make all servers that this process creates later refuse calls of other users."""
    grpc.server = _guarded(grpc.server, _Interceptor)
    grpc.aio.server = _guarded(grpc.aio.server, _AioInterceptor)


def main() -> None:
    """Run the module in the first command line argument."""
    module = sys.argv.pop(1)
    sys.path[0] = os.getcwd()  # as `python -m` does
    guard_servers()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
