"""The internals of the Pulumi SDK that we use are there, and do what we use them for."""

import ast
import asyncio
import contextvars
import importlib.machinery
import importlib.util
import re
import socket
import sys
import types
from pathlib import Path
from unittest.mock import Mock

import pulumi
import pytest

from vertex_training import pulumi_internals
from vertex_training.customjob.provider import CustomJobProvider
from vertex_training.errors import OperatorError
from vertex_training.pulumi_internals import PROVIDER_MODULE, is_engine_alive


def test_runs_that_a_plugin_serves_have_names_of_their_own():
    def names(address, preview):
        """As the SDK begins each component of a run in a plugin."""
        pulumi.runtime.settings.reset_options(monitor_address=address, preview=preview)
        return pulumi_internals.names_of_run()

    def check():
        names("127.0.0.1:1", True)["job"] = "train"
        assert names("127.0.0.1:1", True) == {"job": "train"}
        assert names("127.0.0.1:1", False) == names("127.0.0.1:2", True) == {}

    contextvars.copy_context().run(check)


def test_a_program_that_waits_learns_of_a_registration_that_failed(monkeypatch):
    """Other registrations that go on, have ended well, or were given up, end no wait."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    names = ("open", "done", "left", "failed")
    opened, done, left, failed = futures = [loop.create_future() for _ in names]
    pending = loop.create_future()
    done.set_result(None)
    left.cancel()
    rpcs = [object(), *futures]
    manager = types.SimpleNamespace(rpcs=rpcs)
    monkeypatch.setattr(pulumi_internals, "_get_rpc_manager", lambda: manager)
    monkeypatch.setattr(pulumi_internals, "FAILURE_INTERVAL", 0.005)
    loop.call_later(0.02, pending.set_result, "value")
    assert pulumi_internals.awaited(pending) == "value"
    never = loop.create_future()
    loop.call_later(0.02, failed.set_exception, OperatorError("the engine has gone"))
    with pytest.raises(OperatorError, match="the engine has gone"):
        pulumi_internals.awaited(never)
    assert never.cancelled()
    assert not opened.done()


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
    # Where `make setup` installed it, the guard of callers becomes that module.
    assert re.search(r" (-m|\S+/plugin_callers\.py) pulumi\.dynamic \$@", started.read_text())


@pytest.fixture
def process(monkeypatch):
    """The SDK's provider module as the main module of this process, without serving."""
    spec = importlib.util.find_spec(PROVIDER_MODULE)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text())
    assert ast.unparse(tree.body.pop()) == "main()"
    main = types.ModuleType("__main__")
    exec(compile(tree, spec.origin, "exec"), vars(main))
    monkeypatch.setitem(sys.modules, "__main__", main)
    CustomJobProvider().configure(None)
    return main


def printed(process, error):
    """What the SDK answers when a call of the provider raises ``error``."""
    context = Mock()

    def call(servicer, request, context):
        raise error

    process._abort_with_traceback(call)(None, None, context)
    [(_, text)] = [each.args for each in context.abort.call_args_list]
    return text


def test_errors_for_people_come_without_a_traceback(process):
    assert printed(process, OperatorError("run 1 ended FAILED")) == "run 1 ended FAILED"
    text = printed(process, ValueError("bug"))
    assert text.startswith("Traceback")
    assert text.endswith("ValueError: bug\n")
