"""How it is asked: by reads alone, few of them, and without a single right."""

from __future__ import annotations

import json

from tests.unit.vt.preflight.conftest import PROJECT, Rehearsal
from vertex_training_cli.preflight.context import Preflight, Verdict, as_json, markdown, text

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
    assert "| `gs://local-ml-prod-data-prod` |" in markdown(found)
    assert "    missing permission: cloudkms.cryptoKeys.get" in text(found)
    assert text(found).endswith(f"{found.summary}\n")
    assert json.loads(as_json(found))["summary"] == found.summary
    rights = {each.verdict for each in answers if each.asked.endswith(" permissions")}
    assert rights == {Verdict.REFUSED}
