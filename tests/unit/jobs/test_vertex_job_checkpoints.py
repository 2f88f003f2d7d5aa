"""Checkpoints of the library for jobs: whole at every moment, in a folder and in a bucket."""

from __future__ import annotations

import http.client
import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vertex_job.checkpoints import BackgroundSaver, Checkpoints
from vertex_job.errors import CheckpointError, StoreError
from vertex_job.stop import StopRequest
from vertex_job.stores import BucketStore, Content, DiskStore, Output, Store, pieces_of, store_at

from tests.unit.localcloud.conftest import Cloud, cloud_with_storage, home, make_cloud

__all__ = ["cloud_with_storage", "home", "make_cloud"]  # fixtures


class Killed(Exception):
    """The process ends here."""


class MemoryStore:
    """A store that ends the process before, or in the middle of, one of its changes."""

    def __init__(self, files: dict[str, bytes], left: int | None = None) -> None:
        self.files, self.left = files, left

    def sizes(self) -> dict[str, int]:
        return {name: len(data) for name, data in self.files.items()}

    def read(self, name: str) -> bytes:
        if name not in self.files:
            raise StoreError(f"no {name}")
        return self.files[name]

    def pieces(self, name: str) -> Iterator[bytes]:
        yield self.read(name)

    def write(self, name: str, data: Content) -> None:
        assert not callable(data)
        whole = b"".join(pieces_of(data))
        self._change(lambda: self.files.__setitem__(name, whole[: len(whole) // 2]))
        self.files[name] = whole

    def delete(self, name: str) -> None:
        self._change(lambda: None)
        self.files.pop(name, None)

    def _change(self, torn: Callable[[], None]) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                torn()
                raise Killed


@pytest.fixture
def bucket(cloud_with_storage: Cloud, monkeypatch: pytest.MonkeyPatch) -> Store:
    cloud_with_storage.bucket("out")
    assert cloud_with_storage.storage is not None
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud_with_storage.storage.url)
    return store_at("gs://out/run 1/checkpoints/")


@pytest.fixture(params=["disk", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "disk":
        yield store_at(str(tmp_path / "checkpoints"))
    else:
        yield request.getfixturevalue("bucket")


def test_the_newest_whole_checkpoint_is_found_by_listing(store: Store) -> None:
    made = Checkpoints(store)
    assert made.newest() is None
    made.save(100, {"model.pt": b"a", "rng/0.bin": b""})
    made.save(200, {"model.pt": b"b"})
    found = Checkpoints(store).newest()
    assert found is not None
    assert (found.step, found.read("model.pt"), list(found.files)) == (200, b"b", ["model.pt"])
    with pytest.raises(CheckpointError, match="has no rng"):
        found.read("rng/0.bin")


def test_an_answer_that_ends_early_is_no_whole_file(
    bucket: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Checkpoints(bucket).save(1, {"w": b"x" * (3 << 20)})
    found = Checkpoints(bucket).at(1)
    monkeypatch.setattr(http.client.HTTPResponse, "read", lambda *_args: b"")
    monkeypatch.setattr("vertex_job.stores.time.sleep", lambda _seconds: None)
    with pytest.raises(StoreError, match="the answer was incomplete"):
        found.fetch("w", tmp_path / "w")
    assert list(tmp_path.glob("*w*")) == []


def test_changed_object_is_refused(bucket: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.write("w", b"a" * (3 << 20))
    pieces = bucket.pieces("w")
    next(pieces)
    bucket.write("w", b"b" * (3 << 20))

    def broken(*_args: object) -> bytes:
        patched.setattr(http.client.HTTPResponse, "read", real)
        raise ConnectionResetError("reset by peer")

    real = http.client.HTTPResponse.read
    with monkeypatch.context() as patched:
        patched.setattr("vertex_job.stores.time.sleep", lambda _seconds: None)
        patched.setattr(http.client.HTTPResponse, "read", broken)
        with pytest.raises(StoreError, match=r"cannot read w at .*: the object changed during"):
            list(pieces)


def test_a_restored_file_is_whole_or_not_there(store: Store, tmp_path: Path) -> None:
    made, target = Checkpoints(store), tmp_path / "into" / "w"
    made.save(1, {"w": b"content"})
    found = made.at(1)
    found.fetch("w", target)
    assert target.read_bytes() == b"content"
    store.write("step-000000001/w", b"contemt")
    with pytest.raises(CheckpointError, match="w differs from the saved content"):
        found.fetch("w", target)
    assert target.read_bytes() == b"content"
    assert [path.name for path in target.parent.iterdir()] == ["w"]
    with pytest.raises(CheckpointError, match="cannot write"):
        found.fetch("w", target / "below")


def test_a_file_that_cannot_be_read_is_named(store: Store, tmp_path: Path) -> None:
    for missing in (tmp_path / "none.pt", tmp_path):
        with pytest.raises(StoreError, match=f"cannot read {missing}: "):
            Checkpoints(store).save(1, {"w": missing})
    assert store.sizes() == {}


def test_a_part_that_is_missing_is_never_committed(store: Store) -> None:
    made = Checkpoints(store)
    made.write_part(5, "shard-0", b"0")
    with pytest.raises(
        CheckpointError, match="step-000000005/shard-1 of the checkpoint is missing"
    ):
        made.commit(5, ["shard-0", "shard-1"])
    assert made.newest() is None


def test_damaged_content_is_passed_over(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    made = Checkpoints(store)
    for step in (1, 2, 3, 4):
        made.save(step, {"w": b"content"})
    store.write("step-000000004/w", b"contemt")
    store.delete("step-000000003/w")
    store.write("step-000000002/manifest.json", b'{"files": 3}')
    found = made.newest()
    assert found is None  # 1 is gone: three are kept
    made.save(5, {"w": b"content"})
    newest = made.newest()
    assert newest is not None
    assert newest.step == 5
    assert (
        "step-000000004 is incomplete or damaged: step-000000004/w differs from the saved content"
        in (capsys.readouterr().out)
    )


@given(st.integers(min_value=0, max_value=40), st.integers(min_value=1, max_value=3))
def test_a_kill_at_any_change_leaves_the_newest_whole_one(changes: int, keep: int) -> None:
    """Each change of the store may be the last, torn in the middle; what is found is whole."""
    files: dict[str, bytes] = {}
    done = 0
    try:
        made = Checkpoints(MemoryStore(files, left=changes), keep=keep)
        for step in (1, 2, 3, 4):
            made.save(step, {"w": b"weights %d" % step, "o": b"optimizer %d" % step})
            done = step
    except Killed:
        pass
    after = Checkpoints(MemoryStore(files), keep=keep)
    found = after.newest()
    step = found.step if found else 0
    assert step in (done, done + 1)
    if found:
        assert found.read("w") == b"weights %d" % step
        assert found.read("o") == b"optimizer %d" % step
    after.clear_partial()
    assert (after.newest().step if found else 0) == step  # pyright: ignore[reportOptionalMemberAccess]
    after.save(step + 1, {"w": b"next", "o": b"next"})
    newest = after.newest()
    assert newest is not None
    assert newest.step == step + 1


def test_functions_write_files_and_the_newest_is_read_once(store: Store) -> None:
    def write(output: Output) -> None:
        output.write(b"a" * 10)
        output.write(memoryview(b"bc"))  # pyright: ignore[reportArgumentType]

    saver = BackgroundSaver(Checkpoints(store))
    saver.save(1, {"w": write, "o": b"o"})
    saver.save(2, {"w": b"second"})
    saver.wait()
    made = Checkpoints(store)
    assert made.at(1).read("w") == b"a" * 10 + b"bc"
    assert made.read_newest() == (2, {"w": b"second"})
    store.write("step-000000002/w", b"damaged")
    assert made.read_newest() == (1, {"w": b"a" * 10 + b"bc", "o": b"o"})


def test_failed_save_is_raised_by_the_next_call(tmp_path: Path) -> None:
    saver = BackgroundSaver(Checkpoints(str(tmp_path)))
    saver.save(1, {"w": tmp_path / "missing"})
    with pytest.raises(StoreError, match="cannot read"):
        saver.save(2, {"w": b""})
    saver.save(3, {"w": b""})
    saver.wait()
    assert Checkpoints(str(tmp_path)).read_newest() == (3, {"w": b""})


def test_save_killed_at_any_moment_loses_the_last_interval_at_most(tmp_path: Path) -> None:
    """200 processes save in the background without a pause and are killed."""
    random, checkpoints = Random(11), Checkpoints(str(tmp_path))
    resumed = 0
    for _ in range(200):
        reports, report = os.pipe()
        child = os.fork()
        if not child:
            try:
                _save_until_killed(checkpoints, report)
            finally:
                os._exit(1)
        os.close(report)
        with os.fdopen(reports) as lines:
            assert int(lines.readline()) > resumed
            time.sleep(random.uniform(0.0, 0.01))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            finished = [int(line) for line in lines.read().splitlines()]
        saved = checkpoints.read_newest()
        assert saved is not None
        step, files = saved
        assert step >= max([resumed + 1, *finished]), "a finished save was lost"
        assert files == {name: _content(name, step) for name in ("w", "o")}
        resumed = step


def _content(name: str, step: int) -> bytes:
    return f"{name} {step}\n".encode() * 20_000


def _save_until_killed(checkpoints: Checkpoints, report: int) -> None:
    checkpoints.clear_partial()
    newest = checkpoints.newest()
    first = newest.step + 1 if newest else 1
    saver = BackgroundSaver(checkpoints)
    for step in count(first):
        saver.save(step, {name: _content(name, step) for name in ("w", "o")})
        if step > first:  # the call has waited for the save before
            os.write(report, f"{step - 1}\n".encode())


@pytest.mark.parametrize("name", ["", "manifest.json", "w.sum.json", "/w"])
def test_names_that_the_checkpoint_itself_uses_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a valid name"):
        Checkpoints(str(tmp_path)).write_part(1, name, b"")


def test_a_place_is_a_bucket_or_a_path() -> None:
    assert isinstance(store_at("gs://b/p"), BucketStore)
    assert isinstance(store_at("/gcs/b/p"), DiskStore)
    for wrong in ("s3://b/p", "gs://", "http://x"):
        with pytest.raises(StoreError, match="is neither gs://BUCKET/PATH nor a path"):
            store_at(wrong)
    with pytest.raises(CheckpointError, match="keep must be 1 or more"):
        Checkpoints("x", keep=0)


def test_an_answer_that_fails_for_a_moment_is_asked_for_again(
    bucket: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import urllib.error
    import urllib.request

    real, failures = urllib.request.urlopen, [OSError("reset"), TimeoutError("slow")]

    def flaky(request: urllib.request.Request, timeout: float) -> object:
        if failures:
            assert isinstance(request.data, Iterator)
            assert next(request.data)  # a part of it was sent
            raise failures.pop()
        return real(request, timeout=timeout)

    monkeypatch.setattr(urllib.request, "urlopen", flaky)
    monkeypatch.setattr("vertex_job.stores.time.sleep", lambda _seconds: None)
    content = tmp_path / "w"
    content.write_bytes(os.urandom(3 << 20))
    bucket.write("w", content)
    assert bucket.read("w") == content.read_bytes()
    assert not failures


def test_sigterm_is_a_flag() -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        stop = StopRequest()
        assert not stop.requested
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested
    finally:
        signal.signal(signal.SIGTERM, before)
