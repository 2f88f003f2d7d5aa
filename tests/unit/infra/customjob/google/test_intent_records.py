"""Records in the control bucket: whose they are, and that content and generation fit each other."""

import datetime
import json
from types import SimpleNamespace

import pytest
from google.api_core.exceptions import PreconditionFailed

from vertex_training.customjob.google import intent_store
from vertex_training.errors import OperatorError

RECORD = {
    "format": intent_store.FORMAT,
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
