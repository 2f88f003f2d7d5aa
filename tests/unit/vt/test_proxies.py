"""Behind a proxy, programs of this machine reach each other all the same."""

import pytest

from vertex_training_cli.process import exempt_loopback

#: Nothing listens at port 9, so whatever goes through this proxy fails.
PROXY = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost"}),
        (
            {"NO_PROXY": "corp.example.com, localhost"},
            {
                "no_proxy": "corp.example.com,localhost,127.0.0.1",
                "NO_PROXY": "corp.example.com,localhost,127.0.0.1",
            },
        ),
        ({"no_proxy": "*"}, {"no_proxy": "*", "NO_PROXY": "*"}),
        (
            {"no_proxy": "127.0.0.1,localhost", "no_grpc_proxy": "a"},
            {
                "no_proxy": "127.0.0.1,localhost",
                "NO_PROXY": "127.0.0.1,localhost",
                "no_grpc_proxy": "a,127.0.0.1,localhost",
            },
        ),
    ],
)
def test_this_machine_is_added_to_what_needs_no_proxy(given, expected):
    environment = {**PROXY, **given}
    exempt_loopback(environment)
    assert environment == {**PROXY, **expected}


@pytest.mark.parametrize("given", [{}, {"no_proxy": "corp.example.com"}, {"http_proxy": ""}])
def test_without_a_proxy_nothing_changes(given):
    environment = dict(given)
    exempt_loopback(environment)
    assert environment == given
