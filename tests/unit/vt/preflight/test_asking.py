"""How it is asked: by reads alone, few of them, and without a single right."""

from __future__ import annotations

import json

import pytest

from tests.unit.vt.preflight.conftest import PROJECT, Rehearsal
from vertex_training_cli.preflight import report
from vertex_training_cli.preflight.answers import Preflight, Verdict

#: What a person without a role meets: every service refuses.
NO_RIGHTS = (
    *("iam", "compute", "serviceusage", "cloudresourcemanager", "cloudbilling"),
    *("artifactregistry", "secretmanager", "cloudkms", "storage --method buckets.get"),
)


def test_a_caller_without_a_right_gets_a_table_of_what_could_not_be_asked(
    rehearsal: Rehearsal,
) -> None:
    for service in NO_RIGHTS:
        rehearsal.add_fault(f"{service} deny --times 0")
    answers = rehearsal.answers()
    missing = {each.permission for each in answers if each.verdict is Verdict.UNKNOWN}
    assert missing >= {
        *("resourcemanager.projects.get", "serviceusage.services.list", "storage.buckets.get"),
        *("iam.serviceAccounts.get", "artifactregistry.repositories.get"),
        *("secretmanager.secrets.get", "secretmanager.versions.get", "cloudkms.cryptoKeys.get"),
    }
    found = Preflight("prod", PROJECT, "", tuple(answers))
    assert "| `gs://local-ml-prod-data-prod` |" in report.markdown(found)
    assert "    missing: cloudkms.cryptoKeys.get" in report.text(found)
    assert report.text(found).endswith(f"{found.summary}\n")
    assert json.loads(report.as_json(found))["summary"] == found.summary
    rights = {each.verdict for each in answers if each.asked.endswith(" permissions")}
    assert rights == {Verdict.REFUSED}


#: A fault that gives an answer another form, and the line that it makes unreadable.
MALFORMED = {
    "a policy": ("orgpolicy patch --times 0 --match gcp.resourceLocations", {"spec": 7},
                 "policy gcp.resourceLocations"),
    "a key": ("cloudkms patch --times 0", {"primary": ["x"]},
              "state of the primary version of the key"),
    "peerings": ("compute patch --times 0 --method subnetworks.aggregatedList", {"items": [1]},
                 "addresses in it"),
    "services": ("serviceusage patch --times 0 --method services.list", {"services": 5}, ""),
    "a policy of images": ("iam patch --times 0 --method GetIamPolicy", {"bindings": 7}, ""),
    "quotas": ("serviceusage patch --times 0 --method consumerQuotaMetrics.get",
               {"consumerQuotaLimits": [{"quotaBuckets": 4}]}, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_an_answer_of_another_form_makes_its_own_line_unknown_and_no_other(
    rehearsal: Rehearsal, case: str
) -> None:
    fault, document, asked = MALFORMED[case]
    before = {(each.part, each.subject, each.asked): each for each in rehearsal.answers()}
    rehearsal.add_fault(f"{fault} --patch '{json.dumps(document)}'")
    after = {(each.part, each.subject, each.asked): each for each in rehearsal.answers()}
    changed = [each for key, each in after.items() if each != before.get(key)]
    assert changed
    for each in changed:
        assert each.verdict is Verdict.UNKNOWN
        assert each.answer.startswith("could not be read: ")
    assert not asked or {each.asked for each in changed} == {asked}
    assert {key[0] for key in before} == {key[0] for key in after}
