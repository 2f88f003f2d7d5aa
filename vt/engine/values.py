"""What may be shown of a value: no secret, and no word only the engine understands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from infra.customjob.request.secret_patterns import redacted

SECRET = "[secret]"
UNKNOWN = "[known after apply]"
#: How the engine spells a value that is not known yet, and marks values that are more than JSON:
#: pulumi/pulumi v3.259.0, sdk/go/common/resource/plugin/rpc.go and resource/sig/sig.go.
_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"


@overload
def shown(value: str) -> str: ...
@overload
def shown(value: Any) -> Any: ...
def shown(value: Any) -> Any:
    """``value`` as a report may show it.

    Values marked secret, and text that looks like a well-known token, become ``[secret]``; what is
    unknown before it exists ``[known after apply]``; files and archives one line with a digest.
    """
    if isinstance(value, str):
        return UNKNOWN if value == _UNKNOWN else redacted(value, SECRET)
    if isinstance(value, Mapping):
        if _SIGNATURE in value:
            return _special(value)
        # Keys like __defaults are notes of the engine and its plugins to themselves.
        return {str(key): shown(item) for key, item in value.items() if key[:2] != "__"}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    return value


def _special(value: Mapping[str, Any]) -> str:
    """A secret, a file, an archive or a resource."""
    if value[_SIGNATURE] == _SECRET_SIGNATURE:
        return SECRET
    # Without the path: that may be a place of one machine only.
    if digest := value.get("hash"):
        return f"[file sha256:{digest[:16]}]"
    return str(shown(value.get("urn") or "[file]"))
