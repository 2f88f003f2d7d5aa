"""Builds the API message of a job from a document, with the official client's field types.

The fields come from ``catalog/custom_job.json`` and ``catalog/tuning_job.json``. Keys of the
document are camelCase (as in REST) or snake_case (as in the Python client); those of the message
are camelCase.

Text in a document can have references like ``${kind.name}`` to resources of the stack. A reference
has a dot, unlike the shell's ``${HOME}`` and Vertex AI's ``$(VAR)``.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.customjob.kinds import CUSTOM_JOB, JobKind, kind_of_fields
from vertex_training.customjob.request import hints
from vertex_training.customjob.request.hints import messages
from vertex_training.customjob.rules import registry
from vertex_training.errors import Mend, Path, Problem, UnknownReferenceError, did_you_mean
from vertex_training.located_yaml.document import MAX_PROBLEMS, UNREADABLE, Document, Value
from vertex_training.secret_rules.redaction import redacted

REFERENCE: Final = re.compile(r"\$\{([A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+)\}")

#: Kinds of references to keys of a stack file's section; kind and section have the same name.
DECLARED: Final = frozenset(
    ("buckets", "images", "packages", "reservations", "secrets", "serviceAccounts", "snapshots")
)
#: Attribute of a network, as in ``${network.name}`` -> network mode in which it has a value.
OF_MODE: Final = {"name": "peering", "attachment": "psc", "interface": "psc"}


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """Placeholder in the table of references for a declared name whose value is unknown."""

    hint: str
    """Hint with the key of the stack file that sets the value."""


#: Name of a reference -> its value: text, a mapping (a whole message), or an ``UnknownValue``.
ReferenceTable = Mapping[str, Any]


def references_in(text: str) -> list[str]:
    """Return the names of the references in ``text``, in order.

    >>> references_in("${buckets.data}/x ${HOME}")
    ['buckets.data']
    """
    return REFERENCE.findall(text)


def resolve_references(text: str, table: ReferenceTable) -> str:
    """Return ``text`` with all references replaced by their values.

    Raises UnknownReferenceError for the first reference that is unknown or a whole message.
    """

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        value = table.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, UnknownValue):
            raise UnknownReferenceError(name, value.hint)
        whole = "use this reference as the whole value of a field, not inside text"
        raise UnknownReferenceError(name, _reference_hint(name, table) if value is None else whole)

    return REFERENCE.sub(replace, text)


def message_of(text: str, table: ReferenceTable) -> Any | None:
    """Return the value of ``text`` if it is a single reference, else None."""
    match = REFERENCE.fullmatch(text.strip())
    value = table.get(match.group(1)) if match else None
    return None if isinstance(value, UnknownValue) else value


def _reference_hint(name: str, table: ReferenceTable) -> str:
    kind, _, rest = name.partition(".")
    same_kind = [known for known in table if known.split(".")[0] == kind]
    if not same_kind and kind in DECLARED:
        key = rest.partition(".")[0]
        return f"add '{key}' to vertex-training:{kind} in the stack file, which has no {kind}"
    if kind == "network" and rest in OF_MODE and name not in same_kind:
        return f"set mode: {OF_MODE[rest]} in vertex-training:network"
    if name == "tensorboard.name":
        return "name the TensorBoard in vertex-training:tensorboard"
    return did_you_mean(name, same_kind or list(table))


#: A duration in JSON.
DURATION: Final = re.compile(r"-?[0-9]+(\.[0-9]{1,9})?s\Z")
#: A timestamp in JSON (RFC 3339).
TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})\Z"
)
#: Field whose values can be secrets. Problems do not show these values.
IN_ENV: Final = "env"
#: The name of an environment variable.
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Optional text fields, in which protobuf treats empty text as unset.
UNSET_IF_EMPTY: Final = frozenset(
    {
        "bootDiskType", "experiment", "experimentRun", "gpuPartitionSize", "kmsKeyName", "network",
        "outputUriPrefix", "persistentResourceId", "protectedArtifactLocationId", "serviceAccount",
        "tensorboard", "tpuTopology",
    }
)  # fmt: skip
#: Messages that are unset if their only field, which is in ``UNSET_IF_EMPTY``, has no value.
UNSET_IF_HOLLOW: Final = frozenset(("GcsDestination", "EncryptionSpec"))
#: Output-only fields of a CustomJob.
OUTPUT: Final = {
    field: row for field, row in messages()["CustomJob"].items() if row["type"] == "output"
}
#: A whole number that all versions of YAML read as a decimal number.
DIGITS: Final = re.compile(r"[+-]?(0|[1-9][0-9]*)")
#: Integer type -> first value out of range.
LIMITS: Final = {"int32": 2**31, "int64": 2**63}


def to_camel_case(key: str) -> str:
    """Convert ``boot_disk_size_gb`` to ``bootDiskSizeGb``. CamelCase is unchanged."""
    if "_" not in key or key != key.lower():
        return key  # a mixture like bootDiskSize_gb must not become a valid field
    head, *rest = key.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


class MessageBuilder:
    """Builder of a message from a document. Collects all problems."""

    def __init__(
        self, document: Document, table: ReferenceTable, kind: JobKind | None = None
    ) -> None:
        self.document, self.table = document, table
        self.problems: list[Problem] = []
        self.remarks: list[Problem] = []
        """Warnings and notes."""
        self.left_out: set[Path] = set()
        """Paths of the file's fields that have no value."""
        self.unreadable: list[Path] = []
        """Paths of unreadable values in the request (REST form)."""
        self.used: set[str] = set()
        """Names of all references in the document."""
        keys = {to_camel_case(key) for key in document.root.content}
        wrapper = set(messages()["CustomJob"]) - set(messages()["CustomJobSpec"])
        self.expected = kind
        self.kind = kind_of_fields(keys)
        """Kind of the file, according to its fields."""
        in_spec = CUSTOM_JOB.spec not in keys and not keys.isdisjoint(messages()["CustomJobSpec"])
        self._rest_form = self.kind is not CUSTOM_JOB or (bool(keys & wrapper) and not in_spec)
        self._within: list[tuple[str, Path]] = []
        """Messages around the current field, with their paths in the file."""
        self._lone: set[Path] = set()
        """Paths, in the file, of single values where a list is expected."""

    def build_message(self) -> dict[str, Any] | None:
        """Return the message as in REST, from the form of REST or of gcloud (only the jobSpec)."""
        expected = self.expected or self.kind
        file = self.document.file
        top = self.document.root.content
        config = top["config"].content if "config" in top else None
        keys = config if isinstance(config, dict) else ()
        other = hints.other_resource(map(to_camel_case, top), file, keys)
        if other or expected is not self.kind:
            other = other or self.kind.message
            what = f"the file must describe a {expected.message}"
            return self._add("other-resource", (), what, other, hints.hint_of_other(other, file))
        if self._rest_form:
            return self._message(self.document.root, self.kind.message, ())
        spec = self._message(self.document.root, "CustomJobSpec", ())
        return None if spec is None else {"jobSpec": spec}

    def _message(self, value: Value, name: str, path: Path) -> dict[str, Any] | None:
        if isinstance(value.content, str):
            message = message_of(value.content, self.table)
            if isinstance(message, dict):
                self.used.update(references_in(value.content))
                return dict(message)
            if message is None and REFERENCE.fullmatch(value.content.strip()):
                self._text(value, path)  # adds a problem for the unknown reference
                return None
        pairs = _variables(value) if name == hints.ENV_VAR else ()
        if pairs or not isinstance(value.content, dict):
            example = f"write {next(iter(messages()[name]))}: …, for example"
            hint = f"write {hints.env_item(pairs[0])}" if pairs else example
            what = "must be a mapping" + " with name and value" * bool(pairs)
            self._add_wrong_type(path, what, value, hint, Mend("env", pairs) if pairs else None)
            return None
        fields, result = messages()[name], dict[str, Any]()
        if not path and not self._rest_form:  # output-only fields beside a jobSpec
            fields = OUTPUT | fields
        self._within.append((name, path))
        for key, item in value.content.items():
            if len(self.problems) >= MAX_PROBLEMS:
                break
            field = to_camel_case(key)
            if field not in fields:
                self._add_unknown_field(key, field, name, (*path, key), value.content)
            elif field in result:
                hint = "keep either the camelCase or the snake_case key"
                self._add("duplicate-field", (*path, key), "the field occurs twice", key, hint)
            elif (converted := self._field(item, fields[field], (*path, key))) is not None:
                result[field] = converted
        self._within.pop()
        self._check_oneofs(fields, result, list(value.content), path)
        return result

    def _field(self, value: Value, row: dict[str, Any], path: Path) -> Any:
        if value.content is UNREADABLE:
            return self._mark_unreadable(path)
        if _is_unset(value.content, path[-1]):
            what = "the field has no value and is ignored"
            hint = "write a value, or remove the key"
            self._remark("no-value", path, what, hint, Mend("remove"))
            self.left_out.add(path)
            return None
        if row["type"] == "output":
            what = "the service sets this field; its value is ignored"
            return self._remark("output-field", path, what, "remove the field", Mend("remove"))
        if not row.get("repeated"):
            return self._single(value, row, path)
        if not isinstance(value.content, list):
            return self._lone_value(value, row, path)
        items = [
            self._field(item, {**row, "repeated": False}, (*path, index))
            for index, item in enumerate(value.content)
        ]
        return items if all(item is not None for item in items) else None

    def _lone_value(self, value: Value, row: dict[str, Any], path: Path) -> list[Any] | None:
        """Return a list with a single value where the field expects a list, as gcloud does."""
        message = row.get("message", "")
        if message == "WorkerPoolSpec" and isinstance(value.content, dict):
            # Google's documentation has examples of this form.
            what, hint = "workerPoolSpecs should be a list", "begin the worker pool with '- '"
            self._remark("pool-list", path, what, hint)
        elif _may_be_item(value.content, message):
            what, hint = "the value should be a list", "begin the value with '- '"
            self._remark("lone-value", path, what, hint)
        elif message == hints.ENV_VAR and (pairs := _variables(value)):
            items = " ".join(f"- {hints.env_item(pair)}" for pair in pairs)
            hint = f"write {items}, one per line"
            return self._add_wrong_type(path, "must be a list", value, hint, Mend("env", pairs))
        else:
            return self._add_wrong_type(path, "must be a list", value, "begin each item with '- '")
        self._lone.add(path)
        item = self._single(value, {**row, "repeated": False}, path)
        return None if item is None else [item]

    def _single(self, value: Value, row: dict[str, Any], path: Path) -> Any:
        if row["type"] == "message":
            built = self._message(value, row["message"], path)
            hollow = built == {} and value.content and row["message"] in UNSET_IF_HOLLOW
            return None if hollow else built
        if row["type"] == "enum":
            return self._enum(value, row["values"], path)
        if limit := LIMITS.get(row["type"]):
            return self._integer(value, limit, path)
        convert = {
            "bool": self._bool,
            "double": self._double,
            "duration": self._duration,
            "map": self._map,
            "string": self._text,
            "timestamp": self._timestamp,
        }
        return convert[row["type"]](value, path)

    def _text(self, value: Value, path: Path) -> str | None:
        if value.content is UNREADABLE:
            return self._mark_unreadable(path)
        if not isinstance(value.content, str):
            if isinstance(value.content, dict | list):
                return self._add_wrong_type(path, "must be text", value, "write text")
            hint = hints.not_text(value.content, value.text)
            if IN_ENV in path and not isinstance(value.content, bool):
                hint = "write the value in quotes"
            what, quoted = "the value must be text", Mend("value", value.text)
            mend = quoted if value.text else None
            return self._add("not-text-value", path, what, value.text, hint, mend=mend)
        try:
            text = resolve_references(value.content, self.table)
        except UnknownReferenceError as unknown:
            what, shown = "this reference is unknown", "${" + unknown.name + "}"
            return self._add("unknown-reference", path, what, shown, unknown.hint)
        self.used.update(references_in(value.content))
        return text

    def _map(self, value: Value, path: Path) -> dict[str, str] | None:
        if not isinstance(value.content, dict):
            what = "must be a mapping of text to text"
            return self._add_wrong_type(path, what, value, "write name: value")
        texts = {key: self._text(item, (*path, key)) for key, item in value.content.items()}
        return {key: text for key, text in texts.items() if text is not None}

    def _bool(self, value: Value, path: Path) -> bool | None:
        if isinstance(value.content, bool):
            return value.content
        word = value.content.lower() if isinstance(value.content, str) else ""
        mend = Mend("value", word == "true") if word in ("true", "false") else None
        what, hint = "must be true or false", "write true or false without quotes"
        return self._add_wrong_type(path, what, value, hint, mend)

    def _integer(self, value: Value, limit: int, path: Path) -> int | None:
        number = value.content
        if isinstance(number, str) and re.fullmatch(r"-?[0-9]{1,19}", number):
            number = int(number)  # JSON writes int64 as text
        if isinstance(number, bool) or not isinstance(number, int):
            whole = hints.whole_number(value.text)
            mend = None if whole is None else Mend("value", whole)
            hint = "write only digits, like 4" if whole is None else f"write {whole}"
            return self._add_wrong_type(path, "must be a whole number", value, hint, mend)
        if not DIGITS.fullmatch(value.text):
            what = f"YAML reads this number as {number}"
            return self._add("yaml-number", path, what, value.text, "write only decimal digits")
        if not -limit <= number < limit:
            hint = f"write a number from {-limit:,} to {limit - 1:,}"
            return self._add("number-range", path, "the number is out of range", value.text, hint)
        return number

    def _double(self, value: Value, path: Path) -> float | int | None:
        number = value.content
        if isinstance(number, str) and hints.NUMBER.fullmatch(number):
            # YAML 1.1 reads 1e-4 as text and only 1.0e-4 as a number, unlike other parsers.
            number = float(number)
        if isinstance(number, bool) or not isinstance(number, int | float):
            hint = "write a number such as 0.1 or 1.0e-4"
            return self._add_wrong_type(path, "must be a number", value, hint)
        if isinstance(number, int) and not DIGITS.fullmatch(value.text):
            what = f"YAML reads this number as {number}"
            return self._add("yaml-number", path, what, value.text, "write only decimal digits")
        if not math.isfinite(number):
            what, hint = "the number is not finite", "write a finite number"
            return self._add("number-range", path, what, value.text, hint)
        whole = isinstance(number, int) or not number.is_integer() or abs(number) >= 2**53
        return number if whole else int(number)  # 1 and 1.0 are the same double

    def _timestamp(self, value: Value, path: Path) -> str | None:
        if isinstance(value.content, str) and TIMESTAMP.match(value.content):
            return value.content
        got, hint = value.text or "a mapping or list", 'write RFC 3339, like "2027-01-31T12:00:00Z"'
        return self._add("timestamp-format", path, "the value must be a timestamp", got, hint)

    def _duration(self, value: Value, path: Path) -> str | None:
        if isinstance(value.content, str) and DURATION.match(value.content):
            return value.content
        got, duration = value.text or "a mapping or list", hints.seconds(value.text)
        mend = Mend("value", duration) if duration else None
        what = "the value must be a duration"
        hint = f'write "{duration}"' if duration else 'write seconds with an s, like "3600s"'
        return self._add("duration-format", path, what, got, hint, mend=mend)

    def _enum(self, value: Value, names: list[str], path: Path) -> str | None:
        if value.content in names:
            return value.content
        if not isinstance(value.content, str):
            hint = f"write a name such as {names[-1]}"
            return self._add_wrong_type(path, "must be the name of an enum value", value, hint)
        what, hint = "the API does not define this enum value", hints.not_a_value(value.text, names)
        mend = hints.mend_of_value(value.text, names)
        return self._add("enum-value", path, what, value.text, hint, mend=mend)

    def _check_oneofs(
        self, fields: dict[str, Any], result: dict[str, Any], keys: list[str], path: Path
    ) -> None:
        groups: dict[str, list[str]] = {}
        for field in result:
            if group := fields[field].get("oneof"):
                groups.setdefault(group, []).append(field)
        for chosen in groups.values():
            if len(chosen) > 1:
                names = " and ".join(chosen)
                self._mark_unreadable(path)
                key = next(k for k in reversed(keys) if to_camel_case(k) in chosen)
                location = self.document.location((*path, key), key=True)
                what, hint = f"{names} exclude each other", "remove all but one of these fields"
                self.problems.append(Problem(what, "", hint, path, location, "one-of"))

    def _add_unknown_field(
        self, key: str, field: str, name: str, path: Path, others: Mapping[str, Value]
    ) -> None:
        rule, hint = hints.not_a_field(key, field, name, self.kind)
        row = messages()["CustomJob"].get(field)
        if row and not path[:-1] and not self._rest_form:
            hint = "remove the field, or write all other fields below a jobSpec"
        meant = hints.certain_field(key, name, self.kind) if rule == "unknown-field" else None
        present = {to_camel_case(other) for other in others}
        mend = Mend("rename", meant) if meant and meant not in present else None
        if rule == "misplaced-field":
            mend = self._move(field, name, others)
        self._mark_unreadable(path)
        location = self.document.location(path, key=True)
        what = f"{name.rpartition('.')[2]} has no field of this name"
        self.problems.append(Problem(what, "", hint, path, location, rule, mend=mend))

    def _move(self, field: str, name: str, others: Mapping[str, Value]) -> Mend | None:
        """Return a fix that moves ``field`` into a nearby message, if only one has this field."""
        here, rows = self._within[-1][1], messages()[name]
        near = self._within[-2:-1] + [
            (rows[to_camel_case(key)]["message"], (*here, key))
            for key, item in others.items()
            if isinstance(item.content, dict) and "message" in rows.get(to_camel_case(key), {})
        ]
        targets = [path for message, path in near if field in messages()[message]]
        return Mend("move", target=targets[0]) if len(targets) == 1 else None

    def _add_wrong_type(
        self, path: Path, what: str, value: Value, hint: str = "", mend: Mend | None = None
    ) -> None:
        kinds = {dict: "a mapping", list: "a list"}
        got = kinds.get(type(value.content), value.text)
        subject = "the value" if path else "the file"
        self._add("wrong-type", path, f"{subject} {what}", got, hint, mend=mend)

    def _add(
        self, rule: str, path: Path, what: str, value: str, hint: str, mend: Mend | None = None
    ) -> None:
        self._mark_unreadable(path)
        location = self.document.location(path)
        if IN_ENV in path:
            value = ""  # a misplaced value can be a secret
        if len(self.problems) < MAX_PROBLEMS:
            shown = redacted(value)
            self.problems.append(Problem(what, shown, hint, path, location, rule, mend=mend))

    def _remark(
        self, rule: str, path: Path, what: str, hint: str, mend: Mend | None = None
    ) -> None:
        location = self.document.location(path, key=True)
        level = registry.FILE_LEVELS[rule]
        self.remarks.append(Problem(what, "", hint, path, location, rule, level, mend))

    def _mark_unreadable(self, path: Path) -> None:
        place: list[str | int] = [] if self._rest_form else ["jobSpec"]
        for end, part in enumerate(path, start=1):
            place.append(to_camel_case(part) if isinstance(part, str) else part)
            if path[:end] in self._lone:
                place.append(0)
        self.unreadable.append(tuple(place))


def _is_unset(content: Any, key: str | int) -> bool:
    if isinstance(key, int):
        return False
    return content is None or (content == "" and to_camel_case(key) in UNSET_IF_EMPTY)


def _may_be_item(content: Any, message: str) -> bool:
    if isinstance(content, dict):
        fields = messages().get(message, {})
        return bool(content) and all(to_camel_case(key) in fields for key in content)
    return not message and content is not None


def _variables(value: Value) -> tuple[tuple[str, str], ...]:
    """Return name and value of each variable that is written ``NAME: value`` or ``NAME=value``."""
    content = value.content
    if isinstance(content, str):
        name, equals, text = content.partition("=")
        return ((name, text),) if equals and VARIABLE.fullmatch(name) else ()
    if not isinstance(content, dict) or not content.keys().isdisjoint(messages()[hints.ENV_VAR]):
        return ()
    contents = [item.content for item in content.values()]
    if UNREADABLE in contents or any(isinstance(item, dict | list) for item in contents):
        return ()
    if not all(VARIABLE.fullmatch(name) for name in content):
        return ()
    return tuple((name, "" if v.content is None else v.text) for name, v in content.items())
