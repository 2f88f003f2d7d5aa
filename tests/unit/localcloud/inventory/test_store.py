"""The store keeps what was written, under writers in many threads and processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localgcp.errors import PolicyConflictError
from localgcp.inventory import store as stores
from localgcp.inventory.store import (
    ACCOUNT,
    BUCKET,
    EMPTY_POLICY,
    SERVICE,
    Binding,
    Store,
    project_number,
)

GRANT_ONE = """
import sys
from pathlib import Path
from localgcp.errors import PolicyConflictError
from localgcp.inventory.store import Binding, Store

store, name = Store(Path(sys.argv[1])), sys.argv[2]
for index in range(20):
    while True:
        policy = store.policy("b/shared")
        more = (*policy.bindings, Binding(f"roles/{name}.{index}", ("user:me",)))
        try:
            store.set_policy("b/shared", more, expected_etag=policy.etag)
            break
        except PolicyConflictError:
            continue
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "some" / "state" / "cloud.sqlite")


def test_a_resource_comes_back_as_it_was_written(store: Store) -> None:
    store.put(BUCKET, "b1", "local-a", {"name": "b1"}, {"url": "gs://b1", "labels": {"k": None}})

    found = store.get(BUCKET, "b1")

    assert found is not None
    assert (found.type, found.id, found.project) == (BUCKET, "b1", "local-a")
    assert found.inputs == {"name": "b1"}
    assert found.outputs == {"url": "gs://b1", "labels": {"k": None}}


def test_insert_leaves_what_is_there_and_delete_says_whether_it_was(store: Store) -> None:
    assert store.insert(BUCKET, "b1", "local-a", {}, {"url": "first"})
    assert not store.insert(BUCKET, "b1", "local-b", {}, {"url": "second"})
    assert store.bucket("b1") == {"url": "first"}
    assert store.delete(BUCKET, "b1")
    assert not store.delete(BUCKET, "b1")


def test_list_selects_by_type_and_project(store: Store) -> None:
    store.put(BUCKET, "b", "local-a", {}, {})
    store.put(ACCOUNT, "s", "local-a", {}, {})
    store.put(ACCOUNT, "t", "local-b", {}, {})

    assert [r.id for r in store.list()] == ["s", "t", "b"]
    assert [r.id for r in store.list(ACCOUNT)] == ["s", "t"]
    assert [r.id for r in store.list(project="local-a")] == ["s", "b"]
    assert [r.id for r in store.list(ACCOUNT, "local-b")] == ["t"]


def test_the_questions_of_the_control_planes_are_answered(store: Store) -> None:
    email = "x@local-a.iam.gserviceaccount.com"
    store.put(SERVICE, "local-a/aiplatform.googleapis.com", "local-a", {}, {})
    store.put(ACCOUNT, f"projects/local-a/serviceAccounts/{email}", "local-a", {}, {"email": email})

    assert store.service_enabled("local-a", "aiplatform.googleapis.com")
    assert not store.service_enabled("local-b", "aiplatform.googleapis.com")
    assert store.account(email) == {"email": email}
    assert store.account("nobody@local-a.iam.gserviceaccount.com") is None
    assert store.bucket("none") is None


@pytest.mark.parametrize(
    ("basic", "before"), [("admin", "owner"), ("writer", "editor"), ("reader", "viewer")]
)
def test_a_basic_role_goes_by_the_name_that_it_had_before_iam(
    store: Store, basic: str, before: str
) -> None:
    binding = Binding(f"roles/{basic}", ("user:x",))
    store.set_policy("projects/p", (binding,), expected_etag=EMPTY_POLICY.etag)
    assert store.roles("projects/p", "user:x") == {f"roles/{before}"}
    assert store.policy("projects/p").bindings == (binding,)


def test_roles_are_those_of_the_member_on_exactly_this_resource(store: Store) -> None:
    bindings = (
        Binding("roles/a", ("user:x", "user:y")),
        Binding("roles/b", ("user:x",), {"title": "t", "expression": "true", "description": ""}),
    )
    store.set_policy("b/one", bindings, expected_etag=EMPTY_POLICY.etag)

    assert store.roles("b/one", "user:x") == {"roles/a", "roles/b"}
    assert store.roles("b/one", "user:y") == {"roles/a"}
    assert store.roles("b/two", "user:x") == set()
    assert store.policy("b/one").bindings == bindings


def test_a_policy_that_changed_meanwhile_is_refused_with_409(store: Store) -> None:
    stale = store.policy("b/one").etag
    fresh = store.set_policy("b/one", (Binding("roles/a", ("user:x",)),), expected_etag=stale)

    with pytest.raises(PolicyConflictError) as caught:
        store.set_policy("b/one", (), expected_etag=stale)

    assert (caught.value.code, caught.value.status) == (409, "ABORTED")
    assert store.policy("b/one") == fresh


def test_a_policy_without_members_is_gone(store: Store) -> None:
    policy = store.set_policy(
        "b/one", (Binding("roles/a", ("user:x",)),), expected_etag=EMPTY_POLICY.etag
    )
    store.set_policy("b/one", (Binding("roles/a", ()),), expected_etag=policy.etag)

    assert store.policies() == {}


def test_concurrent_threads_insert_one_resource_once(store: Store) -> None:
    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(lambda _: store.insert(BUCKET, "b", "local-a", {}, {}), range(64)))

    assert won.count(True) == 1


def test_concurrent_processes_lose_no_grant(store: Store) -> None:
    names = ["one", "two", "three"]
    running = [
        subprocess.Popen([sys.executable, "-c", GRANT_ONE, str(store.path), name]) for name in names
    ]

    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    wanted = {f"roles/{name}.{index}" for name in names for index in range(20)}
    assert store.roles("b/shared", "user:me") == wanted


def test_a_store_that_was_removed_starts_empty_again(store: Store) -> None:
    store.put(BUCKET, "b", "local-a", {}, {})
    for file in store.path.parent.iterdir():
        file.unlink()

    assert store.list() == []


def test_a_project_number_has_twelve_digits_and_is_the_same_everywhere() -> None:
    assert project_number("local-training") == "971240389164"
    assert len({project_number(f"local-{n}") for n in range(1000)}) == 1000
    assert all(len(project_number(f"local-{n}")) == 12 for n in range(1000))


def test_policies_are_those_whose_path_begins_so(store: Store) -> None:
    for resource in ("b/one", "projects/local-a", "projects/local-a/secrets/b/"):
        store.set_policy(
            resource, (Binding("roles/a", ("user:x",)),), expected_etag=EMPTY_POLICY.etag
        )

    assert list(store.policies("b/")) == ["b/one"]
    assert list(store.policies("projects/")) == ["projects/local-a", "projects/local-a/secrets/b/"]
    assert len(store.policies()) == 3


def test_a_read_does_not_write_to_the_file(store: Store) -> None:
    store.put(BUCKET, "b", "local-a", {}, {})
    before = store.path.read_bytes()

    assert store.bucket("b") == {}
    assert store.policies() == {}

    assert store.path.read_bytes() == before


def test_a_bucket_that_a_client_made_is_of_no_project(store: Store) -> None:
    """gsutil makes it in the emulator, which keeps each bucket in a folder."""
    assert store.bucket("mine") is None
    (store.path.with_name("storage") / "mine").mkdir(parents=True)
    assert store.bucket("mine") == {"name": "mine"}
    store.put(BUCKET, "mine", "local-p", {}, {"name": "mine", "project": "local-p"})
    assert store.bucket("mine") == {"name": "mine", "project": "local-p"}
    for name in ("", ".", "..", "mine/", "../storage/mine", "mine/x", "mine\n", "/"):
        assert store.bucket(name) is None


def test_a_member_that_is_gone_is_in_no_policy(store: Store) -> None:
    limit = {"title": "t", "description": "", "expression": "x"}
    before = {
        "b/a": (Binding("r1", ("gone", "stays")), Binding("r1", ("gone",), limit)),
        "b/b": (Binding("r2", ("gone",)),),
        "b/c": (Binding("r3", ("stays", "gone2")),),
    }
    etags = {
        name: store.set_policy(name, bindings, expected_etag=EMPTY_POLICY.etag).etag
        for name, bindings in before.items()
    }
    store.delete_member("gone")
    found = store.policies()
    assert {name: policy.bindings for name, policy in found.items()} == {
        "b/a": (Binding("r1", ("stays",)),), "b/c": before["b/c"],
    }  # fmt: skip
    assert {name for name in found if found[name].etag == etags[name]} == {"b/c"}


def test_a_new_file_is_made_when_others_let_go_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(tmp_path / "cloud.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            other.execute("ROLLBACK")

    monkeypatch.setattr(stores.time, "sleep", sleep)
    monkeypatch.setattr(stores, "BUSY_SECONDS", -1)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        Store(tmp_path / "cloud.sqlite").list()
    assert waited == []
    monkeypatch.setattr(stores, "BUSY_SECONDS", 60)
    assert Store(tmp_path / "cloud.sqlite").list() == []
    assert waited == [0.01, 0.01]
    other.close()


def test_the_file_of_a_store_is_this_users_alone(tmp_path: Path) -> None:
    Store(tmp_path / "a.sqlite").list()
    with stores.connection(tmp_path / "b.sqlite", ""):
        pass
    for name in ("a", "b"):
        assert (tmp_path / f"{name}.sqlite").stat().st_mode & 0o777 == 0o600
