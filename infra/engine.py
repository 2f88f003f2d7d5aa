"""What a program asks of the Pulumi engine around it: its config, and a plain end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

import pulumi

from infra.customjob.secret_patterns import redacted
from infra.errors import ConfigError
from infra.settings import locations, reader
from infra.settings.reader import PROVIDER, PROVIDER_KEYS, Schema

#: By this exit code the SDK's executor tells the language host that the user has seen the error.
MESSAGE_SHOWN: Final = 32


def read_config(schema: Schema[Any], folder: Path) -> dict[str, Any]:
    """The current stack's config by key, as ``reader.parse`` takes it; also undeclared keys.

    ``folder`` has the stack file. ``pulumi.Config`` can only be asked for a key by name, which is
    how unknown keys slip through. So this reads what the engine passed to the SDK:
    ``pulumi.runtime.config.CONFIG`` and ``get_config_env`` are internals of SDK 3.272.0, and
    ``tests/unit/infra/settings/test_reader.py`` fails when they change.

    Raises:
        ConfigError: a value is encrypted, or a key belongs to the provider.
    """
    stack, prefix = pulumi.get_stack(), f"{schema.namespace}:"
    known = pulumi.runtime.config.CONFIG.get() or pulumi.runtime.config.get_config_env()
    own = {key.removeprefix(prefix): text for key, text in known.items() if key.startswith(prefix)}
    provider = {key: known[full] for key in PROVIDER_KEYS if (full := f"{PROVIDER}:{key}") in known}
    read = [f"{PROVIDER}:{key}" for key in provider] + [f"{prefix}{key}" for key in own]
    try:
        if encrypted := [key for key in read if pulumi.runtime.is_config_secret(key)]:
            raise ConfigError(reader.encrypted_problem(key, stack) for key in encrypted)
        values = {key: text if schema.is_text(key) else _parsed(text) for key, text in own.items()}
        return reader.merge(schema, stack, provider, values)
    except ConfigError as failed:
        raise ConfigError(locations.locate(failed.problems, folder)) from None


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
