"""A local cloud in this process with everything that its server serves, and one of each kind in it.

Jobs of Vertex AI are accepted and never run: what they become is set where a test needs it.
BigQuery's run, and so do containers of models.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import requests

from localgcp.apis.server import serve
from localgcp.batch.service import Batch
from localgcp.bigquery.service import BigQuery
from localgcp.cloudbuild.service import CloudBuild
from localgcp.containers.host import ContainerHost
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import (
    ACCOUNT,
    CHANNEL,
    SERVICE,
    TENSORBOARD,
    Binding,
    Store,
    project_number,
)
from localgcp.reads.projects import ProjectService
from localgcp.reads.secretmanager import SecretService, add_version
from localgcp.reads.serving import Reads
from localgcp.runner.programs import CloudHost
from localgcp.serving.deployments import Host
from localgcp.serving.service import Serving
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.proxy import StorageFront
from localgcp.tuning.service import Tuning
from localgcp.vertex.collections import ResourceTable
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService, PipelineService, TensorboardService
from tests.contract import description
from tests.contract.served import Call
from tests.unit.localcloud.conftest import PROJECT, TRAINER, free_port
from tests.unit.localcloud.serving.conftest import SHORT
from tests.unit.localcloud.vertex.estate import Estate
from tests.warehouse import install_engine

REGION: Final = "us-central1"
ROOT: Final = Path(__file__).parents[2]
APIS: Final = (
    *(
        "aiplatform",
        "artifactregistry",
        "batch",
        "bigquery",
        "cloudbuild",
        "cloudkms",
        "cloudresourcemanager",
    ),
    *("compute", "iam", "logging", "secretmanager", "storage"),
)
BUCKET: Final = f"{PROJECT}-contract"


@dataclass
class Idle:
    """A scheduler of jobs and a runner of builds that run nothing."""

    storage_url: str = ""

    def submit(self, job_id: str) -> None: ...
    def cancel(self, job_id: str) -> None: ...
    def start(self, build_id: str, access: object) -> None: ...


@dataclass
class Answer:
    """What was asked and answered."""

    call: Call
    path: str
    status: int
    document: Any


@dataclass
class ContractCloud:
    """A cloud, and what is known by name in it."""

    home: Home
    store: Store
    jobs: JobTable
    url: str
    storage: str
    """Address of Cloud Storage."""
    classes: frozenset[str]
    """Names of the services that it serves."""
    session: requests.Session
    names: list[str] = field(default_factory=list)

    def send(self, call: Call, path: str, body: Any = None) -> Answer:
        """Call a method; ``body`` is a document, or text as it is."""
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        got = self.session.request(
            call.verb, self.url + path, data=data and data.encode(), timeout=30
        )
        found = Answer(call, path, got.status_code, got.json())
        if got.status_code == 200:
            self._note(found.document)
        return found

    def paths(self, call: Call) -> Iterator[str]:
        """Paths of the method with what is there, the newest first."""
        template = description.skeleton(call.template)
        end = template.rfind("{}") + 2
        if end == 1:
            yield template
            return
        begin = re.match(r"/(?:\w+/)?v\d\w*/", template)
        assert begin is not None
        form = re.escape(template[begin.end() : end]).replace(r"\{\}", "[^/:]+")
        for name in reversed(self.names):
            if re.fullmatch(form, name):
                yield f"{begin[0]}{name}{template[end:]}"

    def _note(self, document: Any) -> None:
        found = document if isinstance(document, list) else [document]
        if isinstance(document, dict):
            found = [*document.values()]
            for each in _names(document):
                if each.startswith("projects/") and each not in self.names:
                    self.names.append(each)
        for each in found:
            if isinstance(each, dict | list):
                self._note(each)


def _names(document: dict[str, Any]) -> Iterator[str]:
    """Names of what a document describes or refers to, as paths of methods have them."""
    name, target = (str(document.get(key, "")) for key in ("name", "targetLink"))
    if "modelVersionId" in document:  # first: a model's own name is the newer one
        yield f"{document['model']}@{document['modelVersionId']}"
    for each in (name, target[target.find("projects/") :]):
        yield from (each, re.sub("/locations/[^/]+(?=/builds/)", "", each))
    if "projectId" in document:  # a reference of BigQuery
        project = f"projects/{document['projectId']}"
        if "jobId" in document:
            yield from (f"{project}/{kind}/{document['jobId']}" for kind in ("jobs", "queries"))
        if "datasetId" in document:
            yield (name := f"{project}/datasets/{document['datasetId']}")
            if "tableId" in document:
                yield f"{name}/tables/{document['tableId']}"


@contextmanager
def running(folder: Path) -> Iterator[ContractCloud]:
    """The cloud, until the block ends."""
    home = Home(folder / "home", ROOT)
    home.create()
    install_engine()
    store, jobs, faults = Store(home.database), JobTable(home.database), FaultTable(home.faults)
    emulator = StorageEmulator(home.storage, home.storage_log, home.children)
    storage = StorageFront(emulator, faults, free_port)
    with ExitStack() as stack:
        storage.start(free_port())
        stack.callback(storage.stop)
        service, tuning = JobService(store, jobs, Idle()), Tuning(home)
        builds: Any = CloudBuild(home, store, storage.url, lambda: {})
        builds.runner = Idle(storage.url)
        warehouse = BigQuery(home, store, faults, storage.url)
        reads = Reads(store, faults, threading.Event(), warehouse)
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        machine = CloudHost(home, store, ContainerHost(home, 0), storage.url, f"{url}/")
        host = Host(machine, free_port, SHORT)
        serving = Serving(service, ResourceTable(home.database), host, faults)
        batch = Batch(machine, faults)
        apis = [
            service,
            tuning.start(service),
            PipelineService(service),
            TensorboardService(service),
            ProjectService(store, reads.answer),
            LogService(home, store, jobs, builds.entries() | batch.entries(), tuning),
            SecretService(home, store),
            builds,
            batch.service,
            *serving.services,
        ]
        stack.callback(tuning.stop)
        warehouse.jobs.start()
        stack.callback(warehouse.jobs.stop)
        serving.start()
        stack.callback(serving.stop)
        server = serve(apis, port, (), home.sockets, reads.answer)
        stack.callback(lambda: server.stop(None).wait())
        session = stack.enter_context(requests.Session())
        session.trust_env = False
        names = frozenset(type(each).__name__ for each in apis)
        cloud = ContractCloud(home, store, jobs, url, storage.url, names, session)
        _furnish(cloud)
        yield cloud


def _furnish(cloud: ContractCloud) -> None:
    """One resource of each type that has methods over REST alone."""
    for api in APIS:
        cloud.store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
    cloud.store.put(ACCOUNT, TRAINER, PROJECT, {}, {"email": TRAINER})
    estate = Estate(cloud.home.root)
    estate.network()
    estate.attachment()
    estate.reservation()
    network = f"projects/{PROJECT}/global/networks/vpc"
    link = {"network": network}
    rule = [{"protocol": "tcp", "ports": ["22"]}]
    labels = {"labels": {"team": "ml"}}
    for token, inputs in {
        "compute/firewall:Firewall": {"name": "open", "allows": rule, **link},
        "compute/router:Router": {"name": "router", "region": REGION, **link},
        "secretmanager/secret:Secret": {"secretId": "key", "replication": {"auto": {}}, **labels},
        "artifactregistry/repository:Repository": {
            "repositoryId": "images", "format": "DOCKER", "location": REGION, **labels,
        },
        "serviceaccount/account:Account": {"accountId": "second", "displayName": "d"},
    }.items():  # fmt: skip
        estate.make(f"gcp:{token}", **inputs)
    ring = estate.make("gcp:kms/keyRing:KeyRing", name="ring", location=REGION)
    estate.make("gcp:kms/cryptoKey:CryptoKey", name="key", keyRing=ring)
    estate.peering()
    add_version(cloud.home.secrets, PROJECT, "key", b"value")
    _put_source(cloud)
    member = f"serviceAccount:{TRAINER}"
    owner = tuple(Binding(f"roles/{role}", (member,)) for role in ("owner", "storage.admin"))
    cloud.store.set_policy(f"projects/{PROJECT}", owner, expected_etag="ACAB")
    project = f"projects/{PROJECT}"
    services = f"{project}/services/aiplatform.googleapis.com"
    cloud.names = [
        "b/" + BUCKET, services, f"{services}/consumerQuotaMetrics/x",
        "services/servicenetworking.googleapis.com", f"{project}/regions/{REGION}",
        f"{project}/locations/{REGION}", f"{project}/secrets/key/versions/1",
        f"{project}/policies/compute.vmExternalIpAccess", project,
        "billingAccounts/012345-567890-ABCDEF",
    ]  # fmt: skip
    channel = f"{project}/notificationChannels/1"
    values = {"name": channel, "type": "email", "labels": {"email_address": "ml@example.com"}}
    cloud.store.put(CHANNEL, channel, PROJECT, values, values)
    board = f"projects/{project_number(PROJECT)}/locations/{REGION}/tensorboards/1"
    cloud.store.put(TENSORBOARD, board, PROJECT, {}, {"displayName": "b", "labels": {"team": "ml"}})
    cloud.names += [
        each.id for each in cloud.store.list(project=PROJECT) if each.id.startswith("projects/")
    ]


def _put_source(cloud: ContractCloud) -> None:
    """A bucket with the source of a build, and rows for a table."""
    base = f"{cloud.storage}/storage/v1/b"
    cloud.session.post(base, params={"project": PROJECT}, json={"name": BUCKET})
    upload = f"{cloud.storage}/upload/storage/v1/b/{BUCKET}/o"
    for name, content in (("source.tar.gz", b"source"), ("rows.csv", b"name,age\nAda,36\n")):
        query = {"uploadType": "media", "name": name}
        cloud.session.post(upload, params=query, data=content)
    outputs = {"name": BUCKET, "project": PROJECT, "location": "US-CENTRAL1"}
    cloud.store.put("gcp:storage/bucket:Bucket", BUCKET, PROJECT, {}, outputs)
