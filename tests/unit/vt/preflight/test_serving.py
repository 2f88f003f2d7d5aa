"""A stack with a model and an endpoint: their image, their account and their key are asked for."""

from __future__ import annotations

import pytest

from localgcp.inventory.store import ACCOUNT
from localgcp.projects import local_project_number
from tests.fixture_project import copy_project
from tests.unit.vt.images.stand_in import Registry
from tests.unit.vt.preflight.conftest import IMAGE_PATHS, IMAGES, KEY, PROJECT, REGION, Rehearsal
from vertex_training_cli.declared import DeclaredStack, declare_stack
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.preflight.answers import Verdict

SERVER = "server@local-people.iam.gserviceaccount.com"
TRAINER = "trainer@local-people.iam.gserviceaccount.com"
AGENT = f"service-{local_project_number(PROJECT)}@gcp-sa-aiplatform.iam.gserviceaccount.com"
STACK = """\
config:
  gcp:project: {project}
  gcp:region: {region}
  vertex-training:projectNumber: "{number}"
  vertex-training:encryption: {{key: {key}, covers: [{covers}]}}
  vertex-training:serviceAccounts: {{server: {{existing: {server}}}}}
  vertex-training:jobs: {{train: {{file: jobs/train.yaml, run: 4}}}}
  vertex-training:models:
    titanic: {{job: train, run: [3, 4], container: "{image}"}}
  vertex-training:endpoints:
    titanic: {{machine: n1-standard-2, account: server, split: {{run 3: 100}}}}
"""
JOB = """\
displayName: train
jobSpec:
  serviceAccount: trainer@local-people.iam.gserviceaccount.com
  baseOutputDirectory: {outputUriPrefix: gs://local-results/train}
  workerPoolSpecs:
    - replicaCount: 1
      machineSpec: {machineType: n1-standard-8}
      containerSpec: {imageUri: docker.io/library/python:3.12-slim}
"""


def declared(folder_of: pytest.TempPathFactory, images: Registry, covers: str) -> DeclaredStack:
    root = copy_project(folder_of.mktemp("serving"))
    path = IMAGE_PATHS["flash-attention"]
    [digest] = [d for p, d in images.manifests if p == path and d.startswith("sha256:")]
    image = f"{REGION}-docker.pkg.dev/{path}@{digest}"
    number = local_project_number(PROJECT)
    (root / "Pulumi.prod.yaml").write_text(
        STACK.format(
            project=PROJECT, region=REGION, number=number, key=KEY, covers=covers,
            server=SERVER, image=image,
        )
    )  # fmt: skip
    (root / "jobs" / "train.yaml").write_text(JOB)
    return declare_stack(root, "prod")


@pytest.fixture(scope="session")
def prod(
    tmp_path_factory: pytest.TempPathFactory, images: Registry
) -> tuple[StackRef, DeclaredStack]:
    stack = declared(tmp_path_factory, images, "jobs")
    return StackRef(stack.stack.root, "vertex-training", "prod", PROJECT, REGION), stack


@pytest.fixture(autouse=True)
def accounts(rehearsal: Rehearsal) -> None:
    """Both accounts are of another project, and there."""
    for email in (SERVER, TRAINER):
        path = f"projects/local-people/serviceAccounts/{email}"
        rehearsal.store.put(ACCOUNT, path, "local-people", {}, {"name": path, "email": email})


def told(rehearsal: Rehearsal) -> list[tuple[str, str, str]]:
    found = (each for each in rehearsal.answers() if each.verdict is Verdict.REFUSED)
    return [(each.subject, each.answer, each.meets) for each in found]


def test_nothing_is_refused_where_all_is_there(rehearsal: Rehearsal) -> None:
    assert told(rehearsal) == []
    asked = {(each.subject, each.asked) for each in rehearsal.answers()}
    assert (SERVER, "whether who deploys may act as it (iam.serviceAccounts.actAs)") in asked
    assert (IMAGES, f"whether {AGENT} may pull") in asked
    # the custom code agent pulls for jobs alone
    assert [who for place, who in asked if place == IMAGES] == [f"whether {AGENT} may pull"]


def test_a_serving_image_that_is_gone_is_refused(
    rehearsal: Rehearsal, images: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "manifests", {})
    [(_, answer, meets)] = told(rehearsal)
    assert answer == "the registry has no image of this digest"
    assert meets == "no version of it can be deployed: titanic"
