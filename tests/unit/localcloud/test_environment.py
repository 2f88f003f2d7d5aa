"""What processes get of this machine's variables."""

from __future__ import annotations

import pytest

from localgcp.environment import without_real_cloud


@pytest.mark.parametrize(
    "name",
    [
        "PULUMI_CONFIG_PASSPHRASE_FILE",
        "PULUMI_ACCESS_TOKEN",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "ARTIFACT_REGISTRY_EMULATOR_HOST",
    ],
)
def test_nothing_leads_a_client_past_the_local_cloud(name: str) -> None:
    assert without_real_cloud({name: "elsewhere", "PATH": "/bin"}) == {"PATH": "/bin"}
