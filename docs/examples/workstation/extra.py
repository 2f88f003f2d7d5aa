"""A machine for logins, beside the jobs of a stack. It stops after eight hours and keeps its disk.

The machine has no start script that trains: use a job instead. The next ``pulumi up`` would create
a machine again that deleted itself, and the script would train again.
"""

import pulumi
import pulumi_gcp as gcp

from vertex_training import Environment

ZONE = "us-central1-a"
HOURS = 8
#: Addresses of Identity-Aware Proxy, the source of logins:
#: https://docs.cloud.google.com/iap/docs/using-tcp-forwarding
PROXY = "35.235.240.0/20"


def declare(environment: Environment) -> None:
    """Declare a subnet, a firewall rule for logins, and the machine without an external address."""
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
        # Set this from the beginning: adding a limit later replaces the machine and its disk. Use
        # STOP, not DELETE: the next preview shows no change for a stopped machine.
        scheduling=gcp.compute.InstanceSchedulingArgs(
            automatic_restart=False,
            on_host_maintenance="TERMINATE",  # a machine with a GPU cannot be moved
            instance_termination_action="STOP",
            max_run_duration=gcp.compute.InstanceSchedulingMaxRunDurationArgs(seconds=HOURS * 3600),
        ),
        # The engine refuses to replace or delete the machine: no other disk has its data.
        opts=pulumi.ResourceOptions(protect=True, depends_on=[environment.apis]),
    )
    pulumi.export("workstation", machine.name)
