"""Reservations of machines for jobs, and grants to read the reservations.

Every reservation is shared with Google's services (``ALLOW_ALL``), since Vertex AI runs jobs in
projects of its own.
"""

import datetime
from collections.abc import Mapping
from typing import Any, Final, NotRequired, Unpack, overload

import pulumi
import pulumi_gcp as gcp
from pulumi import Input, Output

from vertex_training.components.arguments import KEYWORDS, Arguments, Opts, set_outputs
from vertex_training.components.iam import Apis, enable_api, make_grants
from vertex_training.components.ordering import Resources, Scope, child_options
from vertex_training.components.sections import ReservationFields
from vertex_training.plan.network import ReservationPlan, cost_lines, reservation_grants
from vertex_training.settings.model import Settings
from vertex_training.settings.network import Reservation
from vertex_training.settings.reader import STAND_INS
from vertex_training.stack import Stack


class Capacity(pulumi.ComponentResource):
    """All reservations of a stack."""

    reservations: "dict[str, gcp.compute.Reservation]"
    """Reservations that the stack creates, by key."""
    paths: dict[str, Output[str]]
    """Full names (``projects/P/zones/Z/reservations/R``) of all reservations, by key."""

    def __init__(self, scope: Scope, stack: Stack, *, after: Resources) -> None:
        """Declare the reservations. ``after`` enables Compute Engine in the stack's project."""
        super().__init__("vertextraining:capacity:Capacity", scope.name, None, scope.opts)
        name, plans, project = scope.name, stack.reservations, stack.declared.project
        own = pulumi.ResourceOptions(parent=self)
        created = {key: plan for key, plan in plans.items() if not plan.settings.existing}
        others = sorted({plan.project for plan in created.values()} - {project})
        # Reservations of other projects require Compute Engine.
        apis = [enable_api(f"{name}-compute-{other}", "compute", other, own) for other in others]
        self._after = [*after, *apis]
        self.reservations = {
            key: self._reservation(f"{name}-{key}", plan) for key, plan in created.items()
        }
        self.paths = {
            key: self.reservations[key].name.apply(lambda _, plan=plan: plan.path)
            if key in created
            else pulumi.Output.from_input(plan.path)
            for key, plan in plans.items()
        }
        grants = reservation_grants(stack.declared, plans)
        make_grants(name, grants, pulumi.ResourceOptions(parent=self, depends_on=self._after))
        self.register_outputs({"reservations": {k: r.id for k, r in self.reservations.items()}})

    def _reservation(self, name: str, plan: ReservationPlan) -> "gcp.compute.Reservation":
        settings = plan.settings
        ends, lasts = settings.delete_at_time, settings.delete_after_duration
        return gcp.compute.Reservation(
            name,
            project=plan.project,
            zone=settings.zone,
            name=plan.name,
            specific_reservation_required=settings.specific_reservation_required,
            specific_reservation={"count": settings.count, "instance_properties": _machine(plan)},
            share_settings=_shared_with(settings),
            reservation_sharing_policy={"service_share_type": "ALLOW_ALL"},
            delete_at_time=f"{ends.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}" if ends else None,
            delete_after_duration={"seconds": lasts.removesuffix("s")} if lasts else None,
            opts=child_options(self, self._after, protect=settings.protect),
        )


def _machine(
    plan: ReservationPlan,
) -> "gcp.compute.ReservationSpecificReservationInstancePropertiesArgsDict":
    settings = plan.settings
    machine: gcp.compute.ReservationSpecificReservationInstancePropertiesArgsDict = {
        "machine_type": settings.machine_type
    }
    if settings.accelerator_type and settings.machine_type.startswith("n1-"):
        name = settings.accelerator_type.lower().replace("_", "-")
        machine["guest_accelerators"] = [
            {"accelerator_type": name, "accelerator_count": plan.accelerator_count}
        ]
    if ssds := settings.local_ssds:
        machine["local_ssds"] = [
            {"interface": ssds.interface, "disk_size_gb": ssds.disk_size_gb}
            for _ in range(ssds.count)
        ]
    return machine


def _shared_with(reservation: Reservation) -> "gcp.compute.ReservationShareSettingsArgsDict":
    if not reservation.share_with:
        return {"share_type": "LOCAL"}
    projects = dict.fromkeys(reservation.share_with)
    return {
        "share_type": "SPECIFIC_PROJECTS",
        "project_maps": [{"id": project, "project_id": project} for project in projects],
    }


def make_capacity(scope: Scope, stack: Stack, apis: Apis) -> list[Capacity]:
    """Declare the reservations; return an empty list if the stack has no reservations."""
    after = [*apis.on("compute", "cloudresourcemanager"), apis.agent]
    has_some = bool(stack.reservations)
    return [Capacity(scope.child("capacity"), stack, after=after)] if has_some else []


def log_reservation_costs(stack: Stack, component: pulumi.Resource | None = None) -> None:
    """Log the cost of each reservation that the stack creates."""
    now = datetime.datetime.now(tz=datetime.UTC)
    for line in cost_lines(stack.reservations, stack.declared.region, now):
        pulumi.log.info(line, component)


#: Arguments of the component: fields of a reservation, and keys of a stack file.
FIELDS: Final = tuple(ReservationFields.__annotations__)
SETTINGS: Final = ("project", "project_number")


class GpuReservationArgs(ReservationFields):
    """Arguments of :class:`GpuReservation`."""

    project: NotRequired[Input[str]]
    """Id of the project that pays for machines and jobs; default: project of the gcp provider."""
    project_number: Input[str]
    """Number of the project, which is part of the service agent's address."""
    environment: NotRequired[Input[str]]
    """Suffix of the name (``NAME-ENVIRONMENT``); default: the Pulumi stack's name."""
    base_name: NotRequired[Input[str]]
    """Prefix of the name (``BASE_NAME-ENVIRONMENT``); default: the component's name."""


class GpuReservation(pulumi.ComponentResource):
    """Reserved machines for jobs, shared with Vertex AI, and the grant to read the reservation.

    Unused machines cost the same as used machines; a preview shows the cost. Enables Compute
    Engine, Vertex AI and, for the grant, Resource Manager.

    Example::

        reservation = GpuReservation(
            "h100",
            {
                "project": "local-training",
                "project_number": "971240389164",
                "zone": "us-central1-a",
                "machine_type": "a3-highgpu-8g",
                "count": 2,
                "delete_after_duration": "604800s",
            },
        )
        pulumi.export("reservation", reservation.path)
    """

    path: Output[str]
    """Full name (``projects/P/zones/Z/reservations/R``), known in a preview."""
    affinity: Output[Mapping[str, Any]]
    """Value of ``reservationAffinity`` for machines that use the reservation."""

    @overload
    def __init__(self, name: str, /, args: GpuReservationArgs, opts: Opts = None) -> None: ...
    @overload
    def __init__(
        self, name: str, /, *, opts: Opts = None, **given: Unpack[GpuReservationArgs]
    ) -> None: ...
    def __init__(
        self, name: str, /, args: GpuReservationArgs = KEYWORDS, opts: Opts = None, **keywords: Any
    ) -> None:
        """Declare the reservation. Raises ArgumentsError with every mistake."""
        arguments = Arguments(f"GpuReservation '{name}'", opts)
        named = arguments.named(args, keywords, GpuReservationArgs.__annotations__)
        key = arguments.base_name(named, name)
        section = arguments.section(Reservation, named, FIELDS, at=("reservations", key))
        raw = arguments.section(Settings, named, SETTINGS)
        zone = section.get("zone")  # a rule reports an invalid zone
        region = zone.rpartition("-")[0] if isinstance(zone, str) else STAND_INS["region"]
        raw |= {"region": region, "reservations": {key: section}}
        stack = arguments.stack(raw, arguments.environment(named))
        super().__init__("vertex-training:index:GpuReservation", name, arguments.inputs, opts)
        scope, plan = Scope(name, self), stack.reservations[key]
        needed, waits = ["compute", "aiplatform", "cloudresourcemanager"], arguments.prerequisites()
        make_capacity(scope, stack, Apis(scope.child("apis"), plan.project, needed, after=waits))
        log_reservation_costs(stack, self)
        set_outputs(self, {"path": plan.path, "affinity": plan.affinity})
