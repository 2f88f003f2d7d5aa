"""``GpuReservation``: machines that are kept for jobs."""

import datetime
from collections.abc import Mapping
from typing import Any, Final, NotRequired, Optional

import pulumi
from pulumi import Input, Output

from vertex_training import program
from vertex_training.environment import Scope
from vertex_training.public.declaring import apis_of, output_of, prerequisites
from vertex_training.public.reading import Arguments, environment_name
from vertex_training.public.sections import ReservationFields
from vertex_training.settings.model import Settings
from vertex_training.settings.partial import STAND_INS
from vertex_training.settings.reservations import Reservation

FIELDS: Final = tuple(ReservationFields.__annotations__)
SETTINGS: Final = ("project", "project_number")


class GpuReservationArgs(ReservationFields):
    """Arguments of :class:`GpuReservation`."""

    project: Input[str]
    """Id of the project that pays for the machines and runs the jobs."""
    project_number: Input[str]
    """Its number, which Google's service agent has in its address."""
    environment: NotRequired[Input[str]]
    """Ends its name: ``NAME-ENVIRONMENT``. The Pulumi stack's name without it."""


class GpuReservation(pulumi.ComponentResource):
    """Machines that are kept for jobs, shared with Vertex AI, and the grant to find them.

    They cost money from creation to deletion, used or not: a preview says how much. Enables Compute
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
    """``projects/P/zones/Z/reservations/R``, known before it exists."""
    affinity: Output[Mapping[str, Any]]
    """``reservationAffinity`` of a job's machines that use it."""

    def __init__(
        self,
        name: str,
        args: GpuReservationArgs,
        opts: Optional[pulumi.ResourceOptions] = None,  # noqa: UP045 - as Pulumi's host reads it
    ) -> None:
        """Check the arguments and declare the reservation.

        Raises:
            ArgumentsError: with every mistake; nothing was declared.
        """
        arguments = Arguments(f"GpuReservation '{name}'")
        named = arguments.named(args, (*FIELDS, *SETTINGS, "environment"))
        given = arguments.section(Reservation, named, FIELDS, at=("reservations", name))
        raw = arguments.section(Settings, named, SETTINGS)
        raw |= {"region": _region(given.get("zone")), "reservations": {name: given}}
        stack = arguments.stack(raw, environment_name(named, arguments))
        super().__init__("vertex-training:index:GpuReservation", name, {}, opts)
        project, plan = stack.settings.project, stack.reservations[name]
        needed = ("compute", "aiplatform", "cloudresourcemanager")
        apis = apis_of(self, name, project, needed, prerequisites(opts, arguments))
        program.declare_capacity(Scope(name, self), stack, apis)
        for line in stack.reservation_costs(datetime.datetime.now(tz=datetime.UTC)):
            pulumi.log.info(line, self)
        self.path = output_of(self, plan.path)
        self.affinity = output_of(self, plan.affinity)
        self.register_outputs({"path": self.path, "affinity": self.affinity})


def _region(zone: object) -> str:
    """The region of a zone; without one, the zone itself is the mistake."""
    return str(zone).rpartition("-")[0] if isinstance(zone, str) else str(STAND_INS["region"])
