"""The program's interface to the Pulumi engine: config, and an end without a traceback."""

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

#: By this exit code the SDK's executor tells the language host that the user has seen the error.
MESSAGE_SHOWN: Final = 32
#: Whether a program in another language declares: this process is a plugin of the engine, serves
#: more than one call, and must not end. Set by ``vertex_training.host``.
HOSTED: Final = contextvars.ContextVar("HOSTED", default=False)


def read_config(schema: Schema[Any], folder: Path) -> RawConfig:
    """The current stack's config by key, as ``reader.parse`` takes it; also undeclared keys.

    ``folder`` has the stack file. ``pulumi.Config`` can only be asked for a key by name, which is
    how unknown keys slip through. So this reads all that the engine passed to the SDK.

    Raises:
        ConfigError: a value is encrypted, also in a file that the stack's file includes.
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
    return text if ":" in key or schema.is_text(key) else _parsed(text)


def _parsed(text: str) -> Any:
    """Objects, lists and numbers come as JSON; what is not JSON is text, and checked as such."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def end_with_message(message: str) -> NoReturn:
    """Log ``message`` as an error, secrets redacted, and end the program, with no traceback.

    ``pulumi.RunError`` would add "an unhandled error occurred" to a mistake in a file.
    """
    pulumi.log.error(redacted(message))
    sys.exit(MESSAGE_SHOWN)


def abandon_with_message(message: str) -> NoReturn:
    """Log ``message`` as ``end_with_message`` does, and end the process at once.

    The SDK registers resources after the program's last line, and would do so after
    ``sys.exit``, too. So nothing that was declared until now is registered.
    """
    pulumi.log.error(redacted(message))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(MESSAGE_SHOWN)
