"""The services of the local cloud, by resource type.

A type without a service here is previewed from the schema alone; creating it is refused.
Adding one: a class (or an instance of `Service`, if its schema says everything) in this table.
"""

from __future__ import annotations

from typing import Final

from .accounts import Account, ServiceIdentity
from .base import Service
from .buckets import Bucket
from .grants import GRANTS
from .objects import BucketObject
from .projects import ProjectService
from .registry import Repository
from .secrets import Secret
from .unbuilt import Firewall, Subnetwork

SERVICES: Final[dict[str, Service]] = {
    "gcp:projects/service:Service": ProjectService(),
    "gcp:projects/serviceIdentity:ServiceIdentity": ServiceIdentity(),
    "gcp:serviceaccount/account:Account": Account(),
    "gcp:storage/bucket:Bucket": Bucket(),
    "gcp:storage/bucketObject:BucketObject": BucketObject(),
    "gcp:artifactregistry/repository:Repository": Repository(),
    "gcp:secretmanager/secret:Secret": Secret(),
    "gcp:compute/firewall:Firewall": Firewall(),
    "gcp:compute/subnetwork:Subnetwork": Subnetwork(),
    **GRANTS,
}

_UNBUILT: Final = Service(built=False)


def service_for(token: str) -> Service:
    """The service that keeps resources of this type."""
    return SERVICES.get(token, _UNBUILT)
