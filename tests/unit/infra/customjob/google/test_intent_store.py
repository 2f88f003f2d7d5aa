"""The official client against the storage emulator of the local cloud."""

import pytest
from google.cloud import storage

from localgcp.server import choose_port
from localgcp.storage import StorageEmulator
from vertex_training.customjob.google import intent_store
from vertex_training.customjob.protocol.ports import IntentRecord, IntentState
from vertex_training.errors import PreconditionFailedError


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    home = tmp_path_factory.mktemp("storage")
    (home / "run").mkdir()
    (home / "files").mkdir()
    running = StorageEmulator(home / "files", home / "storage.log", home / "run")
    running.start(choose_port(0, "storage"))
    yield running
    running.stop()


@pytest.fixture
def name(request):
    return "control-" + str(abs(hash(request.node.name)))[:12]


@pytest.fixture
def intents(emulator, monkeypatch, name):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator.url)
    storage.Client(project="local-x").create_bucket(name)
    return intent_store.connect("local-x", name)


def record(state=IntentState.INTENT, owner="me", job_name=""):
    return IntentRecord("id1", state, owner, job_name)


def test_a_turn_is_taken_by_one_and_read_as_it_was_taken(intents):
    assert intents.read_turn("r/titanic") is None
    intents.write_turn("r/titanic", "id1", 1, 0)
    turn = intents.read_turn("r/titanic")
    with pytest.raises(PreconditionFailedError):
        intents.write_turn("r/titanic", "id2", 2, 0)
    intents.write_turn("r/titanic", "id1", 7, turn.generation)  # once more: others see that it was
    with pytest.raises(PreconditionFailedError):
        intents.write_turn("r/titanic", "id2", 8, turn.generation)
    taken = intents.read_turn("r/titanic")
    assert (taken.request_id, taken.number) == ("id1", 7)
    assert intents.read_turn("r/iris") is None
