"""Write ``infra/catalog/custom_job.json``: the fields of CustomJob as the official client has them.

    .venv/bin/python -m tools.generate.job_schema          rewrite the file
    .venv/bin/python -m tools.generate.job_schema --check  exit 1 if it is not up to date

The checker of job files reads this file instead of importing Google's libraries, which takes 1.4 s.
A test runs ``--check``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from google.cloud import aiplatform_v1
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from tools.generate import generated

TARGET: Final = Path(__file__).parents[2] / "infra" / "catalog" / "custom_job.json"

#: Output-only fields. The Python types do not mark them; their docstrings do
#: (``aiplatform_v1/types/custom_job.py``).
OUTPUT_ONLY: Final = {
    "CustomJob": {
        "name", "state", "createTime", "startTime", "endTime", "updateTime", "error",
        "webAccessUris", "satisfiesPzs", "satisfiesPzi",
    }
}  # fmt: skip
#: Messages that JSON writes as one scalar.
WELL_KNOWN: Final = {"google.protobuf.Duration": "duration"}
SCALARS: Final = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
}


def describe(message: Descriptor, messages: dict[str, Any]) -> None:
    """Add ``message`` and every message it contains to ``messages``."""
    if message.name in messages:
        return
    fields: dict[str, Any] = {}
    messages[message.name] = fields
    for field in message.fields:
        if field.json_name in OUTPUT_ONLY.get(message.name, ()):
            fields[field.json_name] = {"type": "output"}
            continue
        fields[field.json_name] = _field(field, messages)


def _field(field: FieldDescriptor, messages: dict[str, Any]) -> dict[str, Any]:
    nested = field.message_type
    if nested is not None and nested.GetOptions().map_entry:
        return {"type": "map"}
    row: dict[str, Any] = {"repeated": True} if field.is_repeated else {}
    if nested is not None and nested.full_name in WELL_KNOWN:
        row["type"] = WELL_KNOWN[nested.full_name]
    elif nested is not None:
        row |= {"type": "message", "message": nested.name}
        describe(nested, messages)
    elif field.enum_type is not None:
        row |= {"type": "enum", "values": [v.name for v in field.enum_type.values]}
    else:
        row["type"] = SCALARS[field.type]
    # Proto3 `optional` fields also stand in a oneof, an artificial one whose name begins with _.
    if field.containing_oneof is not None and not field.containing_oneof.name.startswith("_"):
        row["oneof"] = field.containing_oneof.name
    return row


def generate() -> str:
    """The file's text."""
    messages: dict[str, Any] = {}
    describe(aiplatform_v1.CustomJob.pb().DESCRIPTOR, messages)
    document = {
        "source": f"google-cloud-aiplatform {aiplatform_v1.__version__}, aiplatform_v1.types",
        "root": "CustomJob",
        "messages": messages,
    }
    return json.dumps(document, indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(generated.main(TARGET, generate, "tools.generate.job_schema"))
