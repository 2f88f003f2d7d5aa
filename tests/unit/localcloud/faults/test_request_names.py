"""Requests of the XML API and of signed URLs, which name bucket and object in the path alone."""

import pytest

from localgcp.faults.proxy import describe


@pytest.mark.parametrize(
    ("verb", "method"),
    [("GET", "objects.download"), ("PUT", "objects.other"), ("DELETE", "objects.other")],
)
def test_only_reading_has_a_name_there(verb, method):
    assert describe(verb, "/bucket/a%20b?X-Goog-Signature=1") == (method, "bucket/a b")
