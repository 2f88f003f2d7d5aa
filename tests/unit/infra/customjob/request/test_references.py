import pytest

from vertex_training.customjob.request import references
from vertex_training.errors import UnknownReferenceError

TABLE = {
    "buckets.data": "gs://b",
    "buckets.data.mount": "/gcs/b",
    "reservations.h100": {"key": "k"},
}


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
