"""The network by which NCCL connects the nodes of a training, from NCCL's own log.

Without its plugin for the machine's network, NCCL falls back to TCP sockets and reports no error:
the training is only slower. Its log names the network at the first collective:
``NCCL INFO Using network FasTrak``, or ``Socket`` for TCP.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

SOCKETS: Final = "Socket"
#: Levels of NCCL_DEBUG whose lines name the network.
_LEVELS: Final = ("INFO", "TRACE")
_STANDARD_OUTPUT: Final = 1
#: Until NCCL 2.23 the first, from 2.24 on both.
_NETWORK: Final = re.compile(
    r"NCCL INFO (?:Using network (.+?)|Assigned NET plugin (.+?) to comm)\s*$", re.MULTILINE
)


def network_of(log: str) -> str:
    """Return the network in NCCL's log; empty if no line names it."""
    names = [used or assigned for used, assigned in _NETWORK.findall(log)]
    return names[-1] if names else ""


def describe(network: str, nodes: int) -> str:
    """Return the line of the job's log about a network that :func:`network_of` returned."""
    if not network:
        return f"NCCL connects {nodes} nodes; its log does not name the network"
    what = ": TCP sockets, without a network plugin" if network == SOCKETS else ""
    return f"NCCL connects {nodes} nodes by {network}{what}"


class NcclLog:
    """Reads NCCL's log of the block in which NCCL starts.

    The log goes to a file in the block. After it, NCCL writes to the standard output if the user
    set ``NCCL_DEBUG``, which then has the lines of the block as well; otherwise to nowhere. A file
    that the user named by ``NCCL_DEBUG_FILE`` stays, and the network is unknown.
    """

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        self._environ, self._file = environ, ""
        self._shown = bool(environ.get("NCCL_DEBUG"))
        self.network = ""
        """Network that NCCL uses; empty before the end of the block, or if it is unknown."""

    def __enter__(self) -> NcclLog:
        if "NCCL_DEBUG_FILE" in self._environ:
            return self
        handle, self._file = tempfile.mkstemp(prefix="nccl-")
        os.close(handle)
        self._environ["NCCL_DEBUG_FILE"] = self._file
        if self._environ.get("NCCL_DEBUG", "").upper() not in _LEVELS:
            self._environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._file:
            return
        text = Path(self._file).read_text("utf-8", errors="replace")
        self.network = network_of(text)
        if self._shown or kind is not None:
            print(text, end="", flush=True)
        self._redirect()
        Path(self._file).unlink()
        del self._environ["NCCL_DEBUG_FILE"]

    def _redirect(self) -> None:
        """Let what NCCL has opened as its file lead elsewhere: it opens no other one."""
        with open(os.devnull, "wb") as nowhere:
            target = _STANDARD_OUTPUT if self._shown else nowhere.fileno()
            for link in Path("/proc/self/fd").iterdir():
                with suppress(OSError):
                    if os.readlink(link) == self._file:
                        os.dup2(target, int(link.name))
