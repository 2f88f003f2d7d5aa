"""The record of an approval: what is one, and how it travels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertex_training.errors import ApprovalParseError
from vertex_training_cli.deploy.approval import (
    Approval,
    parse_approval,
)
from vertex_training_cli.deploy.target import Target

hexadecimal = st.text("0123456789abcdef", min_size=40, max_size=40)


@given(
    commit=hexadecimal,
    tree=hexadecimal,
    report=st.text("0123456789abcdef", min_size=64, max_size=64),
)
def test_a_record_survives_its_way(commit, tree, report):
    target = Target(backend="gs://acme-state/--> <!-- {}")
    record = Approval(stack="dev", commit=commit, tree=tree, report=report, target=target)
    assert parse_approval(record.as_json()) == record


def test_a_text_that_is_no_object_has_no_place_to_name():
    with pytest.raises(ApprovalParseError, match=r"\A(Invalid JSON|Input should be)"):
        parse_approval("[]")
