"""What the plugin's process does from its start to its end, in this process."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.gcp import __main__ as plugin
from localgcp.gcp import server

ENGINE, REAPER = 4711, 1


class Pipe(io.StringIO):
    """What the engine has read of the output: what was flushed."""

    read = ""

    def flush(self) -> None:
        self.read = self.getvalue()


class Process:
    """The process: ``ends`` happens when it looks for its engine for the third time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ends: signal.Signals | None) -> None:
        self.ends, self.looks = ends, 0
        self.handlers: dict[signal.Signals, Any] = {}
        self.done: list[Any] = []
        for name in ("pulumi", "pulumi.runtime"):  # put back at the end of the test
            monkeypatch.setitem(sys.modules, name, importlib.import_module(name))
        monkeypatch.setattr(plugin, "_WATCH_SECONDS", 0.001)
        monkeypatch.setattr(os, "getppid", self.parent)
        monkeypatch.setattr(signal, "signal", self.handlers.__setitem__)
        monkeypatch.setattr(server, "serve", self.serve)

    def parent(self) -> int:
        self.looks += 1
        if self.looks < 4:
            return ENGINE
        if self.ends is None:
            return REAPER
        self.handlers[self.ends](self.ends, None)
        return ENGINE

    def serve(self, environment: Any) -> Any:
        assert environment is os.environ
        # Of the SDK the stubs are enough: neither module was executed.
        assert not hasattr(sys.modules["pulumi"], "Resource")
        assert not hasattr(sys.modules["pulumi.runtime"], "Mocks")
        assert self.looks == 1  # before anybody can have ended
        return SimpleNamespace(stop=self.stop), 50051

    def stop(self, grace: float) -> Any:
        self.done.append(("stop", grace))
        return SimpleNamespace(wait=lambda: self.done.append("waited"))


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGINT, None])
def test_it_prints_its_port_and_serves_until_its_engine_or_a_signal_ends_it(
    monkeypatch: pytest.MonkeyPatch, ends: signal.Signals | None
) -> None:
    process, pipe = Process(monkeypatch, ends), Pipe()
    monkeypatch.setattr(sys, "stdout", pipe)
    plugin.main()
    assert pipe.read == "50051\n"
    assert process.done == [("stop", 5), "waited"]
    assert process.looks == 4
    assert set(process.handlers) == {signal.SIGTERM, signal.SIGINT}


def test_it_looks_for_its_engine_every_second() -> None:
    assert plugin._WATCH_SECONDS == 1.0
