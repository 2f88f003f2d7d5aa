import pytest

from vertex_training import naming


@pytest.mark.parametrize("name", ["ab", "Upper-case", "a" * 64, "-lead", "tail-", "dot.ted"])
def test_illegal_bucket_names_are_recognised(name):
    assert not naming.BUCKET.match(name)


@pytest.mark.parametrize(
    ("key", "value"), [("Team", "x"), ("1a", "x"), ("a" * 64, "x"), ("a", "X"), ("a", "v" * 64)]
)
def test_illegal_labels_are_explained(key, value):
    assert naming.label_problem(key, value)
