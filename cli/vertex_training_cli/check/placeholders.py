"""Placeholder values of references, for a check without a stack.

``${buckets.data}`` becomes the URI of a fictitious bucket, so that rules on the form apply. The
existence of the bucket is only checked with a stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from vertex_training import naming
from vertex_training.customjob.request import references
from vertex_training.customjob.request.job_file import ID_LENGTH, Submission
from vertex_training.located_yaml import document

#: Properties of the fictitious stack.
PROJECT: Final = "placeholder-project"
NUMBER: Final = "100000000000"
REGION: Final = "us-central1"
STACK: Final = "dev"
#: Values that several references share.
ATTACHMENT: Final = f"projects/{PROJECT}/regions/{REGION}/networkAttachments/{STACK}"
NAMES: Final = naming.Names(PROJECT, NUMBER, REGION, STACK)
ZERO_DIGEST: Final = "sha256:" + "0" * 64


def _bucket(key: str) -> dict[str, Any]:
    name = NAMES.bucket(key)
    return {"": f"gs://{name}", ".name": name, ".mount": f"/gcs/{name}"}


def _snapshot(key: str) -> dict[str, Any]:
    folder = f"{NAMES.bucket('data')}/{naming.SNAPSHOTS}/{STACK}/{key}/{'0' * ID_LENGTH}"
    return {"": f"gs://{folder}", ".mount": f"/gcs/{folder}"}


def _package(key: str) -> dict[str, Any]:
    return {"": f"gs://{NAMES.bucket(naming.STAGING)}/packages/{key}-0000000000000000.tar.gz"}


def _secret(key: str) -> dict[str, Any]:
    name = NAMES.secret(key)
    return {"": name, ".value": f"{name}{naming.NEWEST_VALUE}"}


def _reservation(key: str) -> dict[str, Any]:
    name = f"projects/{PROJECT}/zones/{REGION}-a/reservations/{key}"
    affinity = {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [name],
    }
    return {"": affinity, ".name": name}


#: Kind of entry -> function from an entry's key to the values of its references, by suffix.
KEYED: Final[dict[str, Callable[[str], dict[str, Any]]]] = {
    "buckets": _bucket,
    "serviceAccounts": lambda key: {"": NAMES.account_email(key)},
    "secrets": _secret,
    "packages": _package,
    "images": lambda key: {"": f"{NAMES.repository()}/{key}@{ZERO_DIGEST}"},
    "reservations": _reservation,
    "snapshots": _snapshot,
}
#: Values of references without a key.
FIXED: Final[dict[str, Any]] = {
    "stack.name": STACK,
    "stack.project": PROJECT,
    "stack.projectNumber": NUMBER,
    "stack.region": REGION,
    "network.name": f"projects/{NUMBER}/global/networks/{STACK}",
    "network.attachment": ATTACHMENT,
    "network.interface": {"networkAttachment": ATTACHMENT},
}
#: Reference to a reserved range of the network, by the range's key.
RANGE: Final = re.compile(r"network\.ranges\.([a-z](?:[a-z0-9-]{0,38}[a-z0-9])?)\Z")
#: One name of each kind, for hints: ``${buckts.data}``, did you mean 'buckets.data'?
EXAMPLES: Final = {
    "buckets": "data",
    "serviceAccounts": "trainer",
    "secrets": "api-key",
    "packages": "code",
    "images": "trainer",
    "reservations": "gpus",
    "snapshots": "clicks",
}


def table(data: bytes) -> dict[str, Any]:
    """Return placeholder values of the references in the job file ``data``, and of examples."""
    known = dict(FIXED)
    for kind, key in EXAMPLES.items():
        known |= _entries(kind, key)
    if len(data) <= document.MAX_BYTES:  # a larger file is refused before any reference counts
        for name in set(references.names_in(data.decode("utf-8", errors="replace"))):
            kind, key = name.split(".")[:2]
            if kind in KEYED and naming.KEY.match(key) and len(key) <= 40:
                known |= _entries(kind, key)
            elif range_ := RANGE.match(name):
                known[name] = NAMES.ip_range(range_[1])
    return known


def submission(job: str) -> Submission:
    """Return a placeholder submission of ``job``, for references to the job itself."""
    return Submission(PROJECT, REGION, STACK, job, run=1)


def _entries(kind: str, key: str) -> dict[str, Any]:
    return {f"{kind}.{key}{suffix}": value for suffix, value in KEYED[kind](key).items()}
