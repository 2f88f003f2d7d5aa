"""Quotas: what jobs run on, and what the stack makes, against the limits in effect.

Vertex AI's own use of a quota is in Cloud Monitoring, and is not asked: a limit that is met by jobs
of others makes a job wait, not fail.

https://docs.cloud.google.com/service-usage/docs/reference/rest/v1beta1/services.consumerQuotaMetrics/get
https://docs.cloud.google.com/compute/docs/reference/rest/v1/regions/get
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from vertex_training.customjob.google.prerequisites import effective_limit, quota_path
from vertex_training.errors import OperatorError
from vertex_training_cli import rest
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import UnansweredError, answered
from vertex_training_cli.preflight.context import PreflightContext
from vertex_training_cli.preflight.quota_needs import (
    ComputeNeed,
    GpuFamily,
    JobNeed,
    compute_needs,
    endpoint_needs,
    job_needs,
)

#: GPUs without a quota of their own, by family and region:
#: https://docs.cloud.google.com/docs/quotas/implement-common-use-cases
BY_FAMILY: Final = "compute.googleapis.com/gpus_per_gpu_family"


def ask(context: PreflightContext) -> Iterator[Answer]:
    """One answer for each quota that the stack counts against."""
    for need in job_needs(context.declared):
        yield from _ask_quota(context, need, judge_jobs)
    for need in endpoint_needs(context.declared):
        yield from _ask_quota(context, need, judge_endpoints)
    left = tuple(each for each in context.declared.resources if not context.is_made(each))
    for need in compute_needs(dataclasses.replace(context.declared, resources=left)):
        yield from _ask_compute_quotas(context, need)


@answered
def _ask_quota(
    context: PreflightContext, need: JobNeed, judge: Callable[..., Answer]
) -> Iterator[Answer]:
    region = context.declared.stack.settings.region
    asked = question(need.metric, f"limit in {region}")
    limit = _limit(context, asked, context.project, need.metric, {"region": region})
    yield judge(asked, need, context.project, limit)


def judge_jobs(asked: Answer, need: JobNeed, project: str, limit: int | None) -> Answer:
    """What a limit means for the jobs; None is no limit. Pure."""
    if limit is None:
        return asked.ok("not limited")
    (job, largest), mend = need.largest, _mend(project, need.peak)
    if largest > limit:
        meets = f"job {job} takes {largest}: its creation is refused (429), or it stays queued"
        return asked.refused(f"{limit}", meets, mend)
    if need.peak > limit:
        meets = f"all jobs at once take {need.peak}: some stay queued until others end"
        return asked.warning(f"{limit}", meets, mend)
    return asked.ok(f"{limit}, of which the jobs take {need.peak}; other use is not asked")


def judge_endpoints(asked: Answer, need: JobNeed, project: str, limit: int | None) -> Answer:
    """What a limit means for endpoints with all their replicas; None is no limit. Pure.

    Never more than a warning: the API's schema says that the most replicas count against it, a page
    of 2026-08 that only those there are do.
    """
    if limit is None:
        return asked.ok("not limited")
    if need.peak > limit:
        meets = (
            f"endpoints take {need.peak} with all replicas: they may not grow to them, or not start"
        )
        return asked.warning(f"{limit}", meets, _mend(project, need.peak))
    return asked.ok(f"{limit}, of which the endpoints take {need.peak}; other use is not asked")


def _limit(
    context: PreflightContext, asked: Answer, project: str, metric: str, at: Mapping[str, str]
) -> int | None:
    """The limit of a quota at a place; None if there is none. Raises UnansweredError."""
    found = context.client.get(rest.QUOTA, asked, quota_path(project, metric))
    if found is None:
        raise UnansweredError(asked.unknown("there is no such quota", rest.QUOTA.permission))
    try:
        return effective_limit(found, at)
    except OperatorError as error:
        raise UnansweredError(asked.unknown(str(error))) from None


def _mend(project: str, wanted: int) -> str:
    where = f"https://console.cloud.google.com/iam-admin/quotas?project={project}"
    return f"ask for {wanted} or more: {where}"


@answered
def _ask_compute_quotas(context: PreflightContext, need: ComputeNeed) -> Iterator[Answer]:
    project = need.project
    asked = question(f"project {project}", f"quotas of Compute Engine in {need.region}")
    regional = context.client.get(rest.COMPUTE_REGION, asked, project, need.region)
    whole = context.client.get(rest.COMPUTE_PROJECT, asked, project)
    if not regional or not whole:
        yield asked.unknown("there is no such project, or Compute Engine is off in it")
        return
    yield from judge_compute(need, regional, whole)
    for family in need.families:
        yield from _ask_family(context, need, family)


@answered
def _ask_family(
    context: PreflightContext, need: ComputeNeed, family: GpuFamily
) -> Iterator[Answer]:
    asked = question(f"{BY_FAMILY} {family.name}", f"limit in {need.region} of {need.project}")
    place = {"region": need.region, "gpu_family": family.name}
    limit = _limit(context, asked, need.project, BY_FAMILY, place)
    if limit is not None and limit < family.count:
        meets = f"the reservations take {family.count}: their creation is refused"
        yield asked.refused(f"{limit}", meets, _mend(need.project, family.count))
    else:
        yield asked.ok("not limited" if limit is None else f"{limit}")


def judge_compute(need: ComputeNeed, regional: object, project: object) -> Iterator[Answer]:
    """One answer for each quota that has a limit in the region or in the project. Pure."""
    limits = {
        str(each.get("metric")): each
        for document in (project, regional)
        for each in (document.get("quotas") or () if isinstance(document, dict) else ())
    }
    for metric, wanted in sorted(need.counts.items()):
        if (quota := limits.get(metric)) is None:
            continue
        limit, used = int(quota.get("limit", 0)), int(quota.get("usage", 0))
        asked = question(f"quota {metric}", f"limit and use in {need.region} of {need.project}")
        if used + wanted > limit:
            meets = f"the stack takes {wanted} more: a creation is refused (quotaExceeded)"
            mend = _mend(need.project, used + wanted)
            yield asked.refused(f"{used} of {limit} are used", meets, mend)
        else:
            yield asked.ok(f"{used} of {limit} are used, and the stack takes {wanted}")
