"""Checks of single properties, which return the error of the official plugin or None."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Any, Final

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
