"""Event streams made by hand, in the engine's own form."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review.risks import RISKS

JOB = "pulumi-python:dynamic/vertex:CustomJob"
BUCKET = "gcp:storage/bucket:Bucket"
MEMBER = "gcp:storage/bucketIAMMember:BucketIAMMember"
ACCOUNT = "trainer-dev@acme-ml-dev.iam.gserviceaccount.com"

Event = dict[str, Any]


def step(
    op: str,
    type_: str,
    name: str,
    old: Mapping[str, Any] | None = None,
    new: Mapping[str, Any] | None = None,
    **more: Any,
) -> Event:
    """A resourcePreEvent. ``more``: protect (old, new), outputs (of old), keys, detailedDiff.

    The resource is the program's: a child of one of its components.
    """
    protect = more.pop("protect", (False, False))
    outputs = more.pop("outputs", {})

    def state(inputs: Mapping[str, Any] | None, which: int) -> Event | None:
        if inputs is None:
            return None
        seen = outputs if which == 0 else {}
        return {"inputs": dict(inputs), "outputs": seen, "protect": protect[which]}

    metadata = {
        "op": op,
        "urn": f"urn:pulumi:dev::vertex-training::vertextraining:test:Test${type_}::{name}",
        "type": type_,
        "old": state(old, 0),
        "new": state(new, 1),
        "detailedDiff": None,
        **more,
    }
    return {"resourcePreEvent": {"metadata": metadata, "planning": True}}


def create(type_: str, resource: str, /, **inputs: Any) -> Event:
    return step("create", type_, resource, new=inputs)


def delete(type_: str, resource: str, /, **inputs: Any) -> Event:
    return step("delete", type_, resource, old=inputs)


def said(severity: str, message: str) -> Event:
    return {"diagnosticEvent": {"severity": severity, "message": message, "color": "never"}}


def violation(policy: str, level: str, message: str, urn: str = "") -> Event:
    found = {"policyName": policy, "policyPackName": "acme", "enforcementLevel": level}
    return {"policyEvent": {**found, "message": message, "resourceUrn": urn}}


def summary(result: str = "succeeded", **packs: str) -> Event:
    return {"summaryEvent": {"result": result, "PolicyPacks": packs, "resourceChanges": {}}}


def lines(*told: Event, config: Mapping[str, str] | None = None) -> list[str]:
    """The stream: a prelude, the events, and a summary unless one is among them."""
    config = config or {"gcp:project": "acme-ml-dev", "gcp:region": "us-central1"}
    stream = [{"preludeEvent": {"config": config}}, *told]
    if not any("summaryEvent" in event for event in told):
        stream.append(summary())
    numbered = zip(itertools.count(), stream, strict=False)
    return [json.dumps({"sequence": n, "timestamp": 1795271664 + n, **e}) for n, e in numbered]


def plan(*told: Event) -> Plan:
    return events.parse(lines(*told), "dev")


def pool(machine: str = "n1-standard-4", replicas: int = 1, image: str = "", **spec: Any) -> Event:
    made: Event = {"machineSpec": {"machineType": machine, **spec}, "replicaCount": replicas}
    return {**made, "containerSpec": {"imageUri": image or f"example/{machine}:v1"}}


def job(name: str, *pools: Event, timeout: str = "3600s", run: int = 1, **spec: Any) -> Event:
    """Inputs of a job."""
    message = {
        "displayName": f"dev-{name}",
        "jobSpec": {
            "serviceAccount": ACCOUNT,
            "scheduling": {"timeout": timeout},
            "baseOutputDirectory": {"outputUriPrefix": f"gs://out/{name}/id-of-{name}-{run}"},
            "workerPoolSpecs": list(pools) or [pool()],
            **spec,
        },
    }
    return {
        "submission": {
            "project": "acme-ml-dev",
            "region": "us-central1",
            "stack": "dev",
            "job": name,
            "run": run,
        },
        "request": json.dumps(message),
        "requestId": f"id-of-{name}-{run}",
        "options": {
            "labels": {"stack": "dev"},
            "controlBucket": "acme-ml-dev-control-dev",
            "onDelete": "keep",
        },
        "__provider": "gASVNQ",
    }


def member(bucket: str, role: str = "roles/storage.objectViewer", who: str = "") -> Event:
    """Inputs of a grant on a bucket."""
    return {"bucket": bucket, "role": role, "member": who or f"serviceAccount:{ACCOUNT}"}


def findings(plan: Plan, headline: str) -> list[Any]:
    """What a plan has of the kinds of risks with this headline."""
    return [e for kind in RISKS if kind.headline == headline for e in kind(plan)]
