"""Rules across the keys of the section ``reservations``. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from vertex_training import catalog, naming
from vertex_training.catalog import machines
from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.plan.reservations import ReservationPlan, plan_reservations
from vertex_training.settings.model import Settings
from vertex_training.stack_rules.registry import StackFile, file_rule, rule


@rule()
def reservations(settings: Settings) -> Iterator[Problem]:
    """Reservations have machines that jobs request, in reach of the jobs, and not in the past."""
    now = datetime.datetime.now(tz=datetime.UTC)
    for key, plan in plan_reservations(settings).items():
        path = ("reservations", key)
        yield from _machine(path, plan)
        yield from _place(path, plan, settings)
        yield from _sharing(path, plan, settings)
        yield from _end(path, plan, now)


def _machine(path: Path, plan: ReservationPlan) -> Iterator[Problem]:
    """A machine that jobs can ask for; GPUs as the catalogue has them."""
    given, machine = plan.settings, machines.machine_type(plan.machine_type)
    if machine is None:
        hint = machines.unavailable_reason(plan.machine_type) or did_you_mean(
            plan.machine_type, machines.machine_types()
        )
        what = "no machine type of training jobs"
        yield Problem(what, plan.machine_type, hint[:300], (*path, "machineType"))
        return
    allowed = machine.accelerators
    kind, count = given.accelerator_type, given.accelerator_count
    known = ", ".join(f"{name} x {'/'.join(map(str, n))}" for name, n in allowed.items())
    if kind and kind not in allowed:
        what = f"{plan.machine_type} does not carry it"
        yield Problem(what, kind, f"it carries: {known or 'none'}", (*path, "acceleratorType"))
    elif kind and (count or 1) not in allowed[kind]:
        what = f"{plan.machine_type} carries another number of {kind}"
        yield Problem(what, str(count or 1), f"it carries: {known}", (*path, "acceleratorCount"))
    if count and not kind:
        what = "says nothing without acceleratorType"
        yield Problem(what, str(count), "add it, or remove this", (*path, "acceleratorCount"))
    if machine.accelerator_required and not plan.accelerator_type:
        what = f"{plan.machine_type} comes with one of several sets of GPUs"
        yield Problem(what, "", f"say which by acceleratorType and acceleratorCount: {known}", path)


def _place(path: Path, plan: ReservationPlan, settings: Settings) -> Iterator[Problem]:
    """The zone is in the region of the jobs, the name is legal, an existing path matches."""
    given = plan.settings
    if given.zone.rsplit("-", 1)[0] != settings.region:
        what = f"is not in {settings.region}, where the stack's jobs run: none could use it"
        yield Problem(what, given.zone, f"a zone of {settings.region}", (*path, "zone"))
    elif given.zone not in (zones := _zones(settings.region)) and zones:
        what = f"is no zone of {settings.region}"
        yield Problem(what, given.zone, f"one of {', '.join(zones)}", (*path, "zone"))
    if not naming.COMPUTE.match(plan.name):
        yield Problem(
            "makes a name that Compute Engine refuses", plan.name, naming.COMPUTE_RULE, path
        )
    if not given.existing:
        return
    zone = given.existing.split("/")[3]
    if zone != given.zone:
        yield Problem(f"existing is in zone {zone}", given.zone, f"zone: {zone}", (*path, "zone"))
    made = ("name", "project", "delete_at_time", "delete_after_duration", "share_with", "protect")
    keys = {"delete_at_time": "deleteAtTime", "delete_after_duration": "deleteAfterDuration"}
    keys |= {"share_with": "shareWith"}
    for field in made:
        if field in given.model_fields_set:
            what = "is its owner's to say: this reservation exists"
            yield Problem(what, "", "remove it", (*path, keys.get(field, field)))


def _zones(region: str) -> list[str]:
    """Names of a region's zones; none where the catalogue does not have the region."""
    letters = catalog.load("zones.yaml")["letters"].get(region, "")
    return [f"{region}-{letter}" for letter in letters]


def _end(path: Path, plan: ReservationPlan, now: datetime.datetime) -> Iterator[Problem]:
    """Google refuses to make a reservation that is over: it must end in the future.

    https://docs.cloud.google.com/compute/docs/reference/rest/v1/reservations (deleteAtTime)
    """
    at = plan.settings.delete_at_time
    if at and at <= now and not plan.settings.existing:
        what = "has passed: Google has deleted the reservation, and refuses to make it anew"
        hint = "a later time, or remove the reservation"
        yield Problem(what, at.isoformat(), hint, (*path, "deleteAtTime"))


def _sharing(path: Path, plan: ReservationPlan, settings: Settings) -> Iterator[Problem]:
    """A reservation of another project is shared with this one, and not with its owner."""
    given = plan.settings
    owner = given.project or settings.project
    if (
        owner != settings.project
        and not given.existing
        and settings.project not in given.share_with
    ):
        what = "the project where jobs run may not use it"
        yield Problem(what, "", f"add {settings.project}", (*path, "shareWith"))
    if owner in given.share_with:
        yield Problem("names the project that owns it", owner, "remove it", (*path, "shareWith"))


@file_rule("warning")
def unused_reservations(file: StackFile) -> Iterator[Problem]:
    """Each reservation that the stack makes is named by a job."""
    requests, plans = file.requests, file.reservations
    used = {name for request in requests.values() for name in request.used}
    bodies = [rung.body for request in requests.values() for rung in request.rungs]
    for key, plan in plans.items():
        path, given = ("reservations", key), plan.settings
        named = {f"reservations.{key}", f"reservations.{key}.name"} & used
        if not named and not any(plan.path in body for body in bodies) and not given.existing:
            what = "no job of this stack names it, and it is paid for all the same"
            yield Problem(
                what, "", f"reservationAffinity: ${{reservations.{key}}} in a job file", path
            )
