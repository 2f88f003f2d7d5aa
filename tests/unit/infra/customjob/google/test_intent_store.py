"""The official client against the storage emulator of the local cloud."""

import pytest
from google.cloud import storage

from localgcp.home.servers import choose_port
from localgcp.storage.emulator import StorageEmulator
from vertex_training.customjob.google import intent_store
from vertex_training.customjob.protocol.ports import IntentRecord, IntentState
from vertex_training.errors import OperatorError, PreconditionFailedError


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


def test_a_record_is_read_as_it_was_written(intents):
    assert intents.read("id1") is None
    written = intents.write(record(IntentState.DONE, job_name="projects/1/x"), 0)
    assert intents.read("id1") == written


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


def test_the_stores_time_is_that_of_its_records(intents):
    written = intents.write(record(), 0)
    assert 0 <= intents.now() - written.updated < 30


@pytest.mark.parametrize(
    "content", ["{}", "[]", "no JSON", "[" * 100_000, '{"format": 2, "requestId": "id1"}']
)
def test_a_record_of_another_form_is_refused(intents, name, content):
    bucket = storage.Client(project="local-x").bucket(name)
    bucket.blob("submissions/id1.json").upload_from_string(content)
    with pytest.raises(OperatorError, match="is not a valid record of a submission"):
        intents.read("id1")
    bucket.blob("turns/r/titanic.json").upload_from_string(content)
    with pytest.raises(OperatorError, match=r"titanic\.json is not a valid record of a job's turn"):
        intents.read_turn("r/titanic")


def test_a_missing_bucket_is_reported_and_nothing_is_sent(emulator, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator.url)
    missing = intent_store.connect("local-x", "no-such-bucket")
    with pytest.raises(
        OperatorError, match=r"no-such-bucket does not exist\. Nothing was submitted"
    ):
        missing.write(record(), 0)
