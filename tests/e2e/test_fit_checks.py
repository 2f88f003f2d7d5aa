"""Tests that preview and local cloud both report jobs and ranges that do not fit.

The second time the check is bypassed: the same request goes to the job service by the official
client, the same resource to the services behind the stand-in for the gcp plugin.
"""

import copy
import json
from pathlib import Path

import grpc
import pytest
import yaml
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as vertex
from google.cloud.aiplatform_v1.services.job_service.transports.grpc import JobServiceGrpcTransport

from localgcp.errors import CloudError
from localgcp.home.servers import ServerInfo
from localgcp.vertex.records import JobState, JobTable
from tests.e2e.small_stacks import MACHINE, REGION, SmallStack, job_file
from tests.unit.localcloud.conftest import wait_until
from tests.unit.localcloud.vertex.estate import Estate
from vertex_training import stack as stacks
from vertex_training.customjob.request.message import message_of, resolve_references

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

NETWORK = {"mode": "peering", "ranges": {"workers": {"prefixLength": 18}}}
CPU = {"zone": f"{REGION}-a", "machineType": "n1-standard-4", "count": 1}
PEERED = {"network": "${network.name}"}


def job(machine=MACHINE, affinity=None, pools=1, **spec):
    made = job_file(**spec)
    [pool] = made["jobSpec"]["workerPoolSpecs"]
    pool["machineSpec"] = {**machine, **({"reservationAffinity": affinity} if affinity else {})}
    made["jobSpec"]["workerPoolSpecs"] = [copy.deepcopy(pool) for _ in range(pools)]
    return made


TABLE = yaml.safe_load(Path(__file__).with_name("jobs_that_do_not_fit.yaml").read_text("utf-8"))


def jobs_of(kind):
    """Return the job, the preview's reports and the local cloud's answers, by name."""
    return {
        name: (job(**row["job"]), row["preview"], row["answer"])
        for name, row in TABLE[kind].items()
    }


WRONG, DOUBTFUL = jobs_of("wrong"), jobs_of("doubtful")
FITS = {"busy": job(**PEERED)}


@pytest.fixture(scope="module")
def stack(checkout):
    """Yield a deployed stack with a network, a reservation and a job that runs on the network."""
    made = SmallStack(checkout, "fit")
    write(made, FITS)
    made.up()
    return made


@pytest.fixture(scope="module")
def client(stack):
    info = ServerInfo.read(stack.checkout.home / "server.json")
    assert info
    with grpc.insecure_channel(f"127.0.0.1:{info.vertex_port}") as channel:
        yield vertex.JobServiceClient(transport=JobServiceGrpcTransport(channel=channel))


def write(stack, jobs, **sections):
    stack.write(jobs, **{"network": NETWORK, "reservations": {"cpu": CPU}, **sections})


def request(stack, content):
    """Return the request of a job file without the checks."""
    write(stack, {"x": content})
    root = stack.checkout.path
    table = {**stacks.load(root, stack.name).references, "job.name": "x"}

    def resolved(value):
        if isinstance(value, dict):
            return {key: resolved(item) for key, item in value.items()}
        if isinstance(value, list):
            return [resolved(item) for item in value]
        if not isinstance(value, str):
            return value
        return message_of(value, table) or resolve_references(value, table)

    return vertex.CustomJob.from_json(json.dumps(resolved(content)))


def answer(stack, client, sent, region=REGION):
    """Return the error with which a request is refused or its job fails."""
    parent = f"projects/{stack.project}/locations/{region}"
    try:
        name = client.create_custom_job(parent=parent, custom_job=sent).name
    except exceptions.GoogleAPICallError as refused:
        return refused.message
    jobs = JobTable(stack.checkout.home / "cloud.sqlite")
    wait_until(lambda: (j := jobs.get(name.rpartition("/")[2])) and j.state is JobState.FAILED)
    return client.get_custom_job(name=name).error.message


def test_preview_reports_all_jobs_that_do_not_fit(stack):
    jobs = {name: content for name, (content, _, _) in WRONG.items()}
    write(stack, {**FITS, **jobs})
    told = stack.pulumi("preview", expect=None)
    assert "Traceback" not in told
    for name, (_, says, _) in WRONG.items():
        lines = [line for line in told.splitlines() if f"jobs/fit-{name}.yaml:" in line]
        assert any(says in line for line in lines), (name, told)


def test_preview_warns_about_jobs_that_barely_fit(stack):
    write(stack, {name: content for name, (content, _, _) in DOUBTFUL.items()})
    told = stack.pulumi("preview")
    for name, (_, says, _) in DOUBTFUL.items():
        assert any(f"jobs/fit-{name}.yaml:" in x and says in x for x in told.splitlines()), told


@pytest.mark.parametrize("name", [*WRONG, *DOUBTFUL])
def test_local_cloud_refuses_the_same_job_with_the_reason(stack, client, name):
    content, _, says = {**WRONG, **DOUBTFUL}[name]
    assert says in answer(stack, client, request(stack, content))


def test_preview_reports_all_ranges_that_do_not_fit(stack):
    ranges = {
        "small": {"prefixLength": 24},
        "first": {"prefixLength": 18, "address": "10.64.0.0"},
        "second": {"prefixLength": 18, "address": "10.64.0.0"},
        "training": {"prefixLength": 18, "address": "172.16.0.0"},
    }
    network = {"mode": "peering", "ranges": ranges, "subnet": {"range": "10.64.1.0/30"}}
    far = {**CPU, "zone": "europe-west4-a"}
    write(stack, FITS, network=network, reservations={"cpu": far})
    told = stack.pulumi("preview", expect=None)
    for says in (
        "network.ranges.small.prefixLength: this range is too small for training",
        "network.subnet.range: the subnet is smaller than /28",
        "network.ranges.second.address: this block overlaps 10.64.0.0/18",
        "network.ranges.training.address: this block overlaps 172.16.0.0/16",
        "reservations.cpu.zone: this zone is outside of us-central1",
    ):
        assert says in told, told


def test_local_cloud_refuses_overlapping_addresses(stack):
    estate = Estate(stack.checkout.home, stack.project)
    estate.network("crowded")
    estate.peering(18, network="crowded", address="10.64.0.0")
    subnet = "gcp:compute/subnetwork:Subnetwork"
    with pytest.raises(CloudError, match="conflicts with allocated range 'training'"):
        estate.make(subnet, name="s", network="crowded", ipCidrRange="10.64.1.0/24")
    with pytest.raises(CloudError, match="must be between /4 and /29"):
        estate.make(subnet, name="s", network="crowded", ipCidrRange="10.65.0.0/30")


def test_full_range_or_reserved_range_fails_a_job(stack, client):
    estate = Estate(stack.checkout.home, stack.project)
    for name, prefix, address, region, says in (
        ("small", 24, "10.64.0.0", "europe-west1", "RANGES_EXHAUSTED"),
        ("inner", 18, "172.16.0.0", "europe-west2", "reserved for Vertex AI Training"),
    ):
        estate.network(name)
        estate.peering(prefix, network=name, address=address, name=f"{name}-range")
        path = f"projects/{stack.number}/global/networks/{name}"
        assert says in answer(stack, client, request(stack, job(network=path)), region)
