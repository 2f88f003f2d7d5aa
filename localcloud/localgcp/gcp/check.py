"""Check the inputs of a resource, and fill in automatic names and defaults.

Checks of single properties, such as ``cidr``, return the official plugin's error or None. The texts
are measured: the fixture ``gcp-invalid-inputs.txt`` lists the refusals, and inputs that the plugin
accepts although the cloud refuses them.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from localgcp.errors import PluginError
from localgcp.gcp.codec import Secret, Unknown, has_unknown, plain
from localgcp.gcp.schema import Property, TypeSchema

DEFAULTS: Final = "__defaults"


@dataclass(frozen=True)
class Place:
    """A property's path in Pulumi's spelling, in Terraform's spelling, and without indices."""

    pulumi: str = ""
    tf: str = ""
    rule: str = ""
    # The elements of a set have no stable order, so messages name only the set.
    inside_set: bool = False

    def child(self, prop: Property) -> Place:
        def join(left: str, right: str) -> str:
            return f"{left}.{right}" if left else right

        pulumi = self.pulumi if self.inside_set else join(self.pulumi, prop.name)
        return Place(pulumi, join(self.tf, prop.tf), join(self.rule, prop.name), self.inside_set)

    def element(self, prop: Property, index: int) -> Place:
        """Return the location of one element of this list or set."""
        frozen = self.inside_set or prop.is_set
        pulumi = self.pulumi if frozen else f"{self.pulumi}[{index}]"
        return Place(pulumi, f"{self.tf}.{index}", self.rule, frozen)

    def inner(self) -> Place:
        """Return the location of a nested block that occurs once; Terraform's path has index 0."""
        return Place(self.pulumi, f"{self.tf}.0", self.rule, self.inside_set)


def check(
    type_: TypeSchema, name: str, olds: Mapping[str, Any], news: Mapping[str, Any], seed: bytes
) -> tuple[dict[str, Any], list[str]]:
    """Return the inputs ``news`` with defaults, and their errors. Raises PluginError."""
    inputs = dict(news)
    defaulted: list[str] = []
    for prop in type_.properties.values():
        if prop.auto_name and inputs.get(prop.name) is None:
            kept = olds.get(prop.name) if prop.name in (olds.get(DEFAULTS) or ()) else None
            inputs[prop.name] = kept or auto_name(type_, name, seed)
            defaulted.append(prop.name)
    inputs = _with_defaults(type_.properties, inputs, defaulted)
    problems = _problems(type_, type_.properties, plain(inputs), Place())
    return inputs, [f"{text}. Examine values at '{name}.{where}'." for where, text in problems]


def _with_defaults(
    props: Mapping[str, Property], value: Mapping[str, Any], made: list[str]
) -> dict[str, Any]:
    result = {
        key: _nested_defaults(props[key], item) if key in props else item
        for key, item in value.items()
    }
    for prop in props.values():
        # The official plugin fills in only defaults that differ from the type's zero value.
        if prop.input and prop.default and result.get(prop.name) is None:
            result[prop.name] = prop.default
            made.append(prop.name)
    result[DEFAULTS] = sorted(made)
    return result


def _nested_defaults(prop: Property, value: Any) -> Any:
    match value:
        case Secret():
            return Secret(_nested_defaults(prop, value.value))
        case dict() if prop.is_object:
            return _with_defaults(prop.children, value, [])
        case list() if prop.type.endswith("<object>"):
            return [
                _with_defaults(prop.children, item, []) if isinstance(item, dict) else item
                for item in value
            ]
    return value


def _problems(
    type_: TypeSchema, props: Mapping[str, Property], value: Mapping[str, Any], place: Place
) -> Iterator[tuple[str, str]]:
    for key in value:
        if key not in props and key != DEFAULTS:
            yield f"{place.pulumi}.{key}".lstrip("."), "Invalid or unknown key"
    for prop in props.values():
        item = value.get(prop.name)
        here = place.child(prop)
        if item is None:
            if prop.required:
                text = f'The argument "{here.tf}" is required, but no definition was found.'
                yield here.pulumi, f"Missing required argument. {text}"
        elif not prop.input:
            text = f'Can\'t configure a value for "{prop.tf}": its value will be decided'
            yield (
                here.pulumi,
                f"Value for unconfigurable attribute. {text} automatically based on the result of "
                "applying this configuration",
            )
        else:
            yield from _value_problems(type_, prop, item, here)
        yield from _combination_problems(prop, props, value, here)


def _value_problems(
    type_: TypeSchema, prop: Property, item: Any, here: Place
) -> Iterator[tuple[str, str]]:
    if isinstance(item, Unknown):
        return
    if prop.values and item != "" and item not in prop.values:
        # The official plugin lists "" for an optional property, which means "unset".
        allowed = [*prop.values, *([] if prop.required else [""])]
        listed = " ".join(f'"{choice}"' for choice in allowed)
        yield here.pulumi, f"expected {here.tf} to be one of [{listed}], got {item}"
    rule = type_.traits.rules.get(here.rule)
    if prop.type.startswith("map<"):
        checkable = isinstance(item, dict) and not has_unknown(item)
    else:
        checkable = isinstance(item, int | float if prop.type == "int" else str)
    if rule and checkable and (message := rule(item)):
        yield here.pulumi, message
    if prop.open or not prop.children:
        return
    if prop.is_object and isinstance(item, dict):
        yield from _problems(type_, prop.children, item, here.inner())
    elif prop.is_collection and isinstance(item, list):
        for index, element in enumerate(item):
            if isinstance(element, dict):
                inside = here.element(prop, index)
                yield from _problems(type_, prop.children, element, inside)


def _combination_problems(
    prop: Property, props: Mapping[str, Property], value: Mapping[str, Any], here: Place
) -> Iterator[tuple[str, str]]:
    set_fields = {p.tf for p in props.values() if value.get(p.name) is not None}
    if prop.exactly_one_of:
        group = sorted({*prop.exactly_one_of, here.tf})
        chosen = [path for path in group if path.rpartition(".")[2] in set_fields]
        listed, rule = ",".join(group), f'Invalid combination of arguments. "{here.tf}": '
        if not chosen:
            yield here.pulumi, f"{rule}one of `{listed}` must be specified"
        elif len(chosen) > 1:
            both = ",".join(chosen)
            text = f"only one of `{listed}` can be specified, but `{both}` were specified."
            yield here.pulumi, rule + text
    parent = here.tf.rpartition(".")[0]
    siblings = [o for o in prop.conflicts_with if o.rpartition(".")[0] == parent]
    for other in siblings if prop.tf in set_fields else ():
        if other.rpartition(".")[2] in set_fields:
            rule = f'Conflicting configuration arguments. "{here.tf}": '
            yield here.pulumi, f"{rule}conflicts with {other}"


RANDOM_LENGTH: Final = 7


def auto_name(type_: TypeSchema, name: str, seed: bytes) -> str:
    """Return an automatic name for the resource ``name``. Raises PluginError if it is too long."""
    traits = type_.traits
    prefix, longest = name if traits.name_as_given else name.lower(), traits.longest_name
    if len(prefix) + 1 + RANDOM_LENGTH > longest:
        raise PluginError(
            f"could not make instance of '{type_.token}': name '{prefix}-' plus {RANDOM_LENGTH} "
            f"random chars is longer than maximum length {longest}"
        )
    digest = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(RANDOM_LENGTH)
    return f"{prefix}-{digest[:RANDOM_LENGTH]}"


_GCE_NAME: Final = "^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"
_ACCOUNT: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
_POOL: Final = "workload_identity_pool_id"
_IAM_DOC: Final = "https://cloud.google.com/billing/docs/reference/rest/v1/Policy#Binding"
_LABEL_DOC: Final = "https://cloud.google.com/storage/docs/tags-and-labels#bucket-labels"


def gce_name(value: Any) -> str | None:
    """Check a name of Compute Engine."""
    if re.fullmatch(_GCE_NAME, value):
        return None
    return f'"name" ("{value}") doesn\'t match regexp "{_GCE_NAME}"'


def account_id(value: Any) -> str | None:
    """Check the id of a service account."""
    if not 6 <= len(value) <= 30:
        return f'"account_id" ("{value}") must be between 6 and 30 characters long'
    if not re.fullmatch(_ACCOUNT, value):
        return f'"account_id" ("{value}") must match regex "{_ACCOUNT}"'
    return None


def bucket_labels(value: Any) -> str | None:
    """Check the label keys of a bucket."""
    for key in sorted(value):
        # International lower-case letters are legal, too.
        is_plain = re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key)
        if not is_plain and (key.isascii() or not key.islower()):
            return f'"{key}" is an invalid label key. See {_LABEL_DOC}'
    return None


def json_object(value: Any) -> str | None:
    """Check that a text is a JSON object."""
    try:
        is_object = isinstance(json.loads(value), dict)
    except (TypeError, ValueError):
        is_object = False
    return None if is_object else '"dashboard_json" contains an invalid JSON'


def iam_member(value: Any) -> str | None:
    """Check a member of an IAM policy."""
    if ":" in value or value in ("allUsers", "allAuthenticatedUsers"):
        return None
    return (
        f'invalid value "{value}" for member (IAM members must have one of the values outlined '
        f"here: {_IAM_DOC})"
    )


def cidr(value: Any) -> str | None:
    """Check a CIDR range."""
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return f'"ip_cidr_range" is not a valid IP CIDR range: invalid CIDR address: {value}'
    return None


def pool_id(value: Any) -> str | None:
    """Check the id of a workload identity pool."""
    if len(value) < 4:
        return f'"{_POOL}" cannot be smaller than 4 characters'
    if len(value) > 32:
        return f'"{_POOL}" cannot be greater than 32 characters'
    if value.startswith("gcp-"):
        return f'"{_POOL}" ("{value}") can not start with "gcp-"'
    return None


def rotation_period(value: Any) -> str | None:
    """Check the rotation period of a key."""
    seconds = value.removesuffix("s")
    if seconds.isdecimal() and int(seconds) < 86_400:
        return "Rotation period must be greater than one day"
    return None


def api_name(value: Any) -> str | None:
    """Check the name of an API."""
    if "." in value:
        return None
    return f"expected {value} to be a domain like serviceusage.googleapis.com"


def reservation_count(value: Any) -> str | None:
    """Check the number of machines of a reservation."""
    if value < 1:
        return f"expected specific_reservation.0.count to be at least (1), got {value}"
    return None


def firewall_needs_a_source(inputs: Mapping[str, Any]) -> str | None:
    """Check that a firewall rule has a source; the plugin checks this in Diff and Create."""
    if inputs.get("direction", "INGRESS") != "INGRESS":
        return None
    if any(inputs.get(key) for key in ("sourceTags", "sourceRanges", "sourceServiceAccounts")):
        return None
    return "one of source_tags, source_ranges, or source_service_accounts must be defined"
