"""The answers of a preflight as a person, a comment and a program read them."""

from __future__ import annotations

import pytest

from vertex_training_cli.preflight import context
from vertex_training_cli.preflight.context import Answer, Preflight, Verdict


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_what_others_named_is_no_secret_and_no_control_character(form: str) -> None:
    answer = Answer("a\x1b[2Jb", "q", "x", Verdict.REFUSED, mend="ghp_" + "a1B2" * 9)
    told = context.WRITERS[form](Preflight("prod", "acme", "", (answer,)))
    assert "\x1b" not in told
    assert "a1B2" not in told
