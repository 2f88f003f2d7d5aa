"""Resources of a local project, made by the services behind the stand-in for the gcp plugin."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localgcp.gcp import check, cloud
from localgcp.gcp.plan import Settings
from localgcp.gcp.services import RESOURCE_TYPES, find
from localgcp.inventory.store import project_number, service_agent
from tests.unit.localcloud.conftest import PROJECT

HOST = "local-host"
NUMBER, HOST_NUMBER = project_number(PROJECT), project_number(HOST)
VPC = f"projects/{NUMBER}/global/networks/vpc"
AGENT = f"serviceAccount:{service_agent(PROJECT)}"
SUBNET = "gcp:compute/subnetwork:Subnetwork"


@dataclass
class Estate:
    """Makes what a test needs around its jobs, in the local cloud with its files in ``root``."""

    root: Path
    project: str = PROJECT

    def make(self, token: str, **inputs: Any) -> str:
        """Create a resource, in the estate's project unless ``project`` says otherwise; its id."""
        where = self._where(token)
        checked, failures = check.check(where.type, "x", {}, inputs, b"seed")
        assert not failures
        return RESOURCE_TYPES[token].create(where, checked).id

    def delete(self, token: str, id_: str, **olds: Any) -> None:
        """Delete a resource."""
        RESOURCE_TYPES[token].delete(self._where(token), id_, olds)

    def _where(self, token: str) -> cloud.Cloud:
        found = find(token)
        assert found is not None
        environment = {cloud.HOME_VARIABLE: str(self.root)}
        return cloud.Cloud(
            found[0], Settings(project=self.project, region="us-central1"), environment
        )

    def apis(self, *names: str, project: str = "") -> None:
        """Turn APIs on."""
        for name in names:
            token = "gcp:projects/service:Service"
            self.make(token, project=project or self.project, service=f"{name}.googleapis.com")

    def network(self, name: str = "vpc", project: str = "") -> None:
        """A network in custom mode."""
        self.apis("compute", "servicenetworking", project=project)
        token = "gcp:compute/network:Network"
        self.make(token, project=project or self.project, name=name, autoCreateSubnetworks=False)

    def peering(
        self,
        prefix: int = 16,
        *,
        project: str = "",
        network: str = "vpc",
        name: str = "training",
        **more: Any,
    ) -> None:
        """A range in the network, and the connection that uses it."""
        self.make(
            "gcp:compute/globalAddress:GlobalAddress",
            project=project or self.project,
            name=name,
            network=network,
            purpose="VPC_PEERING",
            addressType="INTERNAL",
            prefixLength=prefix,
            **more,
        )
        self.make(
            "gcp:servicenetworking/connection:Connection",
            network=f"projects/{project or self.project}/global/networks/{network}",
            service="servicenetworking.googleapis.com",
            reservedPeeringRanges=[name],
        )

    def attachment(self, subnet_project: str = "", cidr: str = "10.0.0.0/28") -> str:
        """A subnetwork in the network ``vpc``, and an attachment named ``psc`` on it."""
        subnet_project = subnet_project or self.project
        net = f"projects/{subnet_project}/global/networks/vpc"
        inputs = {"name": "psc", "ipCidrRange": cidr, "network": net, "project": subnet_project}
        subnet = self.make(SUBNET, **inputs)
        return self.make(
            "gcp:compute/networkAttachment:NetworkAttachment",
            name="psc",
            subnetworks=[subnet],
            connectionPreference="ACCEPT_AUTOMATIC",
        )

    def host(self) -> None:
        """A Shared VPC host with the network ``vpc``."""
        self.network(project=HOST)
        self.make("gcp:compute/sharedVPCHostProject:SharedVPCHostProject", project=HOST)

    def attach(self) -> None:
        """Attach the jobs' project to the host."""
        token = "gcp:compute/sharedVPCServiceProject:SharedVPCServiceProject"
        self.make(token, hostProject=HOST, serviceProject=self.project)

    def reservation(self, name: str = "cpu", count: int = 1, **changes: Any) -> str:
        """A reservation of n1-standard-4 that Vertex AI may use by name."""
        self.apis("compute", project=changes.get("project", self.project))
        specific = {"count": count, "instanceProperties": {"machineType": "n1-standard-4"}}
        inputs = {
            "name": name,
            "zone": "us-central1-a",
            "specificReservation": specific,
            "specificReservationRequired": True,
            "reservationSharingPolicy": {"serviceShareType": "ALLOW_ALL"},
        }
        return self.make("gcp:compute/reservation:Reservation", **{**inputs, **changes})
