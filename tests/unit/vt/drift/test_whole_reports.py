"""Whole texts of an issue on drift, and whole documents for programs."""

import json

import pytest

from vertex_training_cli.drift import report
from vertex_training_cli.drift.findings import (
    ADDED,
    DEPLOYED,
    ENDED,
    GRANTED,
    REPEATED,
    REWRITTEN,
    RUNS,
    SUBMITTED,
    DeclaredNetwork,
    Drift,
    DriftOutcome,
    PropertyDifference,
    ResourceDifference,
)

UNDO = (
    "\nTo undo what was changed by hand: `make preview STACK=dev REFRESH=1` shows the plan that "
    "does it; run the workflow *deploy* by hand with the digest of that report and *refresh*. To "
    "keep it, declare it in a pull request.\n"
)
CHANGED = ResourceDifference(
    "update", "data", "T", "acme", (PropertyDifference("a", "x|y", ""),), "A note."
)


def drifted(*differences, **more):
    return Drift("dev", DriftOutcome.DRIFTED, differences, **more)


def test_the_title_names_the_stack():
    assert report.title("dev") == "Drift in dev"


def test_a_stack_that_is_as_declared_says_what_was_not_looked_at():
    clean = Drift("my_dev", DriftOutcome.CLEAN)
    assert report.markdown(clean) == "**my\\_dev** is as declared.\n"
    assert report.markdown(clean.without_looking_at(["a*", "b"])) == (
        "**my\\_dev** is as declared.\n"
        "\n<details><summary>Not looked at: 2</summary>\n\n- a\\*\n- b\n\n</details>\n"
    )


def test_a_failure_is_quoted_line_by_line():
    failed = Drift("dev", DriftOutcome.FAILED, errors=("one\ntwo", "", "<b>"))
    assert report.markdown(failed) == (
        "**dev** could not be compared with the cloud:\n\n> one\n> two\n> \n> \\<b\\>\n"
    )


def test_a_difference_has_its_properties_its_note_and_the_way_out():
    bare = ResourceDifference("delete", "old", "U", "")
    assert report.markdown(drifted(CHANGED, bare)) == (
        "In **dev**, 2 resources differ from what is declared.\n"
        "\n### data differs\n\nT, acme\n"
        "\n| property | in the cloud | declared |\n|---|---|---|\n| a | x\\|y | (none) |\n"
        "\nA note.\n"
        "\n### old is there, and is not declared\n\nU\n" + UNDO
    )


@pytest.mark.parametrize(
    "op", [RUNS, GRANTED, SUBMITTED, ADDED, ENDED, DEPLOYED, REWRITTEN, REPEATED]
)
def test_what_no_deployment_undoes_is_offered_none(op):
    beyond = ResourceDifference(op, "n", "t", "")
    assert UNDO not in report.markdown(drifted(beyond))
    assert report.markdown(drifted(beyond, CHANGED)).endswith(UNDO)


def test_the_words_of_operations_are_those_of_earlier_reports():
    assert (RUNS, GRANTED, SUBMITTED, ADDED, ENDED, DEPLOYED, REWRITTEN, REPEATED) == (
        "runs", "granted", "submitted", "added", "ended", "deployed", "rewritten", "repeated",
    )  # fmt: skip


def test_lost_data_is_restored_before_anything_else():
    lost = ResourceDifference("create", "data", "T", "", is_lost=True)
    text = report.markdown(drifted(CHANGED, lost))
    assert text.endswith(
        "\n**Restore what was deleted before anything else**, as said above: a deployment with "
        "*refresh* makes it anew, empty, and nothing can be restored under its name then "
        "(docs/operations.md). Afterwards compare again: `make drift STACK=dev`.\n"
    )
    assert UNDO not in text


def test_members_that_are_not_declared_have_a_command_that_removes_them():
    member = ResourceDifference(GRANTED, "b", "IAM policy", "")
    text = report.markdown(drifted(member, undeclared="0123456789abcdef"))
    assert text.endswith(
        "\nNo deployment removes members that are not declared. `vt drift --stack dev --remove "
        "0123456789ab` removes exactly those above. To keep one, declare it, or list it with its "
        "reason under `drift.allowed`.\n"
    )


def test_a_deployment_that_did_not_finish_is_told_first():
    names = tuple(f"n{number:02}" for number in range(21))
    text = report.markdown(drifted(CHANGED, never_made=names))
    shown = ", ".join(names[:20])
    assert text.startswith(
        "In **dev**, 1 resource differs from what is declared.\n"
        "\n**A deployment did not finish.** 21 declared resources were never made: "
        f"{shown}. Deploy again: `make deploy STACK=dev`.\n\n### data"
    )


def part(size):
    """A difference whose text has so many characters: ``### `` and all around it are 28."""
    name = "n" * (size - len("\n###  differs\n\nt\n"))
    return ResourceDifference("update", name, "t", "")


@pytest.mark.parametrize(("size", "shown"), [(0, True), (1, False)])
def test_a_text_leaves_room_for_its_end(size, shown):
    head = "In **dev**, 2 resources differ from what is declared.\n"
    room = 65_536 - 4_096 - len(head)
    text = report.markdown(drifted(part(1000), part(room - 1000 + size)))
    more = "\nToo much for one text: 1 more, in the workflow's log.\n"
    assert text.endswith(UNDO if shown else more + UNDO)
    assert (more in text) is not shown


@pytest.mark.parametrize(("length", "shown"), [(1021, True), (1022, False)])
def test_a_list_of_what_was_not_looked_at_leaves_room_too(length, shown):
    lines = ["a" * 1021, "b" * length, "c"]
    text = report.markdown(Drift("dev", DriftOutcome.CLEAN).without_looking_at(lines[:2]))
    assert text.startswith(
        "**dev** is as declared.\n\n<details><summary>Not looked at: 2</summary>"
    )
    assert ("b" * length in text) is shown
    assert ("- 1 more, in the JSON of this report\n" in text) is not shown
    assert text.endswith("\n</details>\n")
    cut = report.markdown(Drift("dev", DriftOutcome.CLEAN).without_looking_at(["a" * 2100, *lines]))
    assert "\n- 4 more, in the JSON" in cut


def test_programs_get_the_whole_report_without_secrets():
    drift = drifted(
        CHANGED,
        errors=("e",),
        ids=frozenset({"i"}),
        never_made=("n",),
        undeclared="d",
        not_looked_at=("hf_" + "a1B2" * 9, "ä"),
        network=DeclaredNetwork("p"),
    )
    expected = {
        "version": 1,
        "stack": "dev",
        "outcome": "drifted",
        "differences": [
            {"op": "update", "name": "data", "type": "T", "id": "acme",
             "fields": [{"path": "a", "cloud": "x|y", "declared": ""}], "note": "A note.",
             "is_lost": False, "resource": ""},
        ],
        "errors": ["e"],
        "never_made": ["n"],
        "undeclared": "d",
        "not_looked_at": ["[secret]", "ä"],
    }  # fmt: skip
    assert report.as_json(drift) == json.dumps(expected, indent=2, ensure_ascii=False) + "\n"
