import dataclasses
import hashlib
import json

import pytest
import yaml

from vertex_training.customjob import rules
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB
from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.customjob.rules import Context, NetworkFacts, StackFacts
from vertex_training.errors import ConfigError

WHO = Submission("acme-ml-dev", "us-central1", "dev", "titanic", 1)
TABLE = {
    "serviceAccounts.trainer": "trainer@acme.iam.gserviceaccount.com",
    "buckets.data": "gs://data",
    "packages.titanic": "gs://staging/packages/titanic-1.tar.gz",
    "reservations.h100": {"reservationAffinityType": "ANY_RESERVATION"},
}
GCLOUD = """\
serviceAccount: ${serviceAccounts.trainer}
workerPoolSpecs:
  - replicaCount: 1
    machineSpec: {machineType: n1-standard-4}
    containerSpec:
      imageUri: us-docker.pkg.dev/acme/images/x@sha256:DIGEST
      args: ["--data=${buckets.data}/x", "${HOME}"]
""".replace("DIGEST", "0" * 64)


def load(text, who=WHO, table=TABLE):
    result = spec.check_job_file(text.encode(), "jobs/x.yaml", who, table, kind=CUSTOM_JOB)
    if result.request is None:
        raise ConfigError(result.errors)
    return result.request


def changed(**fields):
    """The good file with fields of its pool replaced; None removes one."""
    job = yaml.safe_load(GCLOUD)
    pool = job["workerPoolSpecs"][0]
    for key, value in fields.items():
        target = job if key in ("scheduling", "serviceAccount", "baseOutputDirectory") else pool
        target.pop(key, None)
        if value is not None:
            target[key] = value
    return yaml.safe_dump(job)


def test_the_request_id_can_name_the_output_directory():
    text = changed(
        baseOutputDirectory={"outputUriPrefix": "gs://artifacts/${job.name}/${job.requestId}"}
    )
    request = load(text)
    prefix = request.message["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"]
    assert prefix == f"gs://artifacts/titanic/{request.request_id}"
    assert spec.digest_of(request.body) == request.digest


def test_rules_have_one_id_a_summary_and_a_source_each():
    assert len({rule.id for rule in rules.RULES}) == len(rules.RULES)
    assert all(rule.summary and rule.source for rule in rules.RULES)


def test_the_fields_known_are_those_of_the_official_client():
    from tools.generate import job_schema

    for file, generate in (
        (job_schema.TARGET, job_schema.generate),
        (job_schema.TUNING_TARGET, job_schema.generate_tuning),
    ):
        known, official = json.loads(file.read_text()), json.loads(generate())
        assert known.pop("source").startswith("google-cloud-aiplatform 2.")
        assert official.pop("source")  # with the version that is installed: the oldest has all, too
        assert known == official


#: What is sent of ``GCLOUD``, key by key in the order of the alphabet.
BODY = (
    '{"displayName":"dev-titanic","jobSpec":{"serviceAccount":"trainer@acme.iam.gserviceaccount'
    '.com","workerPoolSpecs":[{"containerSpec":{"args":["--data=gs://data/x","${HOME}"],'
    '"imageUri":"us-docker.pkg.dev/acme/images/x@sha256:' + "0" * 64 + '"},'
    '"machineSpec":{"machineType":"n1-standard-4"},"replicaCount":1}]}}'
)


def sha256(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def test_an_id_is_made_as_ever_or_every_job_would_be_submitted_once_more():
    who = ("acme-ml-dev", "us-central1", "dev", "titanic", "1")
    request = load(GCLOUD)
    assert (request.body, request.request_id) == (BODY, sha256(*who, BODY)[:20])
    assert request.digest == sha256(BODY)
    umlaut = load(GCLOUD.replace("${HOME}", "größe"))
    assert umlaut.request_id == sha256(*who, BODY.replace("${HOME}", "größe"))[:20]
    # The id is made of the request before it is put in.
    text = changed(baseOutputDirectory={"outputUriPrefix": "gs://artifacts/${job.requestId}"})
    named = load(text)
    draft = named.body.replace(named.request_id, "${job.requestId}")
    assert named.request_id == sha256(*who, draft)[:20]


def test_the_id_of_a_job_on_batch_has_its_prefix_and_its_subnet():
    who = ("acme-ml-dev", "us-central1", "dev", "titanic", "1")
    data = GCLOUD.encode()
    plain = spec.check_job_file(data, "x.yaml", WHO, TABLE, kind=BATCH_JOB).request
    assert plain.request_id == f"batch-{sha256(*who, BODY)[:20]}"
    assert (plain.kind, plain.subnet, plain.body) == (BATCH_JOB, "", BODY)
    subnet = "projects/p/regions/us-central1/subnetworks/s"
    attachment = "projects/p/regions/us-central1/networkAttachments/a"
    stack = dataclasses.replace(
        StackFacts("acme-ml-dev", "210987654321", "us-central1"),
        network=NetworkFacts("psc", "", attachment, subnet=subnet),
    )
    inside = f"{GCLOUD}pscInterfaceConfig: {{networkAttachment: {attachment}}}\n"
    context = Context(region="us-central1", stack=stack)
    request = spec.check_job_file(
        inside.encode(), "x.yaml", WHO, TABLE, context, kind=BATCH_JOB
    ).request
    assert request.subnet == subnet
    assert request.request_id == f"batch-{sha256(*who, request.body, subnet)[:20]}"


def test_what_is_sent_has_the_labels_beside_its_own():
    rest = "labels: {team: ml, run: mine}\njobSpec:\n" + "".join(
        f"  {line}\n" for line in GCLOUD.splitlines()
    )
    request = load(rest)
    sent = request.sent({"run": "2", "vt-stack": "dev"})
    assert sent == request.message | {"labels": {"team": "ml", "run": "2", "vt-stack": "dev"}}
    assert load(GCLOUD).sent({}) == json.loads(BODY)
    assert request.account == TABLE["serviceAccounts.trainer"]
    assert load(changed(serviceAccount=None)).account == ""
    assert load(GCLOUD).output_directory == ""


@pytest.mark.parametrize(
    ("prefix", "sent"),
    [
        ("gs://artifacts/x", "gs://artifacts/x/${job.slot}"),
        ("gs://artifacts/x/", "gs://artifacts/x/${job.slot}"),
        ("gs://artifacts/${job.slot}/x", "gs://artifacts/${job.slot}/x"),
        ("gs://artifacts/${job.requestId}", "gs://artifacts/${job.requestId}"),
        (None, ""),
    ],
)
def test_each_slot_of_a_schedule_writes_to_a_folder_of_its_own(prefix, sent):
    given = {"outputUriPrefix": prefix} if prefix else None
    data = changed(baseOutputDirectory=given).encode()
    result = spec.check_job_file(data, "x.yaml", WHO, TABLE, kind=CUSTOM_JOB, scheduled=True)
    assert result.request.output_directory == sent
    if prefix and "slot" in prefix:
        once = spec.check_job_file(data, "x.yaml", WHO, TABLE, kind=CUSTOM_JOB)
        assert [each.rule for each in once.errors] == ["unknown-reference"]


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ({"machineType": "n1-standard-4"}, "no machine of the job has acceleratorCount"),
        (
            {
                "machineType": "n1-standard-4",
                "acceleratorType": "NVIDIA_TESLA_T4",
                "acceleratorCount": 1,
            },
            "",
        ),
    ],
)
def test_a_job_without_accelerators_cannot_idle(machine, words):
    data = changed(machineSpec=machine).encode()
    one = spec.JobFile(data, "x.yaml", WHO, idle_stop=True)
    result = spec.check_ladder(one, TABLE)
    found = [problem.what for problem in result.errors]
    assert [words in what for what in found] == ([True] if words else [])
    assert (result.request is None) == bool(words)
    assert spec.check_ladder(dataclasses.replace(one, idle_stop=False), TABLE).request
