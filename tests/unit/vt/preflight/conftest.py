"""Stacks of ``tests/corpus/preflight`` in an empty project of the local cloud."""

from __future__ import annotations

import functools
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from localgcp.apis.server import serve
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory import vpc
from localgcp.inventory.resource_paths import SELF_LINK, project_number
from localgcp.inventory.store import BUCKET, SERVICE, Binding, Store
from localgcp.reads.secretmanager import add_version
from localgcp.reads.serving import Reads
from tests.fixture_project import copy_project
from tests.unit.vt.images.stand_in import Registry
from tests.unit.vt.preflight.answer_rows import CORPUS
from vertex_training_cli.declared import DeclaredStack, declare_stack
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.preflight import command
from vertex_training_cli.preflight.context import Answer, PreflightContext, ReadOnlyClient
from vertex_training_cli.rest import RestClient

PROJECT, HOST, SHARED = "local-ml-prod", "local-net-prod", "local-shared"
REGION = "us-central1"
KEY = f"projects/{PROJECT}/locations/{REGION}/keyRings/ml/cryptoKeys/training"
TOKEN = f"projects/{PROJECT}/secrets/hf-token"
IMAGES = f"projects/{SHARED}/locations/{REGION}/repositories/images"
#: The network of the host project, which the stack uses and does not make.
NETWORK = f"projects/{HOST}/global/networks/production"
#: What the fixture's stack has -> what the local cloud takes.
NAMES = {
    "acme-ml-prod": PROJECT,
    "acme-net-prod": HOST,
    "acme-ml-dev": "local-ml-dev",
    "109876543210": project_number(PROJECT),
    "345678901234": project_number(HOST),
}
#: Image of a job -> its path in the registry; one is of another project.
IMAGE_PATHS = {
    "titanic": f"{PROJECT}/training-prod/titanic",
    "flash-attention": f"{SHARED}/images/flash-attention",
}
#: What the stack uses of others, and makes nothing of.
OF_OTHERS = "company-data"
#: APIs that are on before a first deployment.
STATE = "local-ml-prod-pulumi-state"
FIRST = ("serviceusage.googleapis.com", "cloudresourcemanager.googleapis.com")


@dataclass
class Rehearsal:
    """The stack, and the cloud that is asked."""

    ref: StackRef
    declared: DeclaredStack
    store: Store
    client: RestClient
    add_fault: Callable[[str], Any]
    """Adds a fault by the words of ``vt local fault add``."""
    made: frozenset[str] = frozenset()
    """Ids of the declared resources that the state has."""
    as_ci: bool = False

    def context(self) -> PreflightContext:
        client = ReadOnlyClient(self.client)
        recorded = frozenset((r.type, r.id) for r in self.declared.resources if r.id in self.made)
        state = f"gs://{STATE}"
        return PreflightContext(self.ref, self.declared, client, recorded, state, as_ci=self.as_ci)

    def answers(self) -> list[Answer]:
        return command.check_all(self.context())


@pytest.fixture(scope="session")
def images() -> Iterator[Registry]:
    """The registry with the images of the stack's jobs."""
    registry = Registry()
    for path in IMAGE_PATHS.values():
        registry.add_image(path, "v1")
    yield registry
    registry.stop()


@pytest.fixture(scope="session")
def declared(
    tmp_path_factory: pytest.TempPathFactory, images: Registry
) -> Callable[[str], tuple[StackRef, DeclaredStack]]:
    """Return what a stack of ``tests/corpus/preflight`` declares; each is recorded once."""

    @functools.cache
    def of(name: str) -> tuple[StackRef, DeclaredStack]:
        root = copy_project(tmp_path_factory.mktemp(name))
        file, text = root / "Pulumi.prod.yaml", ""
        if name in ("prod", "plain"):
            text = file.read_text(encoding="utf-8")
            for theirs, ours in NAMES.items():
                text = text.replace(theirs, ours)
        else:
            text = (CORPUS / f"{name}.stack.yaml").read_text(encoding="utf-8")
            shutil.copy(CORPUS / f"{name}.job.yaml", root / "jobs" / "train.yaml")
        file.write_text(_stack_file(text, images) if name == "prod" else text, encoding="utf-8")
        ref = StackRef(root, "vertex-training", "prod", PROJECT, REGION)
        return ref, declare_stack(root, "prod")

    return of


def _stack_file(text: str, images: Registry) -> str:
    """A stack file in projects of the local cloud, with a key, images, and things of others."""
    document = yaml.safe_load(text)
    config = {key.removeprefix("vertex-training:"): v for key, v in document["config"].items()}
    own, theirs = IMAGE_PATHS["titanic"], IMAGE_PATHS["flash-attention"]
    digests = {path: digest for path, digest in images.manifests if digest.startswith("sha256:")}
    config["images"] = {
        "titanic": {"digest": digests[own]},
        "flash-attention": {"uri": f"{REGION}-docker.pkg.dev/{theirs}@{digests[theirs]}"},
    }
    config["encryption"] = {"key": KEY}
    config["buckets"]["company"] = {"existing": OF_OTHERS}
    config["secrets"]["token"] = {"existing": TOKEN}
    trainer = config["serviceAccounts"]["trainer"]
    trainer["reads"].append("company")
    trainer["secrets"].append("token")
    whole = {key if ":" in key else f"vertex-training:{key}": v for key, v in config.items()}
    return yaml.safe_dump({**document, "config": whole, "secretsprovider": f"gcpkms://{KEY}"})


def _fill(home: Home, store: Store) -> None:
    """What is there before a first deployment: what others and ``bootstrap`` have made."""
    for project in (PROJECT, HOST):
        for api in FIRST:
            store.put(SERVICE, f"{project}/{api}", project, {}, {})
    for bucket, project in ((OF_OTHERS, SHARED), (STATE, PROJECT)):
        store.put(BUCKET, bucket, project, {}, {"name": bucket, "project": project})
    primary = {"name": f"{KEY}/cryptoKeyVersions/1", "state": "ENABLED"}
    store.put("gcp:kms/cryptoKey:CryptoKey", KEY, PROJECT, {}, {"primaries": [primary]})
    store.put("gcp:secretmanager/secret:Secret", TOKEN, PROJECT, {}, {"name": TOKEN})
    add_version(home.secrets, PROJECT, "hf-token", b"x")
    domains = ("gcp-sa-aiplatform", "gcp-sa-aiplatform-cc")
    number = project_number(PROJECT)
    members = tuple(
        f"serviceAccount:service-{number}@{each}.iam.gserviceaccount.com" for each in domains
    )
    pulls = Binding("roles/artifactregistry.reader", members)
    store.set_policy(IMAGES, (pulls,), expected_etag=store.policy(IMAGES).etag)


def _fill_existing(store: Store) -> None:
    """Store what the stack ``existing`` uses, and the accounts of ``serving``."""
    inventory = yaml.safe_load((CORPUS / "inventory.yaml").read_text(encoding="utf-8"))
    for type_, id_, project, values in inventory:
        store.put(type_, id_, project, values, values)


Rehearse = Callable[[str], Rehearsal]


@pytest.fixture
def rehearse(
    tmp_path: Path,
    declared: Callable[[str], tuple[StackRef, DeclaredStack]],
    images: Registry,
    vt: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Rehearse]:
    """Return a rehearsal of a stack of ``tests/corpus/preflight``."""
    home = Home(tmp_path / "cloud", tmp_path)
    home.create()
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    monkeypatch.setenv("ARTIFACT_REGISTRY_EMULATOR_HOST", images.address)
    store = Store(home.database)
    _fill(home, store)
    link = {"name": "production", "selfLink": SELF_LINK + NETWORK}
    store.put(vpc.NETWORK, NETWORK, HOST, link, link)
    reads = Reads(store, FaultTable(home.faults), threading.Event())
    server = serve([], 0, folder=tmp_path, also=reads.answer)
    session = requests.Session()
    session.trust_env = False

    def add_fault(words: str) -> None:
        done = vt("local", "fault", "add", *shlex.split(words))
        assert done.exit_code == 0, done.output

    def start(stack: str) -> Rehearsal:
        if stack in ("existing", "serving"):
            _fill_existing(store)
        client = RestClient(session, f"127.0.0.1:{server.port}")
        return Rehearsal(*declared(stack), store, client, add_fault)

    yield start
    session.close()
    server.stop(None).wait()


@pytest.fixture
def rehearsal(rehearse: Rehearse) -> Rehearsal:
    return rehearse("prod")
