"""Records in the control bucket: whose they are, and that content and generation fit each other."""

import datetime
import json
from types import SimpleNamespace

import pytest
from google.api_core.exceptions import Forbidden, NotFound, PreconditionFailed

from vertex_training.customjob.google import intent_store, storage_client
from vertex_training.customjob.protocol.ports import (
    IntentRecord,
    IntentState,
    TurnRecord,
)
from vertex_training.errors import OperatorError, PreconditionFailedError

RECORD = {
    "format": 1,
    "requestId": "id1",
    "state": "INTENT",
    "owner": "me",
    "jobName": "",
}


class Bucket:
    """A bucket with one object, which is written once between two reads of it."""

    name = "control"

    def __init__(self, *documents):
        self.documents = [json.dumps(document).encode() for document in documents]
        self.read_with = []

    def bucket(self, _name):
        return self

    def get_blob(self, name, timeout):
        generation = 1 + len(self.read_with)

        def download_as_bytes(*, timeout, if_generation_match=None):
            self.read_with.append(if_generation_match)
            if if_generation_match != len(self.documents):
                raise PreconditionFailed("written meanwhile")
            return self.documents[-1]

        return SimpleNamespace(
            name=name,
            generation=generation,
            updated=datetime.datetime.now(datetime.UTC),
            bucket=self,
            download_as_bytes=download_as_bytes,
        )


def read(bucket, request_id="id1"):
    return intent_store.BucketIntents(bucket, "control").read(request_id)


def test_content_is_only_taken_of_the_generation_that_was_found():
    bucket = Bucket(RECORD | {"owner": "old"}, RECORD | {"owner": "new"})
    stored = read(bucket)
    assert bucket.read_with == [1, 2]
    assert (stored.record.owner, stored.generation) == ("new", 2)


@pytest.mark.parametrize(
    "change",
    [
        {"requestId": "id2"},
        {"format": 99},
        {"state": "NO_SUCH_STATE"},
        {"owner": []},
        {"jobName": ["x"]},
    ],
)
def test_a_record_of_another_request_or_format_is_refused(change):
    with pytest.raises(OperatorError, match="is no record of a submission"):
        read(Bucket(RECORD | change))


TURN = {"format": 1, "requestId": "id1", "number": 3}


def read_turn(document):
    return intent_store.BucketIntents(Bucket(document), "control").read_turn("r/titanic")


def test_a_turn_is_read_with_its_number_and_whether_it_was_withdrawn():
    assert read_turn(TURN) == TurnRecord("id1", 1, 3, withdrawn=False)
    assert read_turn(TURN | {"withdrawn": True}) == TurnRecord("id1", 1, 3, withdrawn=True)
    assert read_turn(TURN | {"withdrawn": 1}) == TurnRecord("id1", 1, 3, withdrawn=False)


@pytest.mark.parametrize(
    "document",
    [
        TURN | {"format": 99},
        TURN | {"requestId": 1},
        TURN | {"number": "3"},
        {key: TURN[key] for key in ("format", "requestId")},
        [],
        None,
    ],
)
def test_a_turn_of_another_format_is_refused(document):
    with pytest.raises(OperatorError) as refused:
        read_turn(document)
    assert str(refused.value) == (
        "gs://control/turns/r/titanic.json is no record of a job's turn; nothing was sent. "
        "Somebody else wrote it: restore an older generation of the object."
    )


@pytest.mark.parametrize("tokens", [("x", "x"), ("x", "y", "x")])
def test_a_list_of_objects_whose_pages_come_again_is_not_read_for_ever(tokens):
    listed = SimpleNamespace(next_page_token=None)

    def pages():
        for listed.next_page_token in tokens:
            yield ["a"]
        raise AssertionError("read on")

    listed.pages = pages()
    found = storage_client.all_blobs(listed)
    assert [next(found) for _ in tokens] == ["a"] * len(tokens)
    with pytest.raises(OperatorError, match=r"^a list of Cloud Storage has no end: a page comes"):
        next(found)


class Client:
    """A bucket that records writes and lists, or refuses them."""

    def __init__(self, error=None, listed=(), **lacks):
        self.error, self.listed, self.lacks, self.written, self.prefix = (
            error,
            listed,
            lacks,
            [],
            "",
        )

    def bucket(self, _name):
        return self

    def _refuse(self):
        if self.error:
            raise self.error

    def list_blobs(self, *, prefix, **_):
        self.prefix = prefix
        self._refuse()
        page = [SimpleNamespace(name=name) for name in self.listed]
        return SimpleNamespace(pages=[page], next_page_token=None)

    def blob(self, name):
        def upload_from_string(content, **arguments):
            self.written.append((name, content, arguments))
            self._refuse()

        updated = datetime.datetime(2026, 11, 26, tzinfo=datetime.UTC)
        found = {"name": name, "generation": 8, "updated": updated} | self.lacks
        return SimpleNamespace(**found, upload_from_string=upload_from_string)


def intents(*arguments, prefix="", **more):
    return intent_store.BucketIntents(Client(*arguments, **more), "control", prefix)


REFUSED = "the control bucket control could not be read or written; nothing was sent: Forbidden: no"


def test_keys_of_turns_are_those_of_the_folder():
    client = Client(listed=("environments/dev/turns/r/a.json", "environments/dev/turns/r/b.json"))
    store = intent_store.BucketIntents(client, "control", "environments/dev/")
    assert store.turn_keys() == frozenset({"r/a", "r/b"})
    assert client.prefix == "environments/dev/turns/"
    assert intents(NotFound("x")).turn_keys() == frozenset()


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.turn_keys(),
        lambda store: store.now(),
        lambda store: store.write_turn("r/a", "id1", 3, 7),
        lambda store: store.write(IntentRecord("id1", IntentState.INTENT, "me"), 0),
    ],
    ids=["keys", "time", "turn", "record"],
)
def test_a_refusal_of_the_bucket_is_reported(call):
    with pytest.raises(OperatorError) as refused:
        call(intents(Forbidden("no")))
    assert str(refused.value) == REFUSED


def test_a_turn_is_written_only_over_the_generation_that_was_read():
    client = Client()
    store = intent_store.BucketIntents(client, "control", "tuning/")
    store.write_turn("r/a", "id1", 3, 7)
    store.write_turn("r/a", "id1", 3, 7, withdrawn=True)
    for (name, content, arguments), more in zip(
        client.written, ({}, {"withdrawn": True}), strict=True
    ):
        expected = {"format": 1, "requestId": "id1", "number": 3} | more
        assert (name, json.loads(content)) == ("tuning/turns/r/a.json", expected)
        assert arguments["content_type"] == "application/json"
        assert arguments["if_generation_match"] == 7
    with pytest.raises(PreconditionFailedError):
        intents(PreconditionFailed("x")).write_turn("r/a", "id1", 3, 7)


def test_an_answer_without_a_time_or_a_generation_is_refused():
    record = IntentRecord("id1", IntentState.INTENT, "me")
    for lacks, message in (
        ("updated", "submissions/id1.json: Cloud Storage gave no time of update."),
        ("generation", "submissions/id1.json: Cloud Storage gave no generation."),
    ):
        with pytest.raises(OperatorError) as refused:
            intents(**{lacks: None}).write(record, 0)
        assert str(refused.value) == message
    with pytest.raises(OperatorError) as refused:
        intents(updated=None).now()
    assert str(refused.value) == "the control bucket control returned no update time."


def test_the_time_of_the_store_is_that_of_a_written_object():
    client = Client()
    assert intent_store.BucketIntents(client, "control").now() == 1_795_651_200.0
    assert [name for name, *_ in client.written] == ["clock"]


@pytest.mark.parametrize(
    ("project", "address", "told"),
    [
        (
            "local-x", "",
            "project 'local-x' lives in the local cloud, and STORAGE_EMULATOR_HOST is not set. "
            "Run this in `vt local shell`.",
        ),
        (
            "acme", "http://x",
            "STORAGE_EMULATOR_HOST is set, but project 'acme' is no local one (local-…). "
            "Leave `vt local shell` to reach Google Cloud.",
        ),
    ],
)  # fmt: skip
def test_records_of_a_local_project_are_in_the_local_cloud(monkeypatch, project, address, told):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
    with pytest.raises(OperatorError) as raised:
        intent_store.connect(project, "control")
    assert str(raised.value) == told
