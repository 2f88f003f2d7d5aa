"""Every kind of risk: its key in JSON, its words in the verdict, what it answers, its colour."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.unit.vt.review.quotes import quote
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.review import destroyed, guards, limits, renames
from vertex_training_cli.review.capacity import RETURNED, ReturnedMachines
from vertex_training_cli.review.destroyed import FolderChange, Remade
from vertex_training_cli.review.guards import LoweredGuard
from vertex_training_cli.review.refusals import REFUSALS, Refusal
from vertex_training_cli.review.renames import Rename
from vertex_training_cli.review.report import RISKS
from vertex_training_cli.review.risk import RiskKind

LOST: Final = "what is lost"
LIMITS: Final = "which limits are raised"
SAME: Final = "the headline, and the names"

#: In the order of a report: key, headline, question, place in the answer, colour.
TABLE: Final = [
    ("madeAnew", "made anew, empty: it was deleted in the cloud", LOST, SAME, "destroys"),
    ("", "data is lost", LOST, "{}", "destroys"),
    ("substitutes", "new and empty in place of another", LOST, SAME, "destroys"),
    ("keysGone", "no longer encrypted with your key", LOST, SAME, "destroys"),
    ("dataLosses", "data is lost", LOST, "{}", "destroys"),
    ("endedEndpoints", "endpoint with traffic ends", LOST, SAME, "destroys"),
    ("deletedVersions", "model version deleted", LOST, SAME, "destroys"),
    ("lessTold", "no longer told", LOST, SAME, "destroys"),
    ("putBack", "back as deployed", LOST, SAME, "opens"),
    ("returnedMachines", "machines given back, and may not be had again", LOST, SAME, "destroys"),
    ("refusals", "not possible like this", "", "{}", "destroys"),
    ("locks", "locked for good", LOST, SAME, "destroys"),
    ("", "", LOST, "{}", "destroys"),
    ("", "refused, it is protected", "", "{}", "destroys"),
    ("unprotected", "protection removed", LOST, "{} loses its protection", "destroys"),
    ("", "", LOST, "{}", "destroys"),
    ("renames", "renamed without formerly", LOST, SAME, "opens"),
    ("keysChanged", "encrypted with another key", LIMITS, SAME, "opens"),
    ("raisedLimits", "limits raised", LIMITS, "{}", "opens"),
    ("policies.lowered", "policies lowered", "what policies say", "lowered: {}", "opens"),
    ("", "administrators' roles", "", "{}", "opens"),
    ("widenedRoles", "custom roles get permissions", "who gains a right", SAME, "opens"),
    ("accountKeys", "whoever has the key is the account", "who gains a right", SAME, "opens"),
    ("liftedDenials", "no longer denied to", "who gains a right", SAME, "opens"),
    ("membersOfOtherDomains", "members of other domains", "", "{}", "opens"),
    ("shells", "a shell into the machines of", "who gains a right", SAME, "opens"),
    ("doubtfulTraffic", "traffic to a version in doubt", "what runs", SAME, "opens"),
    ("servedRuns", "run of a model submitted again", "what runs", SAME, "opens"),
    ("publicEndpoints", "endpoint becomes public", "what becomes public", SAME, "destroys"),
    ("costlierEndpoints", "endpoints cost more a month", "what it can cost", SAME, "opens"),
    ("driftExceptions", "drift is not reported", LIMITS, SAME, "opens"),
    ("acceptedLosses", "loss accepted", LIMITS, SAME, "opens"),
    ("allowedSecrets", "a file may leave with a secret", LIMITS, SAME, "opens"),
    ("loweredRules", "rules lowered", LIMITS, SAME, "opens"),
    ("loweredGuards", "guards lowered", LIMITS, SAME, "opens"),
    ("overrides", "", "", "{}", "opens"),
    ("openedToEverybody", "opened to everybody", "what becomes public", "{}", "destroys"),
    ("egressToAnywhere", "machines reach any address", "what becomes public", SAME, "destroys"),
    ("coldBuckets", "reads are paid for", "what it can cost", SAME, "opens"),
    ("personalData", "may copy data about people", "whose data becomes readable", SAME, "opens"),
]


def test_kinds_of_risk_are_these_in_the_order_of_a_report() -> None:
    assert [(e.key, e.headline, e.question, e.answer, e.danger) for e in RISKS] == [
        (key, headline, question, f"{headline}: {{}}" if answer is SAME else answer, danger)
        for key, headline, question, answer, danger in TABLE
    ]


KINDS: Final = {kind.key: kind for kind in guards.KINDS}
RAISED: Final = FieldDifference("limits.maxUsdPerJob", "$1", "no limit")
ANEW: Final = ReturnedMachines("r", "a3-highgpu-8g", "us-east4-a", 5, replaced=True)
RENAMED: Final = "<data> → <corpus> (<formerly: data> in <buckets.corpus> keeps what is there)"


@pytest.mark.parametrize(
    ("kind", "finding", "name", "line"),
    [
        (destroyed.REMADE, Remade("token", "add a version", protected=True),
         "<token> (<add a version>)",
         "made anew, empty, it was deleted in the cloud: <token> (<add a version>)"),
        (destroyed.REMOVED_OBJECTS, FolderChange("data/titanic", removed=["a", "b"]),
         "2 objects below <data/titanic>, files of the stack", None),
        (destroyed.UNPROTECTED, "data", "<data>", "<data> loses its protection"),
        (limits.RAISED, RAISED, "<limits.maxUsdPerJob> <$1> → <no limit>",
         "limit <limits.maxUsdPerJob>: <$1> → <no limit>"),
        (KINDS["driftExceptions"], FieldDifference("drift.allowed.a", None, "m: r on p"),
         "<m: r on p>", "drift is not reported: <m: r on p>"),
        (KINDS["acceptedLosses"], FieldDifference("b", None, "moved"), "<b> (<moved>)",
         "loss accepted: <b> (<moved>)"),
        (KINDS["loweredRules"], FieldDifference("x", "error", "note"), "<x> <error> → <note>",
         "rules lowered: <x> <error> → <note>"),
        (KINDS["loweredGuards"], LoweredGuard("registry", "tags can be moved"),
         "<registry> (tags can be moved)", "guards lowered: <registry> (tags can be moved)"),
        (KINDS["overrides"], FieldDifference("x.y", "as included", "3"), "<x.y>",
         "exception of this stack from what it includes: <x.y>: <as included> → <3>"),
        (renames.RENAMES, Rename("buckets", "data", "corpus"), RENAMED,
         f"renamed without formerly: {RENAMED}"),
        (renames.SUBSTITUTES, FieldDifference("storage-data", "others", "gs://x"),
         "<storage-data> (until now <others>)",
         "new and empty in place of another: <storage-data> (until now <others>)"),
        (RETURNED, ANEW, "<r> (5 x <a3-highgpu-8g> in <us-east4-a>, made anew)",
         "machines given back, and may not be had again: "
         "<r> (5 x <a3-highgpu-8g> in <us-east4-a>, made anew)"),
        (REFUSALS, Refusal("h100", "is still there"), "<h100>",
         "not possible like this: <h100> is still there"),
    ],
)  # fmt: skip
def test_a_finding_is_named_in_the_verdict_and_told_in_a_line(
    kind: RiskKind[Any], finding: Any, name: str, line: str | None
) -> None:
    assert kind.name(finding, quote) == name
    assert (kind.line(finding, quote) if kind.line else None) == line
