"""Whole texts of an issue on drift, and whole documents for programs."""

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
