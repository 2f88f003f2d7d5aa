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


def at(count):
    """A list that is ``count`` levels below the mapping."""
    return b"a: " + b"[" * count + b"]" * count + b"\n"


def test_exactly_forty_levels_are_read():
    document.parse(at(39), "x.yaml")  # the mapping itself is the first
    assert "x.yaml:1:43: nested more than 40 levels deep" in refused(at(40))
    # Lists that stand beside one another are no deeper than one.
    document.parse(at(39) + b"b: " + b"[[]]\n" + b"c: [[]]\n", "x.yaml")


def test_exactly_twenty_thousand_values_are_read():
    def many(items):
        return b"a: [" + b"x, " * (items - 1) + b"x]\n"

    # Beside the items: the mapping, its key and the list, and the two ends of text and document.
    document.parse(many(19_993), "x.yaml")
    assert "grows to more than 20,000 values" in refused(many(19_994))


@pytest.mark.parametrize(
    ("entry", "item", "most"),
    [
        # Beside the items: four values of the first entry, the second's key and list, the mapping.
        ("b: [c]", "*a", 4_998),  # of each: a mapping, a key, a list, a text
        ("b: c, d: e, f: g", "{<<: *a}", 1_998),  # a mapping, three merged, three keys and values
    ],
)
def test_what_stands_for_another_value_counts_as_much(entry, item, most):
    def uses(count):
        return f"a: &a {{{entry}}}\nl: [{', '.join([item] * count)}]\n".encode()

    assert document.parse(uses(most), "x.yaml").problems == ()
    assert "grows to more than 20,000 values" in refused(uses(most + 1))


def test_a_million_characters_are_read_and_not_one_more():
    def text(characters):
        line = b"a: &a " + b"x" * 1000 + b"\nb: [" + b"*a, " * 997 + b"*a]\n"
        rest = characters - 999_000 - 3
        return line + b"c: " + b"x" * rest + b"\n"

    document.parse(text(1_000_000), "x.yaml")
    assert "20,000 values or 1,000,000 characters" in refused(text(1_000_001))


@pytest.mark.parametrize(
    ("data", "rule", "place"),
    [
        (b"", "not-a-mapping", (1, 1)),
        (b"- a\n", "not-a-mapping", (1, 1)),
        (b"a" * 500_001, "too-large", (1, 1)),
        (b"a: 1\nb: 2\nc: \xe9\n", "not-text", (3, 1)),
        (b"\x00", "not-yaml", (1, 1)),
        (b"a: 1\nb: [1\n", "not-yaml", (3, 1)),
        (b"a: 1\n---\nb: 2\n", "not-yaml", (2, 1)),
        (b"a: 1\nb: !!python/object:os.system x\n", "bad-value", (2, 4)),
        (b"a: 1\nb: " + b"1" * 41 + b"\n", "bad-value", (2, 4)),
        (b"a: 1\nb: 1." + b"1" * 39 + b"\n", "bad-value", (2, 4)),
        (b"a: 1\n? [1]\n: 2\n", "bad-key", (2, 3)),
        (b"a: 1\n" + b"k" * 201 + b": 2\n", "bad-key", (2, 1)),
        (b"a: 1\n<<: 3\n", "bad-merge", (2, 5)),
        (b"a: 1\n<<: [{b: 1}, 3]\n", "bad-merge", (2, 5)),
        (b"a: 1\nb: {c: 1, c: 2}\n", "duplicate-key", (2, 11)),
        (b"a: *b\n", "not-yaml", (1, 4)),
        (b"a: &a [*a]\n", "too-deep", (1, 4)),
        (b"a: " + b"[" * 41, "too-deep", (1, 43)),
        (b"a: [" + b"x," * 19_996 + b"x]\n", "too-large", (1, 39_995)),
    ],
)
def test_what_cannot_be_read_is_told_by_one_rule_at_its_place(data, rule, place):
    with pytest.raises(ConfigError) as failed:
        document.parse(data, "x.yaml")
    [problem] = failed.value.problems
    assert (problem.rule, problem.location) == (rule, Location("x.yaml", *place))


@pytest.mark.parametrize(
    "text", ["1" * 40, "1" * 39 + ".", "x" * 41, "'" + "1" * 41 + "'", "k" * 200 + ": 1"]
)
def test_what_is_as_long_as_it_may_be_is_read(text):
    line = text if ":" in text else f"a: {text}"
    assert document.parse(line.encode(), "x.yaml").root.content


def test_only_several_documents_are_told_as_such():
    assert "one file is one job" in refused(b"a: 1\n---\nb: 2\n")
    assert "indent with spaces" in refused(b"a: [1\n")
    assert "indent with spaces" in refused(b"\ta: 1\n")


def test_a_merge_of_several_takes_the_first_that_has_a_key():
    text = b"a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  w: 0\n"
    found = document.parse(text, "x.yaml").root
    assert found.plain()["c"] == {"w": 0, "x": 1, "y": 1, "z": 2}
    places = {"w": (5, 3), "x": (1, 8), "y": (1, 14), "z": (2, 14)}
    assert found.content["c"].keys == places


def test_a_value_that_could_not_be_read_leaves_the_others():
    found = document.read(b"a: !!bool x\nb: [1, two]\n", "x.yaml")
    assert [problem.rule for problem in found.problems] == ["bad-value"]
    assert found.root.content["a"].content is document.UNREADABLE
    assert found.root.content["b"].plain() == [1, "two"]
    with pytest.raises(ConfigError):
        document.parse(b"a: !!bool x\nb: [1, two]\n", "x.yaml")


def test_of_many_mistakes_the_first_hundred_are_kept():
    lines = b"".join(b"k: 1\n" for _ in range(150))
    problems = document.read(lines, "x.yaml").problems
    assert len(problems) == 100
    assert problems[0].location == Location("x.yaml", 2, 1)


@pytest.mark.parametrize(("opening", "closing"), [("{a: ", "}"), ("[", "]")])
def test_a_mapping_and_a_list_are_each_one_level_deeper(opening, closing):
    text = opening * 40 + "1" + closing * 40
    assert document.read(f"x: {text[len(opening) : -1]}\n".encode(), "x.yaml").problems == ()
    with pytest.raises(ConfigError, match="nested more than 40 levels deep"):
        document.read(f"x: {text}\n".encode(), "x.yaml")


def test_a_key_that_is_too_long_is_told_and_left_out():
    found = document.read(f"? {'k' * 200}\n: 1\n? {'l' * 201}\n: 2\nz: 3\n".encode(), "x.yaml")
    assert found.root.plain() == {"k" * 200: 1, "z": 3}
    [problem] = found.problems
    assert (problem.rule, problem.what, problem.hint, problem.location) == (
        "bad-key",
        "a key has at most 200 characters",
        "is a quote or a line break missing?",
        Location("x.yaml", 3, 3),
    )
