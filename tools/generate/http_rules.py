"""Write ``localcloud/localgcp/rest/http_rules.json``: rules of REST for what is served.

    .venv/bin/python -m tools.generate.http_rules          rewrite the file
    .venv/bin/python -m tools.generate.http_rules --check  exit 1 if it is not up to date

The rules are in the REST transport of Google's client, which is generated from the annotations
``google.api.http`` of the API. Where a client has no REST transport, the rule stands here.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any, Final

from localgcp.rest.methods import METHODS
from tools.generate import generated

TARGET: Final = Path(__file__).parents[2] / "localcloud/localgcp/rest/http_rules.json"

CLIENT: Final = "google.cloud.aiplatform_v1"
_SECRETS: Final = "google.cloud.secretmanager_v1"
#: Package, module and class of the REST transport of each service.
TRANSPORTS: Final = {
    "google.cloud.aiplatform.v1.JobService": (
        CLIENT,
        "job_service",
        "_BaseJobServiceRestTransport",
    ),
    "google.cloud.secretmanager.v1.SecretManagerService": (
        _SECRETS,
        "secret_manager_service",
        "_BaseSecretManagerServiceRestTransport",
    ),
    "google.cloud.aiplatform.v1.PipelineService": (
        CLIENT,
        "pipeline_service",
        "_BasePipelineServiceRestTransport",
    ),
}
#: Of operations, the paths of Vertex AI: the transport lists those of every service it knows.
OPERATION: Final = "{name=projects/*/locations/*/operations/*}"
OTHERS: Final = {
    "google.longrunning.Operations/GetOperation": {"verb": "GET", "path": f"/v1/{OPERATION}"},
    "google.longrunning.Operations/WaitOperation": {
        "verb": "POST",
        "path": f"/v1/{OPERATION}:wait",
        "body": "*",
    },
    # google/logging/v2/logging.proto
    "google.logging.v2.LoggingServiceV2/ListLogEntries": {
        "verb": "POST",
        "path": "/v2/entries:list",
        "body": "*",
    },
}


def rules_of(method: str) -> list[dict[str, str]]:
    """The rules of one method, as its client has them."""
    if method in OTHERS:
        return [OTHERS[method]]
    service, _, name = method.partition("/")
    client, module, kind = TRANSPORTS[service]
    # Loaded late: METHODS has seen to it that this does not load every service of the client.
    transports = importlib.import_module(f"{client}.services.{module}.transports.rest_base")
    transport: Any = getattr(transports, kind)
    options = getattr(transport, f"_Base{name}")._get_http_options()
    return [
        {"verb": rule["method"].upper(), "path": rule["uri"]}
        | ({"body": rule["body"]} if "body" in rule else {})
        for rule in options
    ]


def generate() -> str:
    """The file's text."""
    vertex, secrets = (
        importlib.import_module(f"{client}.gapic_version").__version__
        for client in (CLIENT, _SECRETS)
    )
    document = {
        "source": f"google-cloud-aiplatform {vertex} and google-cloud-secret-manager {secrets}, "
        "REST transports",
        "methods": {method: rules_of(method) for method in METHODS},
    }
    return json.dumps(document, indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(generated.main(TARGET, generate, "tools.generate.http_rules"))
