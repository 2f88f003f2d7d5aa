"""Convert property values between protobuf and Python, without the SDK, whose import is slow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from google.protobuf import struct_pb2

UNKNOWN_WIRE: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
ASSET: Final = "c44067f5952c0a294b673a41bacd8c17"
RESOURCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


class Unknown:
    """A value that is unknown until another resource is created."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True)
class Secret:
    """A value that the engine encrypts in its state."""

    value: Any


@dataclass(frozen=True)
class Asset:
    """A file, a text or a remote file. Calls of Diff and Read have only the content's hash."""

    hash: str
    fields: tuple[tuple[str, str], ...] = field(compare=False)

    def read(self) -> bytes:
        """Return the asset's content. Raises OSError."""
        fields = dict(self.fields)
        if "text" in fields:
            return fields["text"].encode()
        if "path" in fields:
            return Path(fields["path"]).read_bytes()
        if "uri" in fields:
            with urlopen(fields["uri"]) as response:
                return response.read()
        raise OSError("the engine sent the asset's hash without the asset's content")


def decode(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return the properties of a message. Values may be Secret, Asset and UNKNOWN."""
    return {key: _decode(value) for key, value in struct.fields.items()}


def _decode(value: struct_pb2.Value) -> Any:
    match value.WhichOneof("kind"):
        case "struct_value":
            return _decode_struct(value.struct_value)
        case "list_value":
            return [_decode(item) for item in value.list_value.values]
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() else number
        case "string_value":
            return UNKNOWN if value.string_value == UNKNOWN_WIRE else value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None


def _decode_struct(struct: struct_pb2.Struct) -> Any:
    fields = {key: _decode(item) for key, item in struct.fields.items()}
    signature = fields.pop(SIGNATURE, None)
    if signature is None:
        return fields
    if signature == SECRET:
        return Secret(fields.get("value"))
    if signature == OUTPUT:
        inner = fields.get("value", UNKNOWN)
        return Secret(inner) if fields.get("secret") else inner
    if signature == RESOURCE:
        return fields.get("id", UNKNOWN)
    if signature == ASSET:
        kept = {k: v for k, v in fields.items() if k in ("text", "path", "uri")}
        # The engine adds ``text: ""`` to an asset with a path or a URI.
        if kept.get("path") or kept.get("uri"):
            kept.pop("text", None)
        return Asset(fields.get("hash", ""), tuple(sorted(kept.items())))
    raise ValueError(f"the plugin does not support property values of the kind {signature}")


def encode(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return properties as a protobuf message."""
    return struct_pb2.Struct(fields={key: _encode(item) for key, item in properties.items()})


def _encode(value: Any) -> struct_pb2.Value:
    match value:
        case None:
            return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
        case Unknown():
            return struct_pb2.Value(string_value=UNKNOWN_WIRE)
        case bool():
            return struct_pb2.Value(bool_value=value)
        case int() | float():
            return struct_pb2.Value(number_value=value)
        case str():
            return struct_pb2.Value(string_value=value)
        case Secret():
            return _encode({SIGNATURE: SECRET, "value": value.value})
        case Asset():
            return _encode({SIGNATURE: ASSET, "hash": value.hash, **dict(value.fields)})
        case Mapping():
            return struct_pb2.Value(struct_value=encode(value))
        case list() | tuple():
            items = [_encode(item) for item in value]
            return struct_pb2.Value(list_value=struct_pb2.ListValue(values=items))
    raise TypeError(f"a property cannot have a value of the type {type(value).__name__}")


def plain(value: Any) -> Any:
    """Return the value without secret markers."""
    match value:
        case Secret():
            return plain(value.value)
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
    return value


def has_unknown(value: Any) -> bool:
    """Return whether the value contains an unknown value."""
    return any(isinstance(part, Unknown) for part in _parts(value))


def has_secret(value: Any) -> bool:
    """Return whether the value contains a secret."""
    return any(isinstance(part, Secret) for part in _parts(value))


def _parts(value: Any) -> Iterator[Any]:
    yield value
    match value:
        case Secret():
            yield from _parts(value.value)
        case dict() | list():
            for item in value.values() if isinstance(value, dict) else value:
                yield from _parts(item)


def stored(value: Any) -> Any:
    """Return the value as JSON, with assets replaced by their hashes, without secret markers."""
    if isinstance(value, Asset):
        return {"asset": value.hash}
    if isinstance(value, dict):
        return {key: stored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [stored(item) for item in value]
    return stored(value.value) if isinstance(value, Secret) else value
