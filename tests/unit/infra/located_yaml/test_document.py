import pytest

from vertex_training.errors import ConfigError, Location
from vertex_training.located_yaml import document


def refused(data: bytes) -> str:
    with pytest.raises(ConfigError) as failed:
        document.parse(data, "x.yaml")
    return str(failed.value)


def test_every_value_knows_its_place():
    parsed = document.parse(b"a: 1\nb:\n  - c: two\n", "x.yaml")
    assert parsed.location(("b", 0, "c")) == Location("x.yaml", 3, 8)
    assert parsed.location(("b", 0, "c"), key=True) == Location("x.yaml", 3, 5)
    assert parsed.location(("b", 7)) == Location("x.yaml", 3, 3)
    assert parsed.location(("b", 0, "missing")) == Location("x.yaml", 3, 5)


def test_scalars_keep_the_text_they_were_written_as():
    root = document.parse(b"a: 012\nb: no\nc: 2026-01-31\n", "x.yaml").root.content
    assert (root["a"].content, root["a"].text) == (10, "012")
    assert (root["b"].content, root["b"].text) == (False, "no")
    assert root["c"].content == "2026-01-31"


def test_duplicate_keys_are_found_all_at_once():
    told = refused(b"a: {b: 1, b: 2}\nc: 1\nc: 2\n")
    assert "x.yaml:1:11: the same key twice (got b)" in told
    assert "x.yaml:3:1: the same key twice (got c)" in told


def test_merged_keys_give_way_to_own_ones():
    text = b"base: &base {a: 1, b: 2}\njob:\n  <<: *base\n  b: 3\n"
    job = document.parse(text, "x.yaml").root.content["job"].content
    assert {key: value.content for key, value in job.items()} == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "a job file is a mapping"),
        (b"- a\n", "a job file is a mapping"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (b"a: 1\nb: \xe9\n", "x.yaml:2:1: not text in UTF-8"),
        (b"\x00", "not YAML"),
        (b"a: [1\n", "not YAML"),
        (b"\ta: 1\n", "x.yaml:1:1: not YAML"),
        (b"a: 1\n---\nb: 2\n", "another document"),
        (b"a: " + b"[" * 400_000, "nested more than 40 levels deep"),
        (b"a: &a [*a]\n", "nested more than 40 levels deep"),
        (b"a" * 500_001, "at most 500,000 bytes"),
        (b"a: !!python/object:os.system x\n", "not a value YAML knows"),
        (b"? [1]\n: 2\n", "a key must be plain text"),
        (b"a:\n  <<: 3\n", "<< merges mappings only"),
    ],
)
def test_what_is_no_job_file_is_refused_in_one_line(data, expected):
    assert expected in refused(data)


def test_a_few_lines_of_anchors_cannot_grow_without_bound():
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 12):
        uses = b", ".join([b"*a%d" % (level - 1)] * 10)
        lines.append(b"a%d: &a%d [%s]" % (level, level, uses))
    assert "grows to more than 20,000 values" in refused(b"\n".join(lines))
