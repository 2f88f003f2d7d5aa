"""Tests two stacks with a shared file, bucket and key: their owner, and the effect of an undo."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
import yaml

from localgcp.inventory.store import Store
from localgcp.vertex.records import JobState
from tests.conftest import Checkout
from tests.e2e.only_jobs import ROOT
from tests.e2e.small_stacks import REGION, SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

CORPUS = "acme-corpus-of-owner"
RING = f"projects/local-owner/locations/{REGION}/keyRings/ml"
KEY = f"{RING}/cryptoKeys/training"
READ, ANALYSTS = "roles/storage.objectViewer", "group:analysts@example.com"
SHARED = {
    "serviceAccounts": {"trainer": {"reads": ["corpus"], "writes": ["artifacts"]}},
    "buckets": {"artifacts": {"forceDestroy": True}},
}


@dataclass(frozen=True)
class TeamStack(SmallStack):
    """The stack of one of two teams in one project."""

    def share(self, corpus: dict[str, object], **sections: object) -> None:
        """Write the stack with a bucket of its own, and the file that both teams include."""
        jobs = {"busy": job_file()} if self.name == "owner" else {}
        given = {"buckets": {"corpus": corpus}, "serviceAccounts": {}, "include": ["shared.yaml"]}
        self.write(jobs, **{**given, **sections})
        config = {f"vertex-training:{key}": value for key, value in SHARED.items()}
        text = yaml.safe_dump({"config": config})
        (self.checkout.path / "shared.yaml").write_text(text, encoding="utf-8")

    def trainer(self) -> str:
        return f"serviceAccount:trainer-{self.name}@local-owner.iam.gserviceaccount.com"


OWNED = {"name": CORPUS, "forceDestroy": True, "members": {READ: [ANALYSTS]}}
ENCRYPTION = {"encryption": {"key": KEY}}


@pytest.fixture(scope="module")
def teams(checkout: Checkout) -> tuple[TeamStack, TeamStack]:
    """Deploy the team that owns the bucket and the key, and its guest; return both."""
    owner, guest = (TeamStack(checkout, name, "local-owner") for name in ("owner", "guest"))
    # A key is there before the stacks, as another team has made it.
    for kind, id_ in (("keyRing:KeyRing", RING), ("cryptoKey:CryptoKey", KEY)):
        owner.store.put(f"gcp:kms/{kind}", id_, "local-owner", {}, {})
    owner.share(OWNED, **ENCRYPTION)
    owner.up()
    guest.share({"existing": CORPUS})
    guest.up()
    return owner, guest


def on_corpus(store: Store) -> set[tuple[str, str]]:
    """Return role and member of all grants on the shared bucket."""
    bindings = store.policy(f"b/{CORPUS}").bindings
    return {(each.role, member) for each in bindings for member in each.members}


def test_only_encrypting_service_agents_can_use_the_key(teams: tuple[TeamStack, TeamStack]) -> None:
    owner, _ = teams
    users = {
        (each.role.rpartition(".")[2], member.partition("@")[2].partition(".")[0])
        for each in owner.store.policy(KEY).bindings
        for member in each.members
    }
    agents = {"gs-project-accounts", "gcp-sa-artifactregistry", "gcp-sa-aiplatform"}
    assert users == {("cryptoKeyEncrypterDecrypter", agent) for agent in agents}
    assert owner.states() == [JobState.RUNNING]
    made = owner.store.get("gcp:storage/bucket:Bucket", CORPUS)
    assert made is not None
    assert made.outputs["encryption"]["defaultKmsKeyName"] == KEY


def test_guest_stack_is_granted_on_the_shared_bucket_and_creates_none(
    teams: tuple[TeamStack, TeamStack],
) -> None:
    owner, guest = teams
    assert on_corpus(owner.store) == {
        (READ, owner.trainer()),
        (READ, guest.trainer()),
        (READ, ANALYSTS),
    }
    assert "storage-corpus" not in guest.pulumi("stack --show-urns")
    guest.pulumi("preview --expect-no-changes")


def test_moving_shared_sections_changes_nothing(teams: tuple[TeamStack, TeamStack]) -> None:
    owner, _ = teams
    alone = {
        "include": [],
        "serviceAccounts": SHARED["serviceAccounts"],
        "buckets": {"corpus": OWNED, **SHARED["buckets"]},
    }
    owner.share(OWNED, **ENCRYPTION, **alone)
    assert owner.plan() == []
    owner.share(OWNED, **ENCRYPTION)


def test_leaving_guest_stack_removes_only_its_grant(teams: tuple[TeamStack, TeamStack]) -> None:
    owner, guest = teams
    guest.pulumi("destroy -y --skip-preview")
    assert on_corpus(owner.store) == {(READ, owner.trainer()), (READ, ANALYSTS)}
    owner.pulumi("preview --expect-no-changes")


def test_imported_bucket_is_managed_by_the_stack(teams: tuple[TeamStack, TeamStack]) -> None:
    """Follows `docs/environments.md` word by word, except for the URN to insert."""
    _, guest = teams
    guest.share({"name": "acme-corpus", "forceDestroy": True})
    guest.up()
    [urn] = re.findall(r"urn:\S+::storage-corpus\b", guest.pulumi("stack --show-urns"))
    # Made, and of no stack: as if somebody had made it by hand.
    guest.pulumi(f"state delete --yes --target-dependents '{urn}'")
    guest.share({"name": "acme-corpus"})

    [block] = re.findall(r"```sh\n(pulumi stack --show-urns.*?)```", _page(), re.DOTALL)
    show, rest = block.split("\n", 1)
    found = guest.checkout.shell(f"export PULUMI_STACK=guest\n{show}").stdout
    [parent] = re.findall(r"urn:\S+::storage\b", found)
    # Without a terminal nobody is asked: the person has read the preview, and says yes.
    said_yes = "export PULUMI_STACK=guest PULUMI_SKIP_CONFIRMATIONS=true"
    shown = guest.checkout.shell(f"set -e\n{said_yes}\n{rest.replace('URN', parent)}").stdout
    assert re.search(r"^ *~ gcp:storage/bucket:Bucket: \(update\)", shown, re.MULTILINE), shown
    assert "+ gcp:storage/bucket:Bucket" not in shown

    # From then on it is the stack's: who takes it out of the file loses it, and the review says so.
    guest.up()
    guest.write({}, buckets={}, serviceAccounts={"trainer": {}})
    told = guest.checkout.run("vt", "review", "--stack", "guest").stdout
    assert "data is lost: `storage-artifacts` (destroyed), `storage-corpus` (destroyed)" in told


def _page() -> str:
    return (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
