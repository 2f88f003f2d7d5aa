"""Write the fields of CustomJob and of tuning jobs in Google's client to the catalogue.

``python -m tools.generate.job_schema`` writes ``custom_job.json`` and ``tuning_job.json``. The
checker of job files reads these files instead of importing Google's libraries, which takes 1.4 s.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from google.cloud import aiplatform_v1
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from localgcp.apis.transcoding import is_repeated

CATALOG: Final = Path(__file__).parents[2] / "infra/vertex_training/catalog"
TARGET: Final = CATALOG / "custom_job.json"
TUNING_TARGET: Final = CATALOG / "tuning_job.json"
PACKAGE: Final = "google.cloud.aiplatform.v1."

#: Output-only fields, according to the docstrings of the Python types
#: (``aiplatform_v1/types/custom_job.py`` and ``hyperparameter_tuning_job.py``).
OUTPUT_ONLY: Final = {
    "CustomJob": {
        "name", "state", "createTime", "startTime", "endTime", "updateTime", "error",
        "webAccessUris", "satisfiesPzs", "satisfiesPzi",
    },
    "HyperparameterTuningJob": {
        "name", "trials", "state", "createTime", "startTime", "endTime", "updateTime", "error",
        "satisfiesPzs", "satisfiesPzi",
    },
}  # fmt: skip
#: Messages that JSON writes as a scalar.
WELL_KNOWN: Final = {
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.Int32Value": "int32",
}
SCALARS: Final = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_DOUBLE: "double",
}


def describe(message: Descriptor, messages: dict[str, Any]) -> None:
    """Add ``message`` and the messages of its fields to ``messages``."""
    name = message.full_name.removeprefix(PACKAGE)
    if name in messages:
        return
    fields: dict[str, Any] = {}
    messages[name] = fields
    for field in message.fields:
        if field.json_name in OUTPUT_ONLY.get(name, ()):
            fields[field.json_name] = {"type": "output"}
            continue
        fields[field.json_name] = _field(field, messages)


def _field(field: FieldDescriptor, messages: dict[str, Any]) -> dict[str, Any]:
    nested = field.message_type
    if nested is not None and nested.GetOptions().map_entry:
        return {"type": "map"}
    row: dict[str, Any] = {"repeated": True} if is_repeated(field) else {}
    if nested is not None and nested.full_name in WELL_KNOWN:
        row["type"] = WELL_KNOWN[nested.full_name]
    elif nested is not None:
        row |= {"type": "message", "message": nested.full_name.removeprefix(PACKAGE)}
        describe(nested, messages)
    elif field.enum_type is not None:
        row |= {"type": "enum", "values": [v.name for v in field.enum_type.values]}
    else:
        row["type"] = SCALARS[field.type]
    # Proto3 `optional` fields are in a synthetic oneof, whose name begins with _.
    if field.containing_oneof is not None and not field.containing_oneof.name.startswith("_"):
        row["oneof"] = field.containing_oneof.name
    return row


def generate() -> str:
    """Return the text of the file about CustomJob."""
    messages: dict[str, Any] = {}
    describe(aiplatform_v1.CustomJob.pb().DESCRIPTOR, messages)
    return _text("CustomJob", messages)


def generate_tuning() -> str:
    """Return the text of the file about HyperparameterTuningJob, without messages of CustomJob."""
    known: dict[str, Any] = {}
    describe(aiplatform_v1.CustomJob.pb().DESCRIPTOR, known)
    messages = dict(known)
    describe(aiplatform_v1.HyperparameterTuningJob.pb().DESCRIPTOR, messages)
    own = {name: fields for name, fields in messages.items() if name not in known}
    return _text("HyperparameterTuningJob", own)


def _text(root: str, messages: dict[str, Any]) -> str:
    source = f"google-cloud-aiplatform {aiplatform_v1.__version__}, aiplatform_v1.types"
    return json.dumps({"source": source, "root": root, "messages": messages}, indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(generate(), encoding="utf-8")
    TUNING_TARGET.write_text(generate_tuning(), encoding="utf-8")
