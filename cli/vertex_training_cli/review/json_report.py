"""Writes the report as JSON with a schema version, for programs.

A value is written with its fields, in camel case; ``KEYS`` lists the exceptions.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from vertex_training.catalog.costs import PoolCost
from vertex_training.customjob.batch.offers import Offer
from vertex_training.errors import Location, Problem
from vertex_training_cli.engine.plan import Diagnostic, JobObservation, PolicyViolation
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.headline import answers, is_partial, verdict
from vertex_training_cli.review.jobs import JobChange, RungRequest
from vertex_training_cli.review.parts import Change, Finding
from vertex_training_cli.review.report import ReviewReport

#: Increased when a key changes its meaning or is removed; new keys may come at any time.
VERSION: Final = 1
#: Keys of an endpoint in JSON, as in ``KEYS``.
_ENDPOINT: Final = (
    "name model action before after machine reachBefore=reach_before reach account? "
    "monthlyUsdBefore=cost_before.monthly monthlyUsd=cost.monthly price=cost.rate metrics"
)
#: Class -> its keys in JSON, if they differ from its fields. ``key=path`` reads the value at
#: another path; ``key?`` writes null for an empty value.
KEYS: Final[Mapping[type, str]] = {
    ReviewReport: (
        "stack project region source digest expected? jobs unseenImages=unseen_images images "
        "otherImages=other_images models endpoints snapshots watching reservations reachability "
        "unjudgedTypes=unjudged "
        "destroyed protected objects=folders changes unchanged problems errors notes warnings "
        "preflight?"
    ),
    JobChange: (
        "name action region strategy reservation? account network? images pools ladder? "
        "idleStop?=idle_stop "
        "hourlyUsd=cost.hourly timeoutSeconds=cost.timeout defaultTimeout=cost.default_timeout "
        "worstCaseUsd=cost.worst_case worstCaseUsdBefore=cost_before.worst_case offers "
        "previousState?=previous_state now differences"
    ),
    Offer: (
        "backend worstCaseUsd=cost.worst_case timeoutSeconds=cost.timeout attempts=cost.attempts "
        "refusal?"
    ),
    RungRequest: "rung=number what strategy reservation? worstCaseUsd=cost.worst_case",
    PoolCost: (
        "index machineType=machine_type acceleratorType?=accelerator acceleratorCount=count "
        "machines hourlyUsd=hourly price=rate"
    ),
    JobObservation: (
        "state seconds usdSoFar=cost lastLine?=last_line checkpointSeconds=checkpoint.seconds"
    ),
    IamBinding: "member role kind target condition? public=is_public reason?",
    PolicyViolation: "policy pack level severity? resource?=urn message",
    Problem: "where=location what=statement got=value hint rule",
}


def render(report: ReviewReport) -> str:
    """Return the report as one JSON document."""
    return json.dumps(document(report), indent=2, ensure_ascii=False) + "\n"


def document(report: ReviewReport) -> dict[str, Any]:
    """Return the report as plain data. Money is in USD; null means an unknown price."""
    json_document = {
        "version": VERSION,
        "verdict": verdict(report),
        "answers": {e.question: list(e.phrases) for e in answers(report, lambda text, _=0: text)},
        "outcome": report.outcome.name.lower().replace("_", "-"),
        "exitCode": int(report.outcome),
        "complete": not is_partial(report),
        "worstCaseUsd": round(report.worst_case, 2),
        "unpricedJobs": [job.name for job in report.unpriced],
        **_plain(report),
        "endpoints": [_plain(endpoint, _ENDPOINT) for endpoint in report.endpoints],
        "rights": {verb: _plain(getattr(report, verb)) for verb in ("gained", "lost", "kept")},
        "access": {"gained": _plain(report.access_gained), "lost": _plain(report.access_lost)},
        "policies": {
            "packs": list(report.packs),
            "count": report.policies,
            "levels": dict(report.levels),
            "violations": _plain(report.violations),
        },
    }
    if report.schedules:
        json_document["schedules"] = _plain(report.schedules)
    for kind, findings in report.risks.items():
        section, _, key = kind.key.rpartition(".")
        if key:
            names_alone = not kind.fields and all(type(e) is Finding for e in findings)
            listed = [e.name if names_alone else _plain(e, kind.fields) for e in findings]
            (json_document[section] if section else json_document)[key] = listed
    others = [_plain(other, "name version=new uri jobs") for other in report.other_images]
    json_document["otherImages"] = others
    for image in (*json_document["images"], *json_document["otherImages"]):
        image["origin"] = report.origins.get(image["uri"])
    return json_document


def _plain(value: Any, keys: str = "") -> Any:
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    if isinstance(value, Diagnostic):
        return value.message
    if isinstance(value, Location):
        return str(value)
    if isinstance(value, Change):
        names = list(vars(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
    else:
        return value
    camel = {name: re.sub(r"_([a-z])", lambda match: match[1].upper(), name) for name in names}
    all_keys = " ".join(f"{key}={name}" for name, key in camel.items())
    plain: dict[str, Any] = {}
    for word in (keys or KEYS.get(type(value)) or all_keys).split():
        key, _, path = word.partition("=")
        name = key.removesuffix("?")
        inner = _plain(_at(value, path or name))
        plain[name] = None if key != name and not inner else inner
    if isinstance(value, JobChange) and value.cost.trials is not None:
        # ``hourlyUsd`` covers all parallel trials.
        plain["trials"] = {"max": value.cost.trials, "parallel": value.cost.parallel}
    return plain


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name) if value is not None else None
    return value
