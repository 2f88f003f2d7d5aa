"""Reservations: machines that are kept for jobs, and the grants to find them.

Owns the reservations that the stack file does not give by ``existing``, and Compute Engine in the
projects beside the stack's own that they are made in. Every one is shared with
Google's services (``ALLOW_ALL``): Vertex AI runs jobs in projects of its own, so
a reservation without that is paid for and never used.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.apis import enable_api
from vertex_training.components.iam import make_grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.plan.reservations import ReservationPlan
from vertex_training.settings.reservations import Reservation


class Capacity(pulumi.ComponentResource):
    """All reservations of a stack."""

    reservations: dict[str, gcp.compute.Reservation]
    """Those the stack makes, by key."""
    paths: dict[str, pulumi.Output[str]]
    """``projects/P/zones/Z/reservations/R`` of all of them, known before they exist."""

    def __init__(
        self,
        name: str,
        *,
        project: str,
        plans: Mapping[str, ReservationPlan],
        grants: Sequence[GrantRequest],
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``project`` is the stack's own, where Compute Engine is enabled already."""
        super().__init__("vertextraining:capacity:Capacity", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        made = {key: plan for key, plan in plans.items() if not plan.settings.existing}
        others = sorted({plan.project for plan in made.values()} - {project})
        # Without it no reservation can be made there.
        api = "compute.googleapis.com"
        apis = [enable_api(f"{name}-compute-{other}", api, other, own) for other in others]
        self._after = [*after, *apis]
        self.reservations = {
            key: self._reservation(f"{name}-{key}", plan) for key, plan in made.items()
        }
        self.paths = {key: self._path(key, plan) for key, plan in plans.items()}
        make_grants(name, grants, pulumi.ResourceOptions(parent=self, depends_on=self._after))
        self.register_outputs({"reservations": {k: r.id for k, r in self.reservations.items()}})

    def _path(self, key: str, plan: ReservationPlan) -> pulumi.Output[str]:
        if key not in self.reservations:
            return pulumi.Output.from_input(plan.path)
        return self.reservations[key].name.apply(lambda _: plan.path)

    def _reservation(self, name: str, plan: ReservationPlan) -> gcp.compute.Reservation:
        given = plan.settings
        return gcp.compute.Reservation(
            name,
            project=plan.project,
            zone=given.zone,
            name=plan.name,
            specific_reservation_required=given.specific_reservation_required,
            specific_reservation=gcp.compute.ReservationSpecificReservationArgs(
                count=given.count, instance_properties=_machine(plan)
            ),
            share_settings=_shared_with(given),
            reservation_sharing_policy=gcp.compute.ReservationReservationSharingPolicyArgs(
                service_share_type="ALLOW_ALL"
            ),
            delete_at_time=_rfc3339(given),
            delete_after_duration=_duration(given),
            opts=pulumi.ResourceOptions(parent=self, depends_on=self._after, protect=given.protect),
        )


def _machine(
    plan: ReservationPlan,
) -> gcp.compute.ReservationSpecificReservationInstancePropertiesArgs:
    """A machine type that is sold with its GPUs names them already; others carry them apart."""
    # Here and not above: the first name that is read of `gcp.compute` loads all of it, which takes
    # longer than the rest of the program.
    gpus = gcp.compute.ReservationSpecificReservationInstancePropertiesGuestAcceleratorArgs
    ssd = gcp.compute.ReservationSpecificReservationInstancePropertiesLocalSsdArgs
    given, ssds = plan.settings, plan.settings.local_ssds
    return gcp.compute.ReservationSpecificReservationInstancePropertiesArgs(
        machine_type=given.machine_type,
        guest_accelerators=[
            gpus(
                accelerator_type=given.accelerator_type.lower().replace("_", "-"),
                accelerator_count=plan.accelerator_count,
            )
        ]
        if given.accelerator_type and given.machine_type.startswith("n1-")
        else None,
        local_ssds=[ssd(interface=ssds.interface, disk_size_gb=ssds.disk_size_gb)] * ssds.count
        if ssds
        else None,
    )


def _shared_with(given: Reservation) -> gcp.compute.ReservationShareSettingsArgs:
    if not given.share_with:
        return gcp.compute.ReservationShareSettingsArgs(share_type="LOCAL")
    return gcp.compute.ReservationShareSettingsArgs(
        share_type="SPECIFIC_PROJECTS",
        project_maps=[
            gcp.compute.ReservationShareSettingsProjectMapArgs(id=project, project_id=project)
            for project in dict.fromkeys(given.share_with)
        ],
    )


def _rfc3339(given: Reservation) -> str | None:
    if not given.delete_at_time:
        return None
    return given.delete_at_time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _duration(given: Reservation) -> gcp.compute.ReservationDeleteAfterDurationArgs | None:
    if not given.delete_after_duration:
        return None
    seconds = given.delete_after_duration.removesuffix("s")
    return gcp.compute.ReservationDeleteAfterDurationArgs(seconds=seconds)
