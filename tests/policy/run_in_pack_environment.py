"""Run every case through Pulumi's policy SDK, in the pack's own environment.

Prints JSON: {case id: {policy id: [violations]}}. The key "right" has the violations of the correct
resources, the key "unknown" those of a bucket with unknown inputs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "infra"), str(Path(__file__).parent)]

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

from vertex_training.guardrails import pack  # noqa: E402
from vertex_training.guardrails.policy import load  # noqa: E402

SERVED: Final = [pack.to_sdk_policy(policy) for policy in load()]
UNKNOWN: Final = cases.Declared(
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


def violations_of(declared: cases.Declared) -> dict[str, list[str]]:
    """Policy id -> its violations, by the same calls as the engine's."""
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


answers = {case.id: violations_of(case.bad) for case in cases.wrong()}
answers["right"] = {k: v for declared in cases.right() for k, v in violations_of(declared).items()}
answers["unknown"] = violations_of(UNKNOWN)
print(json.dumps(answers))
