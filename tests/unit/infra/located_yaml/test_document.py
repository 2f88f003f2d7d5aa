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
    assert parsed.location(("missing", "b", 0, "c")) == Location("x.yaml", 1, 1)


def test_merged_keys_give_way_to_own_ones():
    text = b"base: &base {a: 1, b: 2}\njob:\n  <<: *base\n  b: 3\n"
    job = document.parse(text, "x.yaml").root.content["job"].content
    assert {key: value.content for key, value in job.items()} == {"a": 1, "b": 3}


def test_a_few_lines_of_anchors_cannot_grow_without_bound():
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 12):
        uses = b", ".join([b"*a%d" % (level - 1)] * 10)
        lines.append(b"a%d: &a%d [%s]" % (level, level, uses))
    assert "expands to more than 20,000 values" in refused(b"\n".join(lines))


@pytest.mark.parametrize(
    ("data", "rule", "place"),
    [
        (b"", "not-a-mapping", (1, 1)),
        (b"a" * 500_001, "too-large", (1, 1)),
        (b"a: 1\nb: 2\nc: \xe9\n", "not-text", (3, 1)),
        (b"\x00", "not-yaml", (1, 1)),
        (b"a: 1\n---\nb: 2\n", "not-yaml", (2, 1)),
        (b"a: 1\nb: !!python/object:os.system x\n", "bad-value", (2, 4)),
        (b"a: 1\nb: " + b"1" * 41 + b"\n", "bad-value", (2, 4)),
        (b"a: 1\n? [1]\n: 2\n", "bad-key", (2, 3)),
        (b"a: 1\n" + b"k" * 201 + b": 2\n", "bad-key", (2, 1)),
        (b"a: 1\n<<: [{b: 1}, 3]\n", "bad-merge", (2, 5)),
        (b"a: 1\nb: {c: 1, c: 2}\n", "duplicate-key", (2, 11)),
        (b"a: &a [*a]\n", "too-deep", (1, 4)),
        (b"a: [" + b"x," * 19_996 + b"x]\n", "too-large", (1, 39_995)),
    ],
)
def test_unreadable_yaml_breaks_one_rule_at_its_place(data, rule, place):
    with pytest.raises(ConfigError) as failed:
        document.parse(data, "x.yaml")
    [problem] = failed.value.problems
    assert (problem.rule, problem.location) == (rule, Location("x.yaml", *place))
