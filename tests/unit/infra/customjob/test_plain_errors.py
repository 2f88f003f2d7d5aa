"""Errors for people come without a traceback, from the SDK's own provider process."""

import ast
import importlib.util
import sys
import traceback
import types
from pathlib import Path
from unittest.mock import Mock

import pytest

from vertex_training.customjob.provider import CustomJobProvider
from vertex_training.errors import OperatorError


@pytest.fixture
def process(monkeypatch):
    """The SDK's provider module as the main module of this process, without serving."""
    spec = importlib.util.find_spec("pulumi.dynamic.__main__")
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


def test_only_the_providers_process_formats_errors_in_this_way(process):
    assert traceback.format_exc is not process.traceback.format_exc
