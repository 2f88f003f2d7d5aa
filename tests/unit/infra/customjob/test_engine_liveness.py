"""Whether the engine of a provider process is alive, and how the SDK starts such a process."""

import importlib.machinery
import importlib.util
import socket
import sys
import types
from pathlib import Path

import pytest

from vertex_training.customjob.engine_liveness import PROVIDER_MODULE, is_engine_alive


def as_main(monkeypatch, module_name, *arguments):
    """Let this process look like one that was started as ``python -m MODULE ARGUMENTS``."""
    main = types.ModuleType("__main__")
    main.__spec__ = module_name and importlib.machinery.ModuleSpec(module_name, None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", ["command", *arguments])


@pytest.fixture
def engine():
    """An engine's address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_a_provider_that_an_engine_started_asks_whether_that_engine_still_listens(
    monkeypatch, engine
):
    as_main(monkeypatch, PROVIDER_MODULE, engine)
    assert is_engine_alive()
    as_main(monkeypatch, PROVIDER_MODULE, "127.0.0.1:1")
    assert not is_engine_alive()


@pytest.mark.parametrize("name", [None, "pytest.__main__"])
def test_a_number_given_to_another_program_is_no_engine(monkeypatch, name):
    as_main(monkeypatch, name, "1")
    assert is_engine_alive()


def test_the_sdks_provider_process_is_the_module_that_is_looked_for():
    assert importlib.util.find_spec(PROVIDER_MODULE) is not None
    started = Path(sys.executable).parent / "pulumi-resource-pulumi-python"
    assert "-m pulumi.dynamic $@" in started.read_text()
