"""Each method that is served is one of Google's, at Google's path, with Google's messages."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.apis import discovery
from localgcp.reads import resources, serving
from tests.contract import description, differences, messages, served
from tests.contract.served import Call
from tools.generate import discovery as generator


@pytest.mark.parametrize("call", served.calls(), ids=lambda call: call.id)
def test_a_method_that_is_served_is_one_of_googles(call: Call) -> None:
    assert call.described is not None, f"{call.document} has no {call.verb} {call.template}"
    if call.rule is None:
        assert call.described.template == call.template


def test_what_is_generated_of_the_documents_is_up_to_date() -> None:
    assert generator.TARGET.read_text() == generator.generate()


def test_every_row_of_the_tables_answers_a_method_of_google() -> None:
    assert resources.METHODS.keys() | serving.METHODS.keys() == discovery.methods().keys()


def test_messages_of_the_clients_are_those_of_the_descriptions() -> None:
    fields, found = messages.compared()
    assert len(fields) > 700
    assert {*found} <= {*differences.listed()}


def test_a_field_that_the_description_lacks_is_found() -> None:
    """The comparison itself, on a message that is not the description's."""
    [call] = [each for each in served.calls() if each.id.endswith("customJobs/{}:cancel")][:1]
    assert call.rule is not None
    message: Any = call.rule.method.plain_request().DESCRIPTOR
    form = description.schema("aiplatform.v1", "GoogleRpcStatus")
    found = messages.message_differences(message, form, "aiplatform.v1")
    assert found == [f"aiplatform.v1 {message.full_name}.name: the description has no such field"]
