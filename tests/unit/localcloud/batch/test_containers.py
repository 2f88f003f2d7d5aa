"""What the engine of containers is called with, by a program in its place that says it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from localgcp.containers.engines import Docker
from tests.unit.localcloud.batch.conftest import Jobs, State, job
from tests.unit.localcloud.conftest import PROJECT

IMAGE = f"us-central1-docker.pkg.dev/{PROJECT}/training/probe:v1"
HOSTS = "/etc/cloudbatch-taskgroup-hosts"
#: In place of docker: an image with an entrypoint; a run prints its arguments.
PROGRAM = """\
#!{python}
import json, sys
if sys.argv[1:3] == ["image", "inspect"]:
    print(json.dumps({{"Entrypoint": ["python", "probe.py"], "Cmd": ["show"]}}))
if sys.argv[1] == "run":
    print(json.dumps(sys.argv[2:]), flush=True)
    sys.exit(7)
"""


def test_an_image_is_pulled_by_the_account_and_gets_its_words_variables_and_volumes(
    jobs: Jobs, tmp_path: Path
) -> None:
    program = tmp_path / "docker"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o700)
    containers = jobs.batch.service._refusal.__self__
    containers.port, containers._engine = 5000, Docker(str(program), "home", "1000:1000")
    bucket = jobs.cloud.bucket("local-data")
    bucket.blob("in/a").upload_from_string("A")
    jobs.cloud.grant("b/local-data", "roles/storage.objectUser")
    container = {
        "image_uri": IMAGE,
        "commands": ["train", "$(PATH)"],
        "volumes": ["/mnt/data:/gcs/local-data:rw", "/mnt/data/in:/in", f"{HOSTS}:{HOSTS}"],
    }
    made = job(
        {"container": container},
        volumes=[{"gcs": {"remote_path": "local-data"}, "mount_path": "/mnt/data"}],
        environment={"variables": {"MINE": "/mnt/data"}},
        group={"require_hosts_file": True},
    )
    denied = jobs.run(made)
    assert (denied.status.state, jobs.codes(denied.name)) == (State.FAILED, [125])
    assert "artifactregistry.repositories.downloadArtifacts" in jobs.log(denied, "agent")
    jobs.cloud.grant(f"projects/{PROJECT}", "roles/artifactregistry.reader")
    ended = jobs.run(made)
    assert jobs.codes(ended.name) == [7], jobs.log(ended, "agent")
    [line] = [line for line in jobs.log(ended).splitlines() if line[:1] == "["]
    words = json.loads(line)
    folder = jobs.cloud.home.batch / ended.uid
    assert words[words.index("--entrypoint") + 1] == "python"
    assert words[-4:] == [f"127.0.0.1:5000/{PROJECT}/training/probe:v1", "probe.py", *words[-2:]]
    assert words[-2:] == ["train", "$(PATH)"]
    volumes = [words[at + 1] for at, word in enumerate(words) if word == "--volume"]
    assert sorted(volumes) == sorted(
        [f"{folder}/gcs:/gcs", f"{folder}/gcs/local-data/in:/in", f"{folder}/hosts:{HOSTS}"]
    )
    variables = [words[at + 1] for at, word in enumerate(words) if word == "--env"]
    assert {"MINE=/mnt/data", "BATCH_TASK_INDEX=0", f"BATCH_HOSTS_FILE={HOSTS}"} <= {*variables}
