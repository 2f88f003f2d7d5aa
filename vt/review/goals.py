"""What a new thing will be called, where the engine only says that it is not known yet.

A grant on a secret that does not exist refers to an output of it, which a preview does not know.
Which resource that is stands in no event, but in the plan file that ``pulumi preview --save-plan``
writes: ``propertyDependencies`` of each resource's goal (pulumi/pulumi v3.259.0,
sdk/go/common/apitype/plan.go). That resource's own inputs are known, its name among them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from vt.review.events import Plan, Step
from vt.review.values import UNKNOWN

#: Of a resource, each property's resources it was made from: URN -> property -> URNs.
Goals = Mapping[str, Mapping[str, tuple[str, ...]]]


def read(document: Mapping[str, Any]) -> Goals:
    """What a plan file says of where each property comes from; nothing else of it is kept."""
    plans = document.get("resourcePlans") or {}
    goals = {urn: planned.get("goal") or {} for urn, planned in plans.items()}
    return {
        urn: {name: tuple(urns or ()) for name, urns in goal["propertyDependencies"].items()}
        for urn, goal in goals.items()
        if goal.get("propertyDependencies")
    }


def named(plan: Plan, goals: Goals) -> Plan:
    """The plan with ``Step.refers``: unknown inputs by the name of what they refer to.

    An input is left unknown where it was made from several resources, or from one whose name is
    not known either.
    """
    by_urn = {step.urn: step for step in plan.steps}
    project = plan.config.get("gcp:project", "")

    def refers(step: Step) -> dict[str, str]:
        made_from, found = goals.get(step.urn, {}), dict[str, str]()
        for key, value in step.inputs.items():
            sources = made_from.get(key, ())
            if value == UNKNOWN and len(sources) == 1 and sources[0] in by_urn:
                found[key] = _name(by_urn[sources[0]], project)
        return {key: name for key, name in found.items() if name}

    steps = tuple(dataclasses.replace(step, refers=refers(step)) for step in plan.steps)
    return dataclasses.replace(plan, steps=steps)


def _name(step: Step, project: str) -> str:
    """The resource's name as the API has it; empty if it is not known."""
    name_of = _NAMES.get(step.type)
    inputs = {"project": project, **step.inputs}
    if name_of is None:
        return ""
    try:
        name = name_of(inputs)
    except KeyError:  # named by the provider
        return ""
    return "" if UNKNOWN in name else name


def _account(inputs: Mapping[str, Any]) -> str:
    # The address of an account in project example.com:x ends in x.example.com.
    place = ".".join(reversed(str(inputs["project"]).split(":", 1)))
    address = f"{inputs['accountId']}@{place}.iam.gserviceaccount.com"
    return f"projects/{inputs['project']}/serviceAccounts/{address}"


#: Names of what the stack gives rights on, from its inputs; each is the form that the grant will
#: hold, so that a right that stays is told as one (pulumi-gcp 9.35.0).
_NAMES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "gcp:serviceaccount/account:Account": _account,
    "gcp:secretmanager/secret:Secret": lambda i: f"projects/{i['project']}/secrets/{i['secretId']}",
    "gcp:storage/bucket:Bucket": lambda i: str(i["name"]),
}
