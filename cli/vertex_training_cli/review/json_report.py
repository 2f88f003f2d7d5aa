"""The report for programs: JSON with a schema version."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any, Final

from vertex_training.catalog.costs import Rate
from vertex_training.errors import Problem
from vertex_training.plan.access import Access
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.review.capacity import ReservationChange, ReservationCost, ReturnedMachines
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.headline.answers import answers
from vertex_training_cli.review.images.changes import ImageChange, RunningImage
from vertex_training_cli.review.jobs import JobChange
from vertex_training_cli.review.reachability import ReachabilityChange
from vertex_training_cli.review.report import DestructiveChange, ResourceChange, ReviewReport
from vertex_training_cli.review.verdict import verdict

#: Raised when a key changes its meaning or goes away; new keys may come at any time.
VERSION: Final = 1


def render(report: ReviewReport) -> str:
    """The report as one JSON document."""
    return json.dumps(document(report), indent=2, ensure_ascii=False) + "\n"


def document(report: ReviewReport) -> dict[str, Any]:
    """The report as plain data. Money is USD; null stands for an unknown price."""
    return {
        **_summary(report),
        "jobs": [_job(job) for job in report.jobs],
        **_images(report),
        "reservations": [_reservation(each) for each in report.reservations],
        "returnedMachines": [_returned(each) for each in report.returned],
        "rights": {
            "gained": [_binding(binding) for binding in report.gained],
            "lost": [_binding(binding) for binding in report.lost],
        },
        "access": {
            "gained": [_access(each) for each in report.access_gained],
            "lost": [_access(each) for each in report.access_lost],
        },
        "reachability": [_reachability(change) for change in report.reachability],
        "destroyed": [_destructive_change(change) for change in report.destroyed],
        "dataLosses": [dataclasses.asdict(each) for each in report.losses],
        "refusals": [dataclasses.asdict(each) for each in report.refusals],
        "locks": [dataclasses.asdict(each) for each in report.locks],
        "raisedLimits": [_field(each) for each in report.raised],
        "openedToEverybody": list(report.public),
        "egressToAnywhere": list(report.egress),
        "unprotected": list(report.unprotected),
        "protected": list(report.protected),
        "policies": _policies(report),
        "objects": [dataclasses.asdict(each) for each in report.folders],
        "changes": [_change(change) for change in report.changes],
        "unchanged": report.unchanged,
        "problems": [_problem(problem) for problem in report.problems],
        "errors": [error.message for error in report.errors],
        "notes": [note.message for note in report.notes],
        "warnings": [warning.message for warning in report.warnings],
    }


def _images(report: ReviewReport) -> dict[str, Any]:
    def rows(images: Iterable[ImageChange | RunningImage]) -> list[dict[str, Any]]:
        return [{**dataclasses.asdict(e), "origin": report.origins.get(e.uri)} for e in images]

    return {
        "unseenImages": list(report.unseen_images),
        "images": rows(report.images),
        "otherImages": rows(report.other_images),
    }


def _summary(report: ReviewReport) -> dict[str, Any]:
    return {
        "version": VERSION,
        "stack": report.stack,
        "project": report.project,
        "region": report.region,
        "source": report.source,
        "verdict": verdict(report),
        "answers": {each.question: list(each.phrases) for each in answers(report, str)},
        "outcome": report.outcome.name.lower().replace("_", "-"),
        "exitCode": int(report.outcome),
        "digest": report.digest,
        "expected": report.expected or None,
        "worstCaseUsd": round(report.worst_case, 2),
        "unpricedJobs": [job.name for job in report.unpriced],
    }


def _reachability(change: ReachabilityChange) -> dict[str, Any]:
    return {
        "verb": change.verb,
        "what": change.what,
        "resource": change.name,
        "differences": [_field(each) for each in change.differences],
    }


def _destructive_change(change: DestructiveChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "type": change.type,
        "replaced": change.replaced,
        "refused": change.refused,
        "takes": change.lost_data,
    }


def _change(change: ResourceChange) -> dict[str, Any]:
    return {
        "op": change.op,
        "name": change.name,
        "type": change.type,
        "differences": [_field(each) for each in change.fields],
        "paths": list(change.paths),
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "where": str(problem.location),
        "what": problem.statement,
        "got": problem.value,
        "hint": problem.hint,
        "rule": problem.rule,
    }


def _job(job: JobChange) -> dict[str, Any]:
    return {
        "name": job.name,
        "action": job.action,
        "region": job.region,
        "strategy": job.strategy,
        "reservation": job.reservation or None,
        "account": job.account,
        "network": job.network or None,
        "images": list(job.images),
        "pools": [
            {
                "index": pool.index,
                "machineType": pool.machine_type,
                "acceleratorType": pool.accelerator or None,
                "acceleratorCount": pool.count,
                "machines": pool.machines,
                "hourlyUsd": pool.hourly,
                "price": pool.rate and _price(pool.rate),
            }
            for pool in job.cost.pools
        ],
        "hourlyUsd": job.cost.hourly,
        "timeoutSeconds": job.cost.timeout,
        "defaultTimeout": job.cost.default_timeout,
        "worstCaseUsd": job.cost.worst_case,
        **_trials(job),
        "previousState": job.previous_state or None,
        "now": job.now
        and {
            "state": job.now.state,
            "seconds": job.now.seconds,
            "usdSoFar": job.now.cost,
            "lastLine": job.now.last_line or None,
            "checkpointSeconds": job.now.checkpoint.seconds if job.now.checkpoint else None,
        },
        "differences": [_field(each) for each in job.differences],
    }


def _trials(job: JobChange) -> dict[str, Any]:
    """What a tuning job has beside other jobs: ``hourlyUsd`` is of all that run at once."""
    if job.cost.trials is None:
        return {}
    return {"trials": {"max": job.cost.trials, "parallel": job.cost.parallel}}


def _returned(machines: ReturnedMachines) -> dict[str, Any]:
    return {
        "name": machines.name,
        "machineType": machines.machine_type,
        "zone": machines.zone,
        "machines": machines.machines or None,
        "replaced": machines.replaced,
    }


def _reservation(change: ReservationChange) -> dict[str, Any]:
    """The reservation as it is afterwards, or was if it is deleted, and its costs before."""
    return {
        **_reserved(change.either),
        "deleted": change.new is None,
        "monthlyUsdMore": change.monthly,
        "before": change.old and _reserved(change.old),
    }


def _reserved(each: ReservationCost) -> dict[str, Any]:
    return {
        "name": each.name,
        "zone": each.zone,
        "machineType": each.machine_type,
        "machines": each.machines or None,
        "hourlyUsd": each.hourly,
        "price": each.rate and _price(each.rate),
    }


def _price(rate: Rate) -> dict[str, Any]:
    return {
        "usd": rate.usd,
        "source": rate.source,
        "date": rate.date,
        "region": rate.region,
        "exact": rate.exact,
    }


def _binding(binding: IamBinding) -> dict[str, Any]:
    return {
        "member": binding.member,
        "role": binding.role,
        "kind": binding.kind,
        "target": binding.target,
        "condition": binding.condition or None,
        "public": binding.is_public,
        "reason": binding.reason or None,
    }


def _access(each: Access) -> dict[str, Any]:
    return {
        "member": each.member,
        "verb": each.verb,
        "kind": each.kind,
        "target": each.target,
        "through": list(each.through),
    }


def _field(field: FieldDifference) -> dict[str, Any]:
    return {"path": field.path, "old": field.old, "new": field.new}


def _policies(report: ReviewReport) -> dict[str, Any]:
    return {
        "packs": list(report.packs),
        "count": report.policies,
        "levels": dict(report.levels),
        "lowered": [_field(each) for each in report.lowered],
        "violations": [
            {
                "policy": each.policy,
                "pack": each.pack,
                "level": each.level,
                "severity": each.severity or None,
                "resource": each.urn or None,
                "message": each.message,
            }
            for each in report.violations
        ],
    }
