"""Interface to the Pulumi engine: reading config, and errors without a traceback."""

from __future__ import annotations

import contextvars
import json
import os
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

import pulumi

from vertex_training import pulumi_internals
from vertex_training.secret_rules.redaction import redacted
from vertex_training.settings import stack_files
from vertex_training.settings.reader import PROVIDER, RawConfig, Schema

#: Exit code by which the SDK's executor reports that the error was already shown.
MESSAGE_SHOWN: Final = 32
#: True for programs in other languages: this process is then a plugin that serves several calls and
#: must not end. ``vertex_training.host`` sets the value.
HOSTED: Final = contextvars.ContextVar("HOSTED", default=False)


def read_config(schema: Schema[Any], folder: Path) -> RawConfig:
    """Return the config of the current stack by key, including undeclared keys.

    ``folder`` has the stack file. ``pulumi.Config`` returns only single keys by name, so this
    function reads the config that the engine passed to the SDK. Raises ConfigError for encrypted
    values.
    """
    stack, prefix = pulumi.get_stack(), f"{schema.namespace}:"
    known = pulumi_internals.config()
    read = [key for key in known if key.startswith((prefix, f"{PROVIDER}:"))]
    encrypted = [key for key in read if pulumi.runtime.is_config_secret(key)]
    values = {full: _value(schema, full.removeprefix(prefix), known[full]) for full in known}
    own = stack_files.given_keys(schema, folder, stack)
    project = pulumi.get_project()
    return stack_files.complete(schema, folder, stack, project, values, own, encrypted)


def _value(schema: Schema[Any], key: str, text: str) -> Any:
    if ":" in key or schema.is_text(key):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def end_with_message(message: str) -> NoReturn:
    """Log ``message`` as an error without secrets, and end the program without traceback."""
    pulumi.log.error(redacted(message))
    sys.exit(MESSAGE_SHOWN)


def abandon_with_message(message: str) -> NoReturn:
    """Log an error, and end the process before the SDK registers any resource."""
    pulumi.log.error(redacted(message))
    # After `sys.exit` the SDK would still register the declared resources.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(MESSAGE_SHOWN)
