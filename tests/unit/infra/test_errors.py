from vertex_training.errors import ConfigError, Location, Problem, did_you_mean


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


def test_long_values_are_cut_to_one_line():
    text = str(Problem("b", "x\n" * 500))
    assert "\n" not in text
    assert len(text) < 120


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
