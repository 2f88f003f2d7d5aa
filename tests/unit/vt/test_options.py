"""Values of options that several verbs have: durations, and what is written otherwise."""

from __future__ import annotations

import pytest
import typer

from vertex_training_cli import options


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("1s", 1), ("30m", 1800), ("2h", 7200), ("7d", 604_800), ("999999s", 999_999)],
)
def test_a_duration_is_a_number_with_its_unit(value: str, seconds: int) -> None:
    assert options.seconds(value, "--since") == seconds


@pytest.mark.parametrize("value", ["", "0s", "30", "m", "1.5h", "1h30m", "1w", "1000000s", "30m "])
def test_another_text_is_refused_with_an_example(value: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        options.seconds(value, "--since")
    assert refused.value.message == f"{value!r} has the wrong form; write a value like 30m"
    assert refused.value.param_hint == "--since"
