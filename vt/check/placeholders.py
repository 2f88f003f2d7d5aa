"""What references stand for when no stack is given: values of the right form, and nothing more.

``${buckets.data}`` is then some bucket's URI, so that every rule on form still holds, while
nothing is said about whether this bucket exists: that takes a stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from infra import naming
from infra.customjob.request import references
from infra.customjob.request.job_file import Submission
from infra.located_yaml import document

PROJECT = "placeholder-project"
NUMBER = "100000000000"
REGION = "us-central1"
STACK = "dev"

ATTACHMENT = f"projects/{PROJECT}/regions/{REGION}/networkAttachments/{STACK}"
NAMES = naming.Names(PROJECT, NUMBER, REGION, STACK)
ZERO_DIGEST = "sha256:" + "0" * 64


def _bucket(key: str) -> dict[str, Any]:
    name = NAMES.bucket(key)
    return {"": f"gs://{name}", ".name": name, ".mount": f"/gcs/{name}"}


def _package(key: str) -> dict[str, Any]:
    return {"": f"gs://{NAMES.bucket(naming.STAGING)}/packages/{key}-0000000000000000.tar.gz"}


def _reservation(key: str) -> dict[str, Any]:
    name = f"projects/{PROJECT}/zones/{REGION}-a/reservations/{key}"
    affinity = {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [name],
    }
    return {"": affinity, ".name": name}


#: Kind -> the references that a key of this kind gives, by what follows the key.
KEYED: dict[str, Callable[[str], dict[str, Any]]] = {
    "buckets": _bucket,
    "serviceAccounts": lambda key: {"": NAMES.account_email(key)},
    "secrets": lambda key: {"": NAMES.secret(key)},
    "packages": _package,
    "images": lambda key: {"": f"{NAMES.repository()}/{key}@{ZERO_DIGEST}"},
    "reservations": _reservation,
}
FIXED: dict[str, Any] = {
    "stack.name": STACK,
    "stack.project": PROJECT,
    "stack.projectNumber": NUMBER,
    "stack.region": REGION,
    "network.name": f"projects/{NUMBER}/global/networks/{STACK}",
    "network.attachment": ATTACHMENT,
    "network.interface": {"networkAttachment": ATTACHMENT},
}
#: A reserved range of the network, by its key.
RANGE = re.compile(r"network\.ranges\.([a-z](?:[a-z0-9-]{0,38}[a-z0-9])?)\Z")
#: One name of each kind, for hints: ``${buckts.data}``, did you mean 'buckets.data'?
EXAMPLES = {
    "buckets": "data",
    "serviceAccounts": "trainer",
    "secrets": "api-key",
    "packages": "code",
    "images": "trainer",
    "reservations": "gpus",
}


def table(data: bytes) -> dict[str, Any]:
    """References for the job file ``data``: every one in it that is well-formed, and examples."""
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
    """A submission of nobody's, for the references to the job itself."""
    return Submission(PROJECT, REGION, STACK, job, run=1)


def _entries(kind: str, key: str) -> dict[str, Any]:
    return {f"{kind}.{key}{suffix}": value for suffix, value in KEYED[kind](key).items()}
