import pytest

from vertex_training.errors import (
    CommandError,
    ConfigError,
    ImageBuildError,
    Location,
    Mend,
    Problem,
    RegistryError,
    UnknownReferenceError,
    abbreviate,
    did_you_mean,
    dotted,
    nearest,
)


def test_a_problem_reads_place_value_and_hint():
    problem = Problem(
        "is not a duration", "24h", 'write "86400s"', ("timeout",), Location("jobs/x.yaml", 12, 7)
    )
    assert str(problem) == (
        'jobs/x.yaml:12:7: timeout: is not a duration (got 24h). Hint: write "86400s"'
    )


def test_a_report_counts_and_lists_every_problem():
    error = ConfigError(
        [Problem("one", location=Location("a", 1, 1)), Problem("two", location=Location("b", 2))]
    )
    assert error.report() == "2 mistakes; nothing was changed.\na:1:1: one.\nb:2: two."
    assert ConfigError([Problem("one")]).report() == "1 mistake; nothing was changed.\none."


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("wrong"), "wrong."),
        (Problem("wrong", path=("a", 0, "b", 1, 2)), "a[0].b[1][2]: wrong."),
        (Problem("wrong", path=(3, "a")), "[3].a: wrong."),
        (Problem("wrong", "5", "x"), "wrong (got 5). Hint: x"),
        (Problem("wrong", location=Location("f")), "f: wrong."),
        (Problem("wrong", location=Location("f", 3, 0)), "f:3: wrong."),
        (Problem("wrong", location=Location("", 3, 1)), "wrong."),
        (Problem("wrong", rule="x", level="note"), "wrong."),
    ],
)
def test_a_problem_has_as_much_of_a_place_as_is_known(problem, text):
    assert str(problem) == text


def test_a_problem_moves_to_a_place_and_how_it_is_mended_makes_no_other():
    here = Problem("wrong", "5", "x", ("a",), mend=Mend("remove"))
    assert here.at(Location("f", 1)) == Problem("wrong", "5", "x", ("a",), Location("f", 1))
    assert here.at(Location("f", 1)).mend == Mend("remove", to="", at=(), target=(), guessed=False)
    assert (here.level, here.rule, here.statement) == ("error", "", "a: wrong")
    assert dotted(()) == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        (" a\n  b\tc ", "a b c"),
        ("", ""),
    ],
)
def test_long_values_are_cut_to_one_line(value, shown):
    assert abbreviate(value) == shown


def test_errors_of_commands_say_what_to_do_and_carry_what_is_asked_of_them():
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
        ("bu", ["buckets"], None),
        ("a", ["ab"], "ab"),
        ("n1-8", ["n1-4", "n1-96"], "n1-4"),
        ("n1-8", ["m1-4", "xyz"], None),
    ],
)
def test_words_that_are_near_enough(word, known, found):
    assert nearest(word, known) == found


def test_the_nearest_known_word_is_suggested():
    assert did_you_mean("buckts", ["buckets", "images"]) == "did you mean 'buckets'?"
    assert did_you_mean("ANY", ["ANY_RESERVATION", "NO_RESERVATION"]) == (
        "did you mean 'ANY_RESERVATION'?"
    )
    assert did_you_mean("zzz", ["b", "a"]) == "known here: a, b"
    assert did_you_mean("zzz", []) == ""


def test_of_names_that_differ_in_a_number_the_nearest_number_is_suggested():
    machines = [f"g2-standard-{count}" for count in (4, 8, 12, 16, 24, 32, 48, 96)]
    assert did_you_mean("g2-standard-13", machines) == "did you mean 'g2-standard-12'?"
    assert did_you_mean("G2-standard-97", machines) == "did you mean 'g2-standard-96'?"
    assert did_you_mean("a3-highgpu-7g", ["a3-highgpu-1g", "a3-highgpu-8g", "a3-megagpu-7g"]) == (
        "did you mean 'a3-highgpu-8g'?"
    )
