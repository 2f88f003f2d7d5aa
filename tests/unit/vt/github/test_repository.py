"""Which of several comments is written anew."""

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.github import repository


def test_a_body_may_be_as_long_as_github_accepts_and_no_longer():
    room = repository.MAX_BODY - len(repository.body("report", "dev", "")) - len("\n")
    longest = repository.body("report", "dev", "x" * room)
    assert len(longest) == 65_536
    with pytest.raises(CommandError, match="65537 characters"):
        repository.body("report", "dev", "x" * (room + 1))
