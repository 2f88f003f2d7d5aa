"""A machine to log into, beside the jobs of a stack: it stops after eight hours and keeps its disk.

Nothing trains in it by itself. A machine that deletes itself is made again by the next ``pulumi
up``, and a start script that trains would train again: jobs are for that.
"""

import pulumi
import pulumi_gcp as gcp

from vertex_training import Environment

ZONE = "us-central1-a"
HOURS = 8
#: Addresses of Identity-Aware Proxy, from which people log in:
#: https://docs.cloud.google.com/iap/docs/using-tcp-forwarding
PROXY = "35.235.240.0/20"


def declare(environment: Environment) -> None:
    """A subnet, the way in, and the machine; no address outside of the network."""
    subnet = gcp.compute.Subnetwork(
        "workstation",
        project=environment.project,
        region=environment.region,
        name=f"workstation-{environment.stack}",
        network=environment.network,
        ip_cidr_range="10.90.0.0/28",
        private_ip_google_access=True,
    )
    gcp.compute.Firewall(
        "workstation-login",
        project=environment.project,
        name=f"workstation-login-{environment.stack}",
        network=environment.network,
        allows=[gcp.compute.FirewallAllowArgs(protocol="tcp", ports=["22"])],
        source_ranges=[PROXY],
        target_tags=["workstation"],
    )
    machine = gcp.compute.Instance(
        "workstation",
        project=environment.project,
        zone=ZONE,
        name=f"workstation-{environment.stack}",
        machine_type="g2-standard-8",  # one L4
        tags=["workstation"],
        labels=environment.labels,
        boot_disk=gcp.compute.InstanceBootDiskArgs(
            initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(
                image="ubuntu-os-accelerator-images/ubuntu-accelerator-2204-amd64-with-nvidia-580",
                size=200,
                type="pd-balanced",
            ),
        ),
        network_interfaces=[
            gcp.compute.InstanceNetworkInterfaceArgs(subnetwork=subnet.id),
        ],
        service_account=gcp.compute.InstanceServiceAccountArgs(
            email=environment.service_accounts["trainer"], scopes=["cloud-platform"]
        ),
        metadata={"enable-oslogin": "TRUE", "block-project-ssh-keys": "TRUE"},
        shielded_instance_config=gcp.compute.InstanceShieldedInstanceConfigArgs(
            enable_integrity_monitoring=True, enable_vtpm=True
        ),
        # All of it from the first day on: a limit that is added later replaces the machine and its
        # disk. STOP, never DELETE: a stopped machine is no difference in the next preview.
        scheduling=gcp.compute.InstanceSchedulingArgs(
            automatic_restart=False,
            on_host_maintenance="TERMINATE",  # a machine with a GPU cannot be moved
            instance_termination_action="STOP",
            max_run_duration=gcp.compute.InstanceSchedulingMaxRunDurationArgs(seconds=HOURS * 3600),
        ),
        # The engine refuses to replace or delete it: its disk is the only copy of what is there.
        opts=pulumi.ResourceOptions(protect=True, depends_on=[environment.apis]),
    )
    pulumi.export("workstation", machine.name)
