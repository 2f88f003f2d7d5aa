"""Public forms of ``gcloud ai custom-jobs create``: each runs, or says why it does not."""

from __future__ import annotations

import pytest

from tests.clients.conftest import PROJECT, TRAINER, Shell, read_log, until_ended

pytestmark = pytest.mark.timeout(900)
POOL = "--worker-pool-spec=machine-type=n1-standard-4,replica-count=1"
#: A container whose command is given, so that it runs on this machine.
HOST = f"{POOL},container-image-uri=python:3.11 --command=echo"
CONFIG = """\
worker_pool_specs:
  - machine_spec: {machine_type: n1-standard-4}
    replica_count: 1
    container_spec: {image_uri: python:3.11, command: [echo, of, the, file]}
"""


@pytest.fixture(scope="module", autouse=True)
def project(shell: Shell) -> None:
    """The project with an account and a bucket."""
    shell.make_project(TRAINER, "forms")
    (shell.folder / "form.yaml").write_text(CONFIG)


def create(shell: Shell, form: str, expect: int = 0) -> str:
    """What the command prints; where it succeeds, what the job's log has, and its end."""
    call = f"gcloud ai custom-jobs create --region=us-central1 --display-name=form {form}"
    if expect:
        return shell.run(call, expect).stderr
    wait = until_ended("gcloud ai custom-jobs describe $JOB --region=us-central1")
    return shell.run(
        f'JOB=$({call} --format="value(name)") && {wait} && '
        f"{read_log('$JOB')} && "
        "gcloud ai custom-jobs describe $JOB --region=us-central1 --format=json"
    ).stdout


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        (f"{HOST} --args=--mode=test,--epochs=3", ["--mode=test --epochs=3"]),
        (
            f"{HOST} --args=x --project={PROJECT} --labels=team=a,run=7 --enable-web-access "
            f"--enable-dashboard-access --persistent-resource-id=pool --service-account={TRAINER}",
            ['"run": "7"', '"enableWebAccess": true', '"enableDashboardAccess": true',
             '"persistentResourceId": "pool"', f'"serviceAccount": "{TRAINER}"'],
        ),
        (
            f"{POOL},accelerator-type=NVIDIA_TESLA_T4,accelerator-count=1,"
            "container-image-uri=python:3.11 --worker-pool-spec=machine-type=n1-standard-4,"
            "replica-count=2,container-image-uri=python:3.11 --command=echo --args=two",
            ['"acceleratorType": "NVIDIA_TESLA_T4"', '"replicaCount": "2"'],
        ),
        # gcloud leaves out --args beside a --config whose names are in snake case.
        ("--config=form.yaml --args=and,more", ["of the file\n"]),
    ],
)  # fmt: skip
def test_a_form_that_runs(shell: Shell, gcloud: str, form: str, printed: list[str]) -> None:
    done = create(shell, form)
    assert [text for text in printed if text not in done] == []
    assert '"state": "JOB_STATE_SUCCEEDED"' in done


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        (f"{HOST} --network=projects/1/global/networks/n", "PERMISSION_DENIED"),
        (
            f"{HOST} --service-account=nobody@{PROJECT}.iam.gserviceaccount.com",
            "PERMISSION_DENIED: You do not have permission",
        ),
        (f"{POOL},container-image-uri=x,disk-type=pd-ssd", "received: disk-type"),
        (f"{HOST} --env-vars=A=1", "unrecognized arguments"),
        (f"{POOL},container-image-uri=x,replica-count=0", "replica"),
        ("--config=none.yaml", "none.yaml"),
        (HOST.replace("n1-standard-4", "n1-standrd-4"), 'type "n1-standrd-4" is not supported'),
        (
            HOST.replace(" --command", ",accelerator-type=NVIDIA_L4,accelerator-count=1 --command"),
            'Accelerator "NVIDIA_L4" is not supported for machine type "n1-standard-4"',
        ),
    ],
)
def test_a_form_that_is_refused(shell: Shell, gcloud: str, form: str, reason: str) -> None:
    code = 2 if reason in ("received: disk-type", "unrecognized arguments") else 1
    assert reason in create(shell, form, code)


def test_the_beta_track_is_refused_with_the_page(shell: Shell, gcloud: str) -> None:
    call = f"gcloud beta ai custom-jobs create --region=us-central1 --display-name=beta {HOST}"
    said = shell.run(call, 1).stderr
    assert "the local cloud does not serve the method POST /v1beta1/" in said
    assert "docs/local-stack.md" in said
