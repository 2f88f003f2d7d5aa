"""Names that Google Cloud would refuse, and keys that name what the stack does not have."""

import pytest

from tests.unit.infra.stacks import refused


@pytest.mark.parametrize("member", ["allUsers", "ada@example.com"])
def test_only_such_members_may_build_images(member):
    [(path, text)] = refused(builders=[member])
    assert path == "builders[0]"
    assert "not an IAM member" in text
