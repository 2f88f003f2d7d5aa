"""Each refusal of a project, one at a time, before anything is made.

A row is a fault in the words of ``vt local fault add``, and the subject, the answer and the command
that mends it.
"""

from __future__ import annotations

import pytest

from tests.unit.vt.preflight.conftest import PROJECT, Rehearsal
from vertex_training_cli.preflight.answers import Verdict

NAME = f"projects/{PROJECT}"
REFUSALS = {
    "the project is being deleted": (
        "cloudresourcemanager patch --method projects.get "
        """--patch '{"state": "DELETE_REQUESTED"}' --match """ + PROJECT,
        (NAME, "DELETE_REQUESTED", "gcloud projects undelete"),
    ),
    "the number is of another project": (
        'cloudresourcemanager patch --method projects.get --patch \'{"name": "projects/12"}\'',
        (NAME, "12, and the stack file says", "set projectNumber in Pulumi.prod.yaml to 12"),
    ),
    "nobody pays": (
        "cloudbilling patch --patch '{\"billingEnabled\": false}'",
        (NAME, "off", "gcloud billing projects link"),
    ),
    "no API can be switched on": (
        'serviceusage patch --method services.list --patch \'{"services": [{"config": '
        '{"name": "cloudresourcemanager.googleapis.com"}}]}\' --match ' + PROJECT,
        (f"{NAME}/services/serviceusage.googleapis.com", "off", "gcloud services enable"),
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_each_refusal_is_told_with_what_mends_it(rehearsal: Rehearsal, case: str) -> None:
    fault, (subject, answer, mend) = REFUSALS[case]
    rehearsal.add_fault(fault)
    refused = [each for each in rehearsal.answers() if each.verdict is Verdict.REFUSED]
    assert [each.subject for each in refused] == [subject]
    assert refused[0].answer.startswith(answer)
    assert refused[0].mend.startswith(mend)
    assert refused[0].meets


def test_the_same_stack_without_a_fault_is_refused_nothing(rehearsal: Rehearsal) -> None:
    assert rehearsal.found(Verdict.REFUSED, Verdict.WARNING, Verdict.UNKNOWN) == []
