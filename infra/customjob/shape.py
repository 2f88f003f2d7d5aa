"""Is it the API's message? Fields, types and oneofs of CustomJob, as the official client has them.

The fields come from ``catalog/custom_job.json``, generated from the client's types. Keys may be
camelCase, as REST and gcloud write them, or snake_case, as the Python client does; what comes
out is camelCase.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from infra import catalog
from infra.customjob import references
from infra.customjob.document import Document, Path, Value, dotted
from infra.errors import Problem, did_you_mean

DURATION = re.compile(r"-?[0-9]+(\.[0-9]{1,9})?s\Z")
LIMITS = {"int32": 2**31, "int64": 2**63}
#: Where each message stands, in the words a person would look for.
PLACES = {
    "CustomJob": "the top level, beside jobSpec",
    "CustomJobSpec": "jobSpec (the top level in gcloud's form)",
    "WorkerPoolSpec": "a worker pool",
    "MachineSpec": "machineSpec",
    "ContainerSpec": "containerSpec",
    "PythonPackageSpec": "pythonPackageSpec",
    "DiskSpec": "diskSpec",
    "Scheduling": "scheduling",
    "ReservationAffinity": "machineSpec.reservationAffinity",
    "GcsDestination": "baseOutputDirectory",
    "EncryptionSpec": "encryptionSpec",
    "PscInterfaceConfig": "pscInterfaceConfig",
}


@functools.cache
def messages() -> dict[str, dict[str, Any]]:
    """Message name -> field name -> its row in the catalogue."""
    return catalog.load("custom_job.json")["messages"]


def camel(key: str) -> str:
    """``boot_disk_size_gb`` -> ``bootDiskSizeGb``; camelCase stays as it is."""
    if "_" not in key or key != key.lower():
        return key  # a mix of both, like bootDiskSize_gb, is no field and must not become one
    head, *rest = key.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


class Shaper:
    """Turns a document into a plain request and collects every problem on the way."""

    def __init__(self, document: Document, table: references.Table) -> None:
        self.document = document
        self.table = table
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.used: set[str] = set()
        """Names of all references met."""

    def message(self, value: Value, name: str, path: Path) -> dict[str, Any] | None:
        """``value`` as message ``name``; None if it is something else."""
        if isinstance(value.content, str):
            found = references.whole(value.content, self.table)
            if isinstance(found, dict):
                self.used.update(references.used_in(value.content))
                return dict(found)
        if not isinstance(value.content, dict):
            example = next(iter(messages()[name]))
            self._wrong(path, f"must be a mapping, like {example}: …", value)
            return None
        fields, result = messages()[name], dict[str, Any]()
        for key, item in value.content.items():
            field = camel(key)
            if field not in fields:
                self._unknown(key, field, name, (*path, key))
            elif field in result:
                self._add((*path, key), "the same field twice", key, f"it is also there as {field}")
            elif (converted := self._field(item, fields[field], (*path, key))) is not None:
                result[field] = converted
        self._check_oneofs(fields, result, path)
        return result

    def _field(self, value: Value, row: dict[str, Any], path: Path) -> Any:
        if value.content is None:
            return self._add(path, "has no value", "", "write one, or remove the key")
        if row["type"] == "output":
            return self._add(path, "is filled in by the service", "", "remove it", key=True)
        if not row.get("repeated"):
            return self._single(value, row, path)
        if row.get("message") == "WorkerPoolSpec" and isinstance(value.content, dict):
            # gcloud alone accepts one mapping here; Google's own pages show it so.
            self.warnings.append(
                Problem(self.document.where(path), "one worker pool without a list", "",
                        "REST takes a list: start the pool with '- '")
            )  # fmt: skip
            return [self._single(value, row, path)]
        if not isinstance(value.content, list):
            return self._wrong(path, "must be a list", value, "start each item with '- '")
        items = [
            self._field(item, {**row, "repeated": False}, (*path, index))
            for index, item in enumerate(value.content)
        ]
        return items if all(item is not None for item in items) else None

    def _single(self, value: Value, row: dict[str, Any], path: Path) -> Any:
        kind = row["type"]
        if kind == "message":
            return self.message(value, row["message"], path)
        if kind == "map":
            return self._map(value, path)
        convert = {"bool": self._bool, "duration": self._duration, "enum": self._enum}
        if kind in LIMITS:
            return self._integer(value, LIMITS[kind], path)
        if kind == "string":
            return self._text(value, path)
        return convert[kind](value, row, path)

    def _text(self, value: Value, path: Path) -> str | None:
        if not isinstance(value.content, str):
            if isinstance(value.content, dict | list):
                return self._wrong(path, "must be text", value)
            return self._add(path, "must be text", value.text, f'quote it: "{value.text}"')
        try:
            text = references.resolve(value.content, self.table)
        except references.UnknownReference as unknown:
            shown = "${" + unknown.name + "}"
            return self._add(path, "this stack has no such thing", shown, unknown.hint)
        self.used.update(references.used_in(value.content))
        return text

    def _map(self, value: Value, path: Path) -> dict[str, str] | None:
        if not isinstance(value.content, dict):
            return self._wrong(path, "must be a mapping of text to text", value)
        texts = {key: self._text(item, (*path, key)) for key, item in value.content.items()}
        return {key: text for key, text in texts.items() if text is not None}

    def _bool(self, value: Value, _row: dict[str, Any], path: Path) -> bool | None:
        if isinstance(value.content, bool):
            return value.content
        return self._wrong(path, "must be true or false", value)

    def _integer(self, value: Value, limit: int, path: Path) -> int | None:
        number = value.content
        if isinstance(number, str) and re.fullmatch(r"-?[0-9]{1,19}", number):
            number = int(number)  # JSON writes int64 as text
        if isinstance(number, bool) or not isinstance(number, int):
            return self._wrong(path, "must be a whole number", value)
        if str(number) != value.text.lstrip("+"):
            return self._add(path, f"YAML reads this as {number}", value.text, "write it plainly")
        if not -limit <= number < limit:
            return self._wrong(path, "is out of range", value)
        return number

    def _duration(self, value: Value, _row: dict[str, Any], path: Path) -> str | None:
        if isinstance(value.content, str) and DURATION.match(value.content):
            return value.content
        hint = 'seconds with an s, as text: "3600s"'
        if re.fullmatch(r"[0-9]+", value.text):
            hint = f'write "{value.text}s"'
        elif short := re.fullmatch(r"([0-9]+)([mhd])", value.text):
            factor = {"m": 60, "h": 3600, "d": 86400}[short[2]]
            hint = f'write "{int(short[1]) * factor}s"'
        return self._add(path, "is not a duration", value.text or "a mapping or list", hint)

    def _enum(self, value: Value, row: dict[str, Any], path: Path) -> str | None:
        if value.content in row["values"]:
            return value.content
        real = [name for name in row["values"] if not name.endswith("_UNSPECIFIED")]
        return self._add(
            path, "is not one of the API's values", value.text, did_you_mean(value.text, real)
        )

    def _check_oneofs(self, fields: dict[str, Any], result: dict[str, Any], path: Path) -> None:
        groups: dict[str, list[str]] = {}
        for field in result:
            if group := fields[field].get("oneof"):
                groups.setdefault(group, []).append(field)
        for chosen in groups.values():
            if len(chosen) > 1:
                self._add(path, f"give only one of {' and '.join(chosen)}")

    def _unknown(self, key: str, field: str, name: str, path: Path) -> None:
        places = [PLACES[m] for m in PLACES if field in messages()[m] and m != name]
        wrong = catalog.load("wrong_fields.yaml")
        if field in wrong:
            hint = wrong[field]
        elif places:
            hint = f"it belongs to {' or '.join(places[:2])}"
        else:
            writable = [f for f, row in messages()[name].items() if row["type"] != "output"]
            hint = did_you_mean(key, writable)
        what = f"{dotted(path)} is no field of {name}"
        self.problems.append(Problem(self.document.where(path, key=True), what, hint=hint))

    def _wrong(self, path: Path, what: str, value: Value, hint: str = "") -> None:
        kinds = {dict: "a mapping", list: "a list"}
        self._add(path, what, kinds.get(type(value.content), value.text), hint)

    def _add(
        self, path: Path, what: str, got: str = "", hint: str = "", *, key: bool = False
    ) -> None:
        where = self.document.where(path, key=key)
        self.problems.append(Problem(where, f"{dotted(path) or 'the file'} {what}", got, hint))
