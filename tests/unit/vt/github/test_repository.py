"""Which of several comments is written anew."""

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.github import repository

BOT = {"login": "github-actions[bot]"}


def test_the_oldest_of_our_comments_is_written_anew(hub):
    for number in (31, 12, 25):
        hub.add("comments", id=number, issue=7, user=BOT, body="<!-- vt:report dev -->\nold")
    marked = [entry["body"] for entry in hub.state["comments"]]
    hub.told()
    calls = hub.state["calls"]
    assert len(marked) == 3
    assert calls == ["PATCH issues/comments/12"]


def test_a_body_may_be_as_long_as_github_accepts_and_no_longer():
    room = repository.MAX_BODY - len(repository.body("report", "dev", "")) - len("\n")
    longest = repository.body("report", "dev", "x" * room)
    assert len(longest) == 65_536
    with pytest.raises(CommandError, match="65537 characters"):
        repository.body("report", "dev", "x" * (room + 1))


def test_a_text_begins_with_its_marker_and_has_its_parts_line_by_line():
    text = repository.body("report", "dev", "a\n\n", "", "\nb")
    assert text == "<!-- vt:report dev -->\na\n\nb\n"


def test_a_secret_is_not_posted():
    text = repository.body("report", "dev", "token ghp_" + "canary" * 6)
    assert text == "<!-- vt:report dev -->\ntoken [secret]\n"


@pytest.mark.parametrize(
    "changed",
    [
        {"user": {"login": "ann"}},
        {"user": None},
        {"body": "<!-- vt:report prod -->\n"},
        {"body": "<!-- vt:drift dev -->\n"},
        {"body": "first <!-- vt:report dev -->\n"},
        {"body": None},
        {"pull_request": {"url": "x"}},
    ],
)
def test_a_text_of_somebody_or_something_else_is_not_ours(changed):
    entry = {"id": 1, "user": BOT, "body": "<!-- vt:report dev -->\nold"}
    assert repository.find_own([entry | changed], "report", "dev") is None
    assert repository.find_own([entry | changed, entry], "report", "dev") == entry
