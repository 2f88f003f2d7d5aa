"""What cannot be in the section ``reservations``: rules across its keys. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from infra import naming
from infra.catalog import machines
from infra.errors import Row, did_you_mean
from infra.plan import reservations as reservation_plan
from infra.plan.reservations import ReservationPlan
from infra.settings.model import Settings


def problems(settings: Settings) -> list[Row]:
    """Everything that does not hold."""
    rows = list[Row]()
    for key, plan in reservation_plan.plans(settings).items():
        path = f"reservations.{key}"
        rows += [
            *_machine(path, plan),
            *_place(path, plan, settings),
            *_sharing(path, plan, settings),
        ]
    return rows


def _machine(path: str, plan: ReservationPlan) -> Iterator[Row]:
    """A machine that jobs can ask for; GPUs as the catalogue has them."""
    given, machine = plan.settings, machines.machine_type(plan.machine_type)
    if machine is None:
        hint = machines.why_not(plan.machine_type) or did_you_mean(
            plan.machine_type, machines.machine_types()
        )
        what = "no machine type of training jobs"
        yield f"{path}.machineType", what, plan.machine_type, hint[:300]
        return
    allowed = machine.accelerators
    kind, count = given.accelerator_type, given.accelerator_count
    known = ", ".join(f"{name} x {'/'.join(map(str, n))}" for name, n in allowed.items())
    if kind and kind not in allowed:
        what = f"{plan.machine_type} does not carry it"
        yield f"{path}.acceleratorType", what, kind, f"it carries: {known or 'none'}"
    elif kind and (count or 1) not in allowed[kind]:
        what = f"{plan.machine_type} carries another number of {kind}"
        yield f"{path}.acceleratorCount", what, str(count or 1), f"it carries: {known}"
    if count and not kind:
        what = "says nothing without acceleratorType"
        yield f"{path}.acceleratorCount", what, str(count), "add it, or remove this"
    if machine.accelerator_required and not plan.accelerator_type:
        what = f"{plan.machine_type} comes with one of several sets of GPUs"
        yield path, what, "", f"say which by acceleratorType and acceleratorCount: {known}"


def _place(path: str, plan: ReservationPlan, settings: Settings) -> Iterator[Row]:
    """Its zone lies where jobs run, its name is legal, and an existing one is where it says."""
    given = plan.settings
    if given.zone.rsplit("-", 1)[0] != settings.region:
        what = f"is not in {settings.region}, where the stack's jobs run: none could use it"
        yield f"{path}.zone", what, given.zone, f"a zone of {settings.region}"
    if not naming.COMPUTE.match(plan.name):
        yield path, "makes a name that Compute Engine refuses", plan.name, naming.COMPUTE_RULE
    if not given.existing:
        return
    zone = given.existing.split("/")[3]
    if zone != given.zone:
        yield f"{path}.zone", f"existing is in zone {zone}", given.zone, f"zone: {zone}"
    made = ("project", "delete_at_time", "delete_after_duration", "share_with", "protect")
    keys = {"delete_at_time": "deleteAtTime", "delete_after_duration": "deleteAfterDuration"}
    keys |= {"share_with": "shareWith"}
    for field in made:
        if field in given.model_fields_set:
            what = "is its owner's to say: this reservation exists"
            yield f"{path}.{keys.get(field, field)}", what, "", "remove it"


def _sharing(path: str, plan: ReservationPlan, settings: Settings) -> Iterator[Row]:
    """A reservation of another project is shared with this one; nobody shares with himself."""
    given = plan.settings
    owner = given.project or settings.project
    if (
        owner != settings.project
        and not given.existing
        and settings.project not in given.share_with
    ):
        what = "the project where jobs run may not use it"
        yield f"{path}.shareWith", what, "", f"add {settings.project}"
    if owner in given.share_with:
        yield f"{path}.shareWith", "names the project that owns it", owner, "remove it"
