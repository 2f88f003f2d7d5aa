import pytest

from vertex_training.customjob.request import references
from vertex_training.errors import UnknownReferenceError

TABLE = {
    "buckets.data": "gs://b",
    "buckets.data.mount": "/gcs/b",
    "reservations.h100": {"key": "k"},
}


def test_references_are_replaced_inside_of_text():
    text = references.resolve("--in=${buckets.data}/x --at=${buckets.data.mount}", TABLE)
    assert text == "--in=gs://b/x --at=/gcs/b"


@pytest.mark.parametrize(
    "text", ["${HOME}", "$(VAR)", "$${VAR}", "${}", "${a b.c}", "$buckets.data"]
)
def test_text_without_a_dotted_name_is_not_ours(text):
    assert references.resolve(text, TABLE) == text
    assert references.names_in(text) == []


def test_an_unknown_name_suggests_one_of_its_kind():
    with pytest.raises(UnknownReferenceError) as unknown:
        references.resolve("${buckets.dta}", TABLE)
    assert unknown.value.hint == "did you mean 'buckets.data'?"


def test_a_kind_the_stack_declares_none_of_hints_where_to():
    with pytest.raises(UnknownReferenceError) as unknown:
        references.resolve("${images.trainer}", TABLE)
    assert unknown.value.hint == (
        "this stack declares no images; name 'trainer' under vertex-training:images"
    )


def test_an_unknown_kind_suggests_among_all():
    with pytest.raises(UnknownReferenceError) as unknown:
        references.resolve("${buckts.data}", TABLE)
    assert unknown.value.hint == "did you mean 'buckets.data'?"


def test_a_whole_section_cannot_stand_inside_of_text():
    with pytest.raises(UnknownReferenceError, match="reservations"):
        references.resolve("x ${reservations.h100}", TABLE)
    assert references.message_of("${reservations.h100}", TABLE) == {"key": "k"}
