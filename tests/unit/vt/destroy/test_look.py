"""What buckets hold, and what Pulumi would meet there."""

from __future__ import annotations

from vertex_training_cli.destroy.look import Contents
from vertex_training_cli.destroy.losses import Loss
from vertex_training_cli.engine.plan import NOTHING_OBSERVED
from vertex_training_cli.jobs.objects import ObjectListing

SOME, NONE = ObjectListing(3, False, None), ObjectListing(0, False, None)


def bucket(name: str, *, empties: bool = False, own: bool = False) -> Loss:
    return Loss("bucket", name, name, "", protected=False, empties=empties, own=own)


def test_a_bucket_with_objects_refuses_unless_it_is_emptied() -> None:
    contents = Contents(NOTHING_OBSERVED, {"full": SOME, "empty": NONE, "forced": SOME}, ())
    given = [bucket("full"), bucket("empty"), bucket("forced", empties=True), bucket("unread")]
    assert contents.full(given) == ["full"]


def test_the_stacks_own_buckets_do_not_stop_it_and_are_told() -> None:
    contents = Contents(NOTHING_OBSERVED, {"control": SOME}, ())
    own = bucket("control", own=True)
    assert contents.full([own]) == []
    assert contents.keeps(own)
