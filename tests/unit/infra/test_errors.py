import pytest

from vertex_training.errors import (
    nearest,
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
