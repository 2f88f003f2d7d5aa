"""Manual changes of a cloud, by Google's clients or by REST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import requests
from google.auth.credentials import AnonymousCredentials
from google.cloud import resourcemanager_v3, storage
from google.cloud.resourcemanager_v3.services.projects.transports.rest import ProjectsRestTransport

from localgcp.home.servers import ServerInfo
from tests.e2e.small_stacks import IMAGE, MACHINE, REGION, SmallStack

#: A tuning job's trial gets its parameters as further arguments.
SLEEP: Final = {"imageUri": IMAGE, "command": ["sh", "-c", "sleep 600"]}


@dataclass(frozen=True)
class Hand:
    """A user with all permissions in the project of a stack."""

    stack: SmallStack

    @property
    def server(self) -> ServerInfo:
        """The address of the cloud."""
        found = ServerInfo.read(self.stack.checkout.home / "server.json")
        assert found is not None
        return found

    def call(self, verb: str, path: str, body: Any = None, expect: int = 200) -> dict[str, Any]:
        """Call a REST method like ``curl``."""
        url = f"http://127.0.0.1:{self.server.vertex_port}{path}"
        with requests.Session() as session:
            session.trust_env = False
            answer = session.request(verb, url, json=body, timeout=30)
        assert answer.status_code == expect, answer.text
        return answer.json()

    @property
    def storage(self) -> storage.Client:
        """Google's client of Cloud Storage."""
        url = f"http://127.0.0.1:{self.server.storage_port}"
        return storage.Client(
            self.stack.project,
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": url},
        )

    @property
    def projects(self) -> resourcemanager_v3.ProjectsClient:
        """Google's client of projects."""
        host = f"127.0.0.1:{self.server.vertex_port}"
        transport = ProjectsRestTransport(
            host=host, url_scheme="http", credentials=AnonymousCredentials()
        )
        return resourcemanager_v3.ProjectsClient(transport=transport)

    @property
    def network(self) -> str:
        """Return the path of the stack's network in Compute Engine."""
        return (
            f"/compute/v1/projects/{self.stack.project}/global/networks/training-{self.stack.name}"
        )

    def address(self, account: str = "trainer") -> str:
        """Return the email address of an account of the stack."""
        return f"{account}-{self.stack.name}@{self.stack.project}.iam.gserviceaccount.com"

    def change(self, path: str, body: dict[str, Any]) -> None:
        """Change fields of a resource."""
        self.call("PATCH", path, body)

    def insert(self, collection: str, name: str, **body: Any) -> None:
        """Create a resource in the stack's network."""
        link = f"https://www.googleapis.com{self.network}"
        path = f"/compute/v1/projects/{self.stack.project}/{collection}"
        self.call("POST", path, {"name": name, "network": link, **body})

    def grant(self, path: str, role: str, member: str, *, take: bool = False) -> None:
        """Add a member to the policy at ``path:getIamPolicy``; ``take`` removes the member."""
        is_bucket = path.startswith("/storage/")
        read = ("GET", f"{path}/iam") if is_bucket else _policy(path, "get")
        policy = self.call(*read)
        same = [b for b in policy["bindings"] if b["role"] == role]
        binding = same[0] if same else {"role": role, "members": []}
        policy["bindings"] = [b for b in policy["bindings"] if b is not binding]
        members = {*binding["members"]} - {member} if take else {*binding["members"], member}
        policy["bindings"].append({**binding, "members": sorted(members)})
        if is_bucket:
            self.call("PUT", f"{path}/iam", policy)
        else:
            self.call(*_policy(path, "set"), {"policy": policy})

    def grant_on_project(self, role: str, member: str) -> None:
        """Add a member to the project's policy, by Google's client."""
        name = f"projects/{self.stack.project}"
        policy = self.projects.get_iam_policy(resource=name)
        policy.bindings.add(role=role, members=[member])
        self.projects.set_iam_policy(request={"resource": name, "policy": policy})

    def submit(self, account: str, name: str, *, tuning: bool = False, **more: Any) -> str:
        """Submit a job that runs as ``account`` and return its name."""
        pool = {"replicaCount": 1, "machineSpec": MACHINE, "containerSpec": SLEEP}
        spec = {"serviceAccount": account, "workerPoolSpecs": [pool]}
        metric = [{"metricId": "loss", "goal": "MINIMIZE"}]
        parameter = {"parameterId": "lr", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}
        body: dict[str, Any] = {"displayName": name, **more}
        if tuning:
            body |= {
                "trialJobSpec": spec, "maxTrialCount": 1, "parallelTrialCount": 1,
                "studySpec": {"metrics": metric, "parameters": [parameter]},
            }  # fmt: skip
        else:
            body["jobSpec"] = spec
        collection = "hyperparameterTuningJobs" if tuning else "customJobs"
        parent = f"/v1/projects/{self.stack.project}/locations/{REGION}"
        return self.call("POST", f"{parent}/{collection}", body)["name"]


def _policy(path: str, verb: str) -> tuple[str, str]:
    if path.startswith("/compute/"):
        return ("GET" if verb == "get" else "POST"), f"{path}/{verb}IamPolicy"
    reads = "POST" if path.startswith("/v3/") or "/serviceAccounts/" in path else "GET"
    return (reads if verb == "get" else "POST"), f"{path}:{verb}IamPolicy"
