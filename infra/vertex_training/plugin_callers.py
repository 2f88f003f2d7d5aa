"""Plugins of the engine answer their own user, and root: nobody else of the machine.

Pulumi's SDK serves plugins on loopback TCP to whoever connects, and a call runs code: the dynamic
provider unpickles its arguments. ``guard_servers`` makes each gRPC server of a process ask the
system who owns the client's end of a connection, at every call: ``/proc/net/tcp`` (proc(5)). Where
the system has no such table (macOS), nobody is refused.

Run as a program, it becomes another module with guarded servers: ``plugin_callers.py MODULE
ARGUMENT…``, as ``python -m MODULE`` does. It loads nothing of ours: the environment of somebody
else's program may lack it.
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
#: include/net/tcp_states.h: of a client that hung up, the socket has another state.
_ESTABLISHED: Final = "01"
#: The beginning of ``::ffff:a.b.c.d`` in a table: words in the machine's order.
_MAPPED: Final = "".join(f"{word:08X}" for word in struct.unpack("=3I", b"\0" * 10 + b"\xff" * 2))
_REFUSAL: Final = "a process of another user of this machine called; only the own user's get in"


def owner(client: tuple[str, int], port: int) -> int | None:
    """The user who holds the socket at ``client`` that is connected to 127.0.0.1:``port``.

    None if no process holds one. Raises OSError if the system has no table.
    """
    ends = [_in_table(*client), _in_table("127.0.0.1", port)]
    # An IPv6 socket may be connected to an IPv4 address, as those of gRPC are.
    for table, prefix in ((_TABLE, ""), (_TABLE.with_name("tcp6"), _MAPPED)):
        if prefix and not table.exists():
            continue  # a kernel without IPv6
        for line in table.read_text().splitlines()[1:]:
            row = line.split()
            held = row[3] == _ESTABLISHED and row[9] != "0"
            if held and row[1:3] == [prefix + end for end in ends]:
                return int(row[7])
    return None


def _in_table(host: str, port: int) -> str:
    """``0100007F:1F90``: a word in the machine's order, the port in hexadecimal."""
    (word,) = struct.unpack("=I", bytes(int(part) for part in host.split(".")))
    return f"{word:08X}:{port:04X}"


class _Guard:
    """Return the allowed callers of the server at ``port``."""

    port = 0

    def allows(self, peer: str) -> bool:
        """Return whether the client at ``peer``, as gRPC shows it, is of this user or root."""
        if not _TABLE.exists():
            return True
        family, host, port = [*peer.split(":"), "", ""][:3]
        if family != "ipv4" or not port.isdigit():
            return False
        return owner((host, int(port)), self.port) in (_ROOT, os.geteuid())


class _Interceptor(_Guard, grpc.ServerInterceptor):
    """For ``grpc.server``."""

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
            # Still connected afterwards: so nobody else had this address when it was looked up.
            if not (self.allows(context.peer()) and context.is_active()):
                context.abort(grpc.StatusCode.PERMISSION_DENIED, _REFUSAL)
            return answer(request, context)

        make = getattr(grpc, f"{name}_rpc_method_handler")
        return make(checked, handler.request_deserializer, handler.response_serializer)


class _AioInterceptor(_Guard, grpc.aio.ServerInterceptor):
    """For ``grpc.aio.server``: plugins have methods without streams only."""

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
        made = make(*arguments, interceptors=[guard, *(interceptors or ())], **options)
        add = made.add_insecure_port

        def add_insecure_port(address: str) -> int:
            guard.port = add(address)
            return guard.port

        made.add_insecure_port = add_insecure_port
        return made

    return server


def guard_servers() -> None:
    """From now on, the servers that this process makes refuse other users; see the module."""
    grpc.server = _guarded(grpc.server, _Interceptor)
    grpc.aio.server = _guarded(grpc.aio.server, _AioInterceptor)


def main() -> None:
    """Become the module that the first argument names."""
    module = sys.argv.pop(1)
    sys.path[0] = os.getcwd()  # as `-m` has it
    guard_servers()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
