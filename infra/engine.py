"""What a program asks of the Pulumi engine around it: its config, and a plain end."""

from __future__ import annotations

import json
import sys
from typing import Any, Final, NoReturn

import pulumi

from infra.customjob.secret_patterns import redacted
from infra.errors import ConfigError
from infra.settings import reader
from infra.settings.reader import PROVIDER, PROVIDER_KEYS, Schema

#: By this exit code the SDK's executor tells the language host that the user has seen the error.
MESSAGE_SHOWN: Final = 32


def read_config(schema: Schema[Any]) -> dict[str, Any]:
    """The current stack's config by key, as ``reader.parse`` takes it; also undeclared keys.

    ``pulumi.Config`` can only be asked for a key by name, which is how unknown keys slip through.
    So this looks at what the engine handed to the SDK.

    Raises:
        ConfigError: a value is encrypted.
    """
    stack = pulumi.get_stack()
    provider = pulumi.Config(PROVIDER)
    raw: dict[str, Any] = {"stack": stack}
    raw |= {key: value for key in PROVIDER_KEYS if (value := provider.get(key)) is not None}
    prefix = f"{schema.namespace}:"
    known = pulumi.runtime.config.CONFIG.get() or pulumi.runtime.config.get_config_env()
    own = {key.removeprefix(prefix): text for key, text in known.items() if key.startswith(prefix)}
    if encrypted := [key for key in own if pulumi.runtime.is_config_secret(f"{prefix}{key}")]:
        raise ConfigError(reader.encrypted_problem(schema, stack, key) for key in encrypted)
    return raw | {key: text if schema.is_text(key) else _parsed(text) for key, text in own.items()}


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
