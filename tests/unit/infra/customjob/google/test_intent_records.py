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


class Listed:
    """A bucket with these names of objects, or none of it."""

    def __init__(self, *found):
        self.found, self.asked = found, []

    def bucket(self, _name):
        return self

    def list_blobs(self, **arguments):
        self.asked.append(arguments)
        if isinstance(self.found[0], Exception):
            raise self.found[0]
        page = [SimpleNamespace(name=name) for name in self.found]
        return SimpleNamespace(pages=[page], next_page_token=None)


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


def test_keys_of_turns_are_those_of_the_environments_folder():
    bucket = Listed("environments/dev/turns/r/a.json", "environments/dev/turns/r/b.json")
    intents = intent_store.BucketIntents(bucket, "control", "environments/dev/")
    assert intents.turn_keys() == frozenset({"r/a", "r/b"})
    assert bucket.asked[0]["prefix"] == "environments/dev/turns/"
    assert intent_store.BucketIntents(Listed(NotFound("x")), "c").turn_keys() == frozenset()
    with pytest.raises(OperatorError) as raised:
        intent_store.BucketIntents(Listed(Forbidden("no right")), "control").turn_keys()
    assert str(raised.value) == (
        "the control bucket control could not be read or written; nothing was sent: Forbidden: "
        "no right"
    )


class Written:
    """A bucket that remembers what is written, or refuses it."""

    def __init__(self, error=None):
        self.error, self.written = error, []

    def bucket(self, _name):
        return self

    def blob(self, name):
        def upload_from_string(content, **arguments):
            self.written.append((name, content, arguments))
            if self.error:
                raise self.error

        return SimpleNamespace(
            name=name,
            generation=8,
            updated=datetime.datetime(2026, 11, 26, tzinfo=datetime.UTC),
            upload_from_string=upload_from_string,
        )


def test_a_turn_is_written_under_the_precondition_that_nobody_else_wrote_it():
    bucket = Written()
    intents = intent_store.BucketIntents(bucket, "control", "tuning/")
    intents.write_turn("r/a", "id1", 3, 7)
    intents.write_turn("r/a", "id1", 3, 7, withdrawn=True)
    document = {"format": 1, "requestId": "id1", "number": 3}
    for (name, content, arguments), expected in zip(
        bucket.written, (document, document | {"withdrawn": True}), strict=True
    ):
        assert (name, json.loads(content)) == ("tuning/turns/r/a.json", expected)
        assert arguments["content_type"] == "application/json"
        assert arguments["if_generation_match"] == 7
    refused = intent_store.BucketIntents(Written(PreconditionFailed("x")), "control")
    with pytest.raises(PreconditionFailedError):
        refused.write_turn("r/a", "id1", 3, 7)
    refused = intent_store.BucketIntents(Written(Forbidden("no right")), "control")
    with pytest.raises(OperatorError, match="could not be read or written; nothing was sent: For"):
        refused.write_turn("r/a", "id1", 3, 7)


@pytest.mark.parametrize(
    ("lacks", "told"),
    [
        ("updated", "{}: Cloud Storage gave no time of update."),
        ("generation", "{}: Cloud Storage gave no generation."),
    ],
)
def test_an_answer_without_what_orders_records_is_refused(lacks, told):
    class Lacking(Written):
        def blob(self, name):
            return SimpleNamespace(**{**vars(super().blob(name)), lacks: None})

    intents = intent_store.BucketIntents(Lacking(), "control")
    with pytest.raises(OperatorError) as refused:
        intents.write(IntentRecord("id1", IntentState.INTENT, "me"), 0)
    assert str(refused.value) == told.format("submissions/id1.json")


def test_the_stores_time_is_when_an_object_of_it_was_written():
    bucket = Written()
    assert intent_store.BucketIntents(bucket, "control").now() == 1_795_651_200.0
    assert [name for name, *_ in bucket.written] == ["clock"]
    bucket.blob = lambda name: SimpleNamespace(updated=None, upload_from_string=lambda *_, **__: 0)
    with pytest.raises(OperatorError) as refused:
        intent_store.BucketIntents(bucket, "control").now()
    assert str(refused.value) == "the control bucket control returned no update time."
    refused = intent_store.BucketIntents(Written(Forbidden("no right")), "control")
    with pytest.raises(OperatorError, match="control could not be read or written; nothing was"):
        refused.now()


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
def test_records_of_a_project_are_where_its_jobs_are(monkeypatch, project, address, told):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
    with pytest.raises(OperatorError) as raised:
        intent_store.connect(project, "control")
    assert str(raised.value) == told
