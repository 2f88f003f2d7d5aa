"""Run by the pack's own Python: every case through Pulumi's SDK for policies, answers as JSON.

Prints {case id: {policy id: [what it says]}}, under "right" those of the resources done right, and
under "unknown" what is said of a bucket of which a preview knows next to nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "policy"), str(Path(__file__).parent)]

import cases  # noqa: E402
from pulumi_policy import (  # noqa: E402
    PolicyCustomTimeouts,
    PolicyResourceOptions,
    ResourceValidationArgs,
)
from pulumi_policy.proxy import (  # noqa: E402
    UNKNOWN_ARRAY_VALUE,
    UNKNOWN_BOOLEAN_VALUE,
    UNKNOWN_OBJECT_VALUE,
    UNKNOWN_STRING_VALUE,
    unknown_checking_proxy,
)

from guardrails import pack  # noqa: E402
from guardrails.policy import load  # noqa: E402

SERVED = [pack.served(policy) for policy in load()]
UNKNOWN = cases.Declared(
    "gcp:storage/bucket:Bucket",
    "unknown",
    {
        "name": UNKNOWN_STRING_VALUE,
        "location": UNKNOWN_STRING_VALUE,
        "uniformBucketLevelAccess": UNKNOWN_BOOLEAN_VALUE,
        "publicAccessPrevention": UNKNOWN_STRING_VALUE,
        "versioning": {"enabled": UNKNOWN_BOOLEAN_VALUE},
        "encryption": UNKNOWN_OBJECT_VALUE,
        "lifecycleRules": UNKNOWN_ARRAY_VALUE,
    },
)


def said(declared: cases.Declared) -> dict[str, list[str]]:
    """Policy id -> what it reports, by the way the engine's call takes."""
    options = PolicyResourceOptions(
        declared.protect, [], None, [], PolicyCustomTimeouts(0, 0, 0), [], None
    )
    found: dict[str, list[str]] = {}
    for policy in SERVED:
        args = ResourceValidationArgs(
            declared.type,
            unknown_checking_proxy(dict(declared.props)),
            f"urn:pulumi:prod::vertex-training::{declared.type}::{declared.name}",
            declared.name,
            options,
            None,
            cases.SETTINGS.get(policy.name),
        )
        reports: list[str] = []
        policy.validate(args, reports.append)
        if reports:
            found[policy.name] = reports
    return found


answers = {case.id: said(case.bad) for case in cases.wrong()}
answers["right"] = {k: v for declared in cases.right() for k, v in said(declared).items()}
answers["unknown"] = said(UNKNOWN)
print(json.dumps(answers))
