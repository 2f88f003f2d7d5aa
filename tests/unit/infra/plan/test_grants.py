"""The table of rights is complete in itself; that stacks keep to it, test_program.py holds."""

import pytest

from vertex_training.catalog.resource_types import ON_PROJECT
from vertex_training.naming import BASIC_ROLES
from vertex_training.plan import grants
from vertex_training.plan.grants import GrantRequest


def test_rights_on_vertex_ai_lead_to_pages_of_its_guides():
    guides = "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/"
    rows = (*grants.ALLOWED, *grants.EXTERNAL)
    sources = {row.source for row in rows if row.source.startswith(guides)}
    assert {source.removeprefix(guides) for source in sources} == {
        "general/access-control",
        "general/cmek",
        "general/custom-service-account",
        "general/vpc-peering",
        "general/vpc-psc-i-setup",
        "predictions/use-reservations",
    }


def test_grant_on_a_project_has_a_reason_for_its_width():
    for grant in grants.ALLOWED:
        assert bool(grant.narrowest) == (grant.type == ON_PROJECT), grant


def test_no_primitive_role_is_in_the_table():
    assert not {grant.role for grant in grants.ALLOWED} & set(BASIC_ROLES)
    assert len({(grant.type, grant.role) for grant in grants.ALLOWED}) == len(grants.ALLOWED)


def test_a_grant_outside_of_the_table_cannot_be_requested_unless_the_stack_file_asks_for_it():
    wide = (ON_PROJECT, "roles/storage.admin", "group:ml@example.com", "acme-ml")
    with pytest.raises(ValueError, match=r"roles/storage\.admin with gcp:projects/iAMMember"):
        GrantRequest("wide", *wide)
    assert GrantRequest("wide", *wide, asked_for=True).ours
