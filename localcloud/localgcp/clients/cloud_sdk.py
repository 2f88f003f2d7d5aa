"""Settings that let ``gcloud`` and ``gsutil`` use the local cloud without credentials."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: Variable with gcloud's project.
PROJECT: Final = "CLOUDSDK_CORE_PROJECT"
#: Prefixes of variables that add credentials or change addresses.
_REMOVED: Final = (
    *("CLOUDSDK_AUTH_", "CLOUDSDK_API_", "CLOUDSDK_PROXY_", "CLOUDSDK_BILLING_"),
    *("CLOUDSDK_CORE_ACCOUNT", "CLOUDSDK_CORE_PROJECT", "CLOUDSDK_ACTIVE_CONFIG_NAME"),
    *("CLOUDSDK_CONFIG", "BOTO_"),
)
#: Services whose calls gcloud sends to the local cloud, which may reject the calls. Calls of other
#: services would reach Google.
_SERVICES: Final = (
    *("AIPLATFORM", "BATCH", "LOGGING"),
    *("ARTIFACTREGISTRY", "CLOUDBUILD", "CLOUDKMS", "CLOUDRESOURCEMANAGER", "COMPUTE", "IAM"),
    *("IAMCREDENTIALS", "RUN", "SECRETMANAGER", "SERVICEUSAGE"),
)
_BOTO: Final = """\
# Written at each start of the local shell.
[GSUtil]
use_gcloud_storage = True
hidden_shim_mode = no_fallback
software_update_check_period = 0
state_dir = {state}
[Boto]
num_retries = 1
"""


def is_removed(name: str) -> bool:
    """Return whether programs in the local cloud must not inherit this variable."""
    return name.startswith(_REMOVED)


def environment(folder: Path, storage_port: int, vertex_port: int) -> dict[str, str]:
    """Return the variables of gcloud and gsutil for the settings in ``folder``."""
    rest = f"http://127.0.0.1:{vertex_port}/"
    others = {f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}": rest for name in _SERVICES}
    return others | storage_environment(folder, f"http://127.0.0.1:{storage_port}")


def storage_environment(folder: Path, url: str) -> dict[str, str]:
    """Return the variables of gcloud and gsutil for Cloud Storage at ``url``."""
    return {
        "CLOUDSDK_CONFIG": str(folder),
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{url}/storage/v1/",
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        # gsutil runs gcloud only if both programs have no credentials.
        "CLOUDSDK_CORE_PASS_CREDENTIALS_TO_GSUTIL": "1",
        "BOTO_CONFIG": str(folder / "boto.cfg"),
    }


def defaults(config: Mapping[str, object]) -> dict[str, str]:
    """Return gcloud's variables for the project and the region of a stack's config."""
    names = {PROJECT: "gcp:project", "CLOUDSDK_AI_REGION": "gcp:region"}
    return {name: str(config[key]) for name, key in names.items() if config.get(key)}


def write_settings(folder: Path) -> None:
    """Write the settings files of gcloud and gsutil."""
    folder.mkdir(0o700, parents=True, exist_ok=True)
    (folder / "boto.cfg").write_text(_BOTO.format(state=folder / "gsutil"))
