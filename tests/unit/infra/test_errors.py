import pytest

from vertex_training.errors import (
    CommandError,
    ImageBuildError,
    RegistryError,
    UnknownReferenceError,
    did_you_mean,
    nearest,
)


def test_errors_of_commands_have_a_hint():
    plain, hinted = CommandError("no"), CommandError("no.", "try again")
    assert (str(plain), plain.message, plain.hint) == ("no", "no", "")
    assert (str(hinted), hinted.message, hinted.hint) == (
        *("no. Hint: try again", "no.", "try again"),
    )
    built = ImageBuildError("no", (str(n) for n in range(30)), "x")
    assert built.last_lines == tuple(str(n) for n in range(10, 30))
    assert (str(built), ImageBuildError("no").last_lines) == ("no Hint: x", ())
    assert (RegistryError("no", "x", 404).status, RegistryError("no").status) == (404, 0)
    assert str(RegistryError("no", "x", 404)) == "no Hint: x"
    unknown = UnknownReferenceError("buckets.x", "known here: a")
    assert (str(unknown), unknown.name, unknown.hint) == (
        *("buckets.x", "buckets.x", "known here: a"),
    )


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("x" * 64, ["x" * 64], "x" * 64),
        ("x" * 65, ["x" * 65], None),
        ("BUCKETS", ["Buckets"], "Buckets"),
        ("buc", ["buckets"], "buckets"),
        ("n1-8", ["n1-4", "n1-96"], "n1-4"),
        ("n1-8", ["m1-4", "xyz"], None),
    ],
)
def test_similar_words_are_found(word, known, found):
    assert nearest(word, known) == found


def test_nearest_known_word_is_suggested():
    assert did_you_mean("buckts", ["buckets", "images"]) == "did you mean 'buckets'?"
    assert did_you_mean("ANY", ["ANY_RESERVATION", "NO_RESERVATION"]) == (
        "did you mean 'ANY_RESERVATION'?"
    )
    assert did_you_mean("zzz", ["b", "a"]) == "known here: a, b"
    assert did_you_mean("zzz", []) == ""
