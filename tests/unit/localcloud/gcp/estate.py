"""A local project whose services are called without a plugin."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import CloudError, PluginError
from localgcp.gcp.cloud import Cloud
from localgcp.gcp.plan import Settings
from localgcp.gcp.services import find
from localgcp.gcp.services.base import ResourceType
from localgcp.inventory import vpc
from localgcp.inventory.store import SERVICE, Binding, Store
from localgcp.projects import local_project_number

PROJECT, HOST = "local-p1", "local-host"
NUMBER = local_project_number(PROJECT)
LINK = "https://www.googleapis.com/compute/v1/"
VPC = f"projects/{PROJECT}/global/networks/vpc"
REGION = f"projects/{PROJECT}/regions/us-west1"
SUBNET = f"{REGION}/subnetworks/s"
TIME, DIGITS = "TIME", "DIGITS"
ROUTER = "gcp:compute/router:Router"


def told(call: Callable[[], object]) -> str | None:
    """What a call is refused with; None if it is not."""
    try:
        call()
    except PluginError as error:
        return str(error)
    return None


def write_policy(estate: Estate, path: str, *bindings: Binding) -> None:
    """Write an IAM policy, whatever stood there."""
    etag = estate.store.policy(path).etag
    estate.store.set_policy(path, bindings, expected_etag=etag)


class Estate:
    """A local project with a network, a subnetwork and a router."""

    def __init__(self, folder: Path) -> None:
        self._environment = {"VT_LOCAL_HOME": str(folder)}
        self.store = Store(folder / "cloud.sqlite")
        for token, path, values in (
            (vpc.NETWORK, VPC, {"name": "vpc"}),
            (vpc.SUBNETWORK, SUBNET, {"name": "s", "network": LINK + VPC, "region": "us-west1",
                                      "ipCidrRange": "10.1.0.0/24"}),
            (ROUTER, f"{REGION}/routers/r", {"name": "r", "network": VPC, "region": "us-west1"}),
        ):  # fmt: skip
            self.store.put(token, path, PROJECT, values, values)

    def kind(self, token: str, project: str = PROJECT) -> tuple[Cloud, ResourceType]:
        found = find(token)
        assert found is not None
        type_, kind = found
        return Cloud(type_, Settings(project, "us-west1"), self._environment), kind

    def made(self, token: str, **inputs: Any) -> Any:
        """What the service decides, with times and numbers of its own as words."""
        cloud, kind = self.kind(token)
        kind.verify(cloud, PROJECT, inputs, "Making")
        return worded(kind.make(cloud, PROJECT, kind.id(cloud, inputs), inputs))

    def enable(self, *services: str) -> None:
        """Turn APIs on; names without ``.googleapis.com``."""
        for each in services:
            self.store.put(SERVICE, f"{PROJECT}/{each}.googleapis.com", PROJECT, {}, {})

    def refusal(self, token: str, **inputs: Any) -> str:
        cloud, kind = self.kind(token)
        with pytest.raises(CloudError) as told:
            kind.verify(cloud, PROJECT, inputs, "Making")
        return str(told.value)


def worded(value: Any) -> Any:
    """The value, with times and numbers that a service chose as words."""
    if isinstance(value, dict):
        return {key: worded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [worded(each) for each in value]
    text = str(value)
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", text):
        return TIME
    return re.sub(r"\b[1-9]\d{18,20}\b", DIGITS, text) if re.search(r"\d{19}", text) else value
