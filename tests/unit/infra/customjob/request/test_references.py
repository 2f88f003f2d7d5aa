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


@pytest.mark.parametrize(
    ("text", "table", "hint"),
    [
        ("${buckets.a.b}", {}, "this stack declares no buckets; name 'a' under "
         "vertex-training:buckets"),
        *((f"${{{kind}.x}}", {}, f"this stack declares no {kind}; name 'x' under "
           f"vertex-training:{kind}")
          for kind in ("images", "packages", "reservations", "secrets", "serviceAccounts",
                       "snapshots")),
        ("${network.name}", {}, "vertex-training:network gives it in mode peering"),
        ("${network.attachment}", {}, "vertex-training:network gives it in mode psc"),
        ("${network.interface}", {"network.name": "n"},
         "vertex-training:network gives it in mode psc"),
        ("${network.nam}", {"network.name": "n"}, "did you mean 'network.name'?"),
        ("${tensorboard.name}", {}, "vertex-training:tensorboard names the instance"),
        ("${buckets.dta}", {"buckets.data": "b", "secrets.dta": "s"},
         "did you mean 'buckets.data'?"),
        ("${wrong.kind}", {"job.name": "x"}, "known here: job.name"),
        ("${wrong.kind}", {}, ""),
        ("x/${images.a}", {"images.a": references.UnknownValue("build it")}, "build it"),
        ("x/${a.b}", {"a.b": {}}, "it stands for a whole section, not for text"),
    ],
)  # fmt: skip
def test_a_name_without_a_value_is_told_with_what_gives_it_one(text, table, hint):
    with pytest.raises(UnknownReferenceError) as unknown:
        references.resolve(text, table)
    assert (unknown.value.name, unknown.value.hint) == (text.partition("{")[2][:-1], hint)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("${reservations.h100}", {"key": "k"}),
        ("  ${reservations.h100}\n", {"key": "k"}),
        ("${buckets.data}", "gs://b"),
        ("${buckets.dat}", None),
        ("x ${reservations.h100}", None),
        ("reservations.h100", None),
        ("${images.a}", None),
    ],
)
def test_a_single_reference_may_stand_for_a_section(text, found):
    table = {**TABLE, "images.a": references.UnknownValue("build it")}
    assert references.message_of(text, table) == found
