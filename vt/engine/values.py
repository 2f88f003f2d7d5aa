"""Values of the engine as they may be shown: no secrets, no sentinels of the wire format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, overload

from infra.customjob.secret_patterns import redacted

#: Stands in a report for a secret.
SECRET: Final = "[secret]"
#: Stands in a report for a value that is not known yet.
UNKNOWN: Final = "[known after apply]"
#: The engine's sentinels: an unknown value, and the key and the value that mark a secret.
#: pulumi/pulumi v3.259.0, sdk/go/common/resource/plugin/rpc.go and resource/sig/sig.go.
WIRE_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE_KEY: Final = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE: Final = "1b47061264138c4ac30d75fd1eb44270"


@overload
def redact(value: str) -> str: ...
@overload
def redact(value: Any) -> Any: ...
def redact(value: Any) -> Any:
    """Return ``value`` as a report may show it.

    Values marked secret, and text that looks like a well-known token, become ``[secret]``; what is
    unknown before it exists ``[known after apply]``; files and archives one line with a digest.
    """
    if isinstance(value, str):
        return UNKNOWN if value == WIRE_UNKNOWN else redacted(value, SECRET)
    if isinstance(value, Mapping):
        if SIGNATURE_KEY in value:
            return _special(value)
        # Keys like __defaults are notes of the engine and its plugins to themselves.
        return {str(key): redact(item) for key, item in value.items() if key[:2] != "__"}
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    return value


def _special(value: Mapping[str, Any]) -> str:
    """A secret, a file, an archive or a resource."""
    if value[SIGNATURE_KEY] == SECRET_SIGNATURE:
        return SECRET
    # Without the path: that may be a place of one machine only.
    if digest := value.get("hash"):
        return f"[file sha256:{digest[:16]}]"
    return str(redact(value.get("urn") or "[file]"))
