"""Which of several comments is written anew."""

BOT = {"login": "github-actions[bot]"}


def test_the_oldest_of_our_comments_is_written_anew(hub, report):
    for number in (31, 12, 25):
        hub.add("comments", id=number, issue=7, user=BOT, body="<!-- vt:report dev -->\nold")
    marked = [entry["body"] for entry in hub.state["comments"]]
    hub.vt("comment", "-s", "dev", report)
    calls = hub.state["calls"]
    assert len(marked) == 3
    assert calls == ["PATCH issues/comments/12"]
