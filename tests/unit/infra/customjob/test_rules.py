"""What rules say, for a person to act on. Which file breaks which rule: ``test_corpus``."""

import datetime
import re

import pytest
import yaml

from vertex_training.customjob import rules
from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.customjob.rules import Context

WHO = Submission("acme-ml-dev", "us-central1", "dev", "job", run=1)
ACCOUNT = "trainer@acme-ml-dev.iam.gserviceaccount.com"
IMAGE = f"us-docker.pkg.dev/acme/train/x@sha256:{'0' * 64}"


def job(machine=None, *pools, **fields):
    container = {"imageUri": IMAGE}
    machine = machine or {"machineType": "n1-standard-4"}
    first = {"machineSpec": machine, "containerSpec": container}
    return {
        "serviceAccount": ACCOUNT,
        "scheduling": {"timeout": "3600s"},
        "workerPoolSpecs": [first, *pools],
        **fields,
    }


def check(content, context=rules.FILE_ONLY, table=None):
    text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
    return spec.check_job_file(text.encode(), "x.yaml", WHO, table or {}, context)


def reported(content, **kwargs):
    result = check(content, **kwargs)
    return {p.rule: str(p) for p in result.problems}


def gpu(machine, kind, count):
    return {"machineType": machine, "acceleratorType": kind, "acceleratorCount": count}


def test_ids_are_kebab_case_and_every_rule_is_documented_in_one_line():
    for rule in rules.ALL:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id)
        assert rule.summary.endswith(".")
        assert "\n" not in rule.summary
        assert len(rule.summary) <= 110
        assert rule.source
        assert rule.level in ("error", "warning", "note")
    assert len({rule.id for rule in rules.ALL}) == len(rules.ALL)


def test_the_page_of_rules_is_generated_from_the_code():
    from tools.generate import rules_doc

    assert rules_doc.TARGET.read_text(encoding="utf-8") == rules_doc.generate()


@pytest.mark.parametrize(
    ("content", "rule", "words"),
    [
        (job(gpu("n1-standard-8", "NVIDIA_L4", 1)), "accelerator-machine", "g2-standard-4"),
        (job(gpu("a2-highgpu-8g", "NVIDIA_TESLA_A100", 2)), "accelerator-count", "a2-highgpu-2g"),
        (
            job({"machineType": "a2-highgpu-1g"}),
            "accelerator-required",
            "NVIDIA_TESLA_A100 with count 1",
        ),
        (job({"machineType": "n1-standart-4"}), "machine-type", "did you mean 'n1-standard-4'?"),
        (job(network="projects/my-vpc/global/networks/x"), "network-number", "describe my-vpc"),
        (job(baseOutputDirectory={"outputUriPrefix": "x"}), "output-directory", "begin with gs://"),
        (job(serviceAccount=None) | {"serviceAccount": ""}, "service-account", "${serviceAccounts"),
        (job({"machineType": "ct5lp-hightpu-4t"}), "tpu-topology", "one of 2x2, 2x4"),
    ],
)
def test_a_mistake_names_what_to_write_instead(content, rule, words):
    assert words in reported(content)[rule]


def test_the_number_of_reduction_servers_that_would_do_is_reported():
    server = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    node = gpu("a2-highgpu-8g", "NVIDIA_TESLA_A100", 8)
    workers = {"machineSpec": node, "replicaCount": 3, "containerSpec": {"imageUri": IMAGE}}
    reducers = {
        "machineSpec": {"machineType": "n1-highcpu-16"},
        "replicaCount": 2,
        "containerSpec": {"imageUri": server},
    }
    line = reported(job(node, workers, reducers))["reduction-bandwidth"]
    assert "64 Gbps against 400 Gbps" in line
    assert "at least 13 of n1-highcpu-16" in line
    assert line.startswith("x.yaml:17:17: workerPoolSpecs[2].replicaCount:")


@pytest.mark.parametrize(
    ("where", "field", "place"),
    [
        ("pool", "network", "jobSpec (the top level in gcloud's form), not to a worker pool"),
        ("pool", "env", "containerSpec or pythonPackageSpec, not to a worker pool"),
        ("spec", "timeout", "scheduling, not to jobSpec"),
        ("spec", "labels", "the top level, beside jobSpec"),
    ],
)
def test_a_misplaced_field_is_reported_with_where_it_belongs(where, field, place):
    content = job()
    (content if where == "spec" else content["workerPoolSpecs"][0])[field] = "x"
    if field == "labels":  # at the top this would be REST's form
        content = {"displayName": "x", "jobSpec": content}
    assert place in reported(content)["misplaced-field"]


def test_spot_in_a_pool_is_reported_as_the_strategy_of_the_job():
    content = job()
    content["workerPoolSpecs"][0]["useSpot"] = True
    assert (
        "scheduling.strategy: SPOT in jobSpec, for the whole job"
        in reported(content)["unknown-field"]
    )


def test_a_field_that_is_near_one_of_another_place_is_reported_so():
    content = job()
    content["workerPoolSpecs"][0]["serviceacount"] = "x"
    line = reported(content)["unknown-field"]
    assert "did you mean 'serviceAccount'? It belongs to jobSpec" in line


def test_a_misspelt_field_is_not_reported_as_a_missing_one_too():
    content = job({"machinType": "n1-standard-4"})
    assert list(reported(content)) == ["unknown-field"]
    content = job()
    content["serviceaccount"] = content.pop("serviceAccount")
    assert list(reported(content)) == ["unknown-field"]


def test_another_mistake_beside_it_does_not_hide_a_missing_field():
    content = job(region="us-central1")
    del content["serviceAccount"]
    assert set(reported(content)) == {"unknown-field", "service-account"}


def test_mistakes_of_form_and_of_meaning_are_reported_together():
    content = job({"machineType": "n1-standard-2"}, diskSpec=1)
    content["workerPoolSpecs"][0]["replicaCount"] = "many"
    assert set(reported(content)) == {"machine-type", "wrong-type", "misplaced-field"}


def test_an_unreadable_strategy_leads_to_no_conclusions():
    content = job(gpu("a3-highgpu-2g", "NVIDIA_H100_80GB", 2))
    content["scheduling"]["strategy"] = "PREEMPTIBLE"
    assert list(reported(content)) == ["enum-value"]


def test_a_secret_is_never_shown():
    content = job()
    container = content["workerPoolSpecs"][0]["containerSpec"]
    container["env"] = [{"name": "DB_PASSWORD", "value": "hunter2"}]
    container["args"] = ["--token=hf_" + "a" * 30]
    lines = reported(content)
    assert {"secret-in-env", "secret-in-args"} == set(lines)
    assert not any("hunter2" in line or "hf_a" in line for line in lines.values())


@pytest.mark.parametrize(
    "value", ["projects/p/secrets/x", "/gcs/b/x", "$(OTHER)", "", "true", "16"]
)
def test_what_only_names_a_secret_is_none(value):
    content = job()
    variable = {"name": "HF_TOKEN", "value": value}
    other = {"name": "OTHER", "value": "x"}
    content["workerPoolSpecs"][0]["containerSpec"]["env"] = [other, variable]
    assert reported(content) == {}


@pytest.mark.parametrize(
    ("line", "rule", "words"),
    [
        ("serviceAccount: no", "not-text-value", 'YAML reads it as false; quote it: "no"'),
        ("serviceAccount: 0o17", "service-account-email", "got 0o17"),
        ("scheduling: {timeout: 1e3}", "duration-format", "seconds with an s"),
        ("scheduling: {timeout: 2d}", "duration-format", 'write "172800s"'),
        ("scheduling: {strategy: preemptible}", "enum-value", "write SPOT"),
        ("scheduling: {disableRetries: yes please}", "wrong-type", "must be true or false"),
        ("workerPoolSpecs: [{replicaCount: 1e3}]", "wrong-type", "write 1000"),
        ("workerPoolSpecs: [{replicaCount: 1:30}]", "yaml-number", "is read by YAML as 90"),
    ],
)
def test_what_yaml_made_of_a_value_is_reported(line, rule, words):
    assert words in reported(line)[rule]


def test_an_accelerator_by_another_name_is_the_one_that_was_meant():
    lines = reported(job(gpu("a2-highgpu-1g", "NVIDIA_A100_40GB", 1)))
    assert "write NVIDIA_TESLA_A100" in lines["enum-value"]


@pytest.mark.parametrize("kind", ["TPU_V5E", "TPU_V6E", "tpu-v6e", "TPU_V5P"])
def test_a_newer_tpu_is_told_by_its_machine_type_and_no_other_accelerator(kind):
    line = reported(job(gpu("ct5lp-hightpu-4t", kind, 4)))["enum-value"]
    assert "machineType and tpuTopology" in line
    assert "did you mean" not in line


def test_an_image_is_past_its_end_only_after_that_day():
    content = job()
    image = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest"
    content["workerPoolSpecs"][0]["containerSpec"]["imageUri"] = image
    before = Context(today=datetime.date(2026, 7, 11))
    after = Context(today=datetime.date(2026, 7, 12))
    assert reported(content, context=before) == {}
    assert list(reported(content, context=after)) == ["image-age"]


@pytest.mark.parametrize(
    ("image", "day", "level"),
    [
        ("tf-cpu.2-16.py310", datetime.date(2026, 7, 1), "warning"),
        ("tf-cpu.2-16.py310", datetime.date(2026, 7, 12), "note"),
        ("tf-cpu.2-9.py310", datetime.date(2026, 7, 12), "note"),
        ("ray-cpu.2-42.py310", datetime.date(2027, 4, 1), "warning"),
    ],
)
def test_an_image_past_its_end_is_a_warning_while_a_newer_one_is_served(image, day, level):
    content = job()
    name = f"us-docker.pkg.dev/vertex-ai/training/{image}:latest"
    content["workerPoolSpecs"][0]["containerSpec"]["imageUri"] = name
    [found] = check(content, context=Context(today=day)).problems
    assert (found.rule, found.level) == ("image-age", level)


def test_a_mistake_in_the_one_pool_without_a_list_has_its_place():
    text = f"""serviceAccount: {ACCOUNT}
workerPoolSpecs:
  machineSpec: {{machineType: n1-standard-2}}
  containerSpec: {{imageUri: "{IMAGE}"}}
"""
    lines = reported(text)
    assert set(lines) == {"pool-list", "machine-type"}
    assert lines["machine-type"].startswith(
        "x.yaml:3:30: workerPoolSpecs[0].machineSpec.machineType"
    )


def test_an_unknown_section_reference_is_an_unknown_reference():
    machine = gpu("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8)
    content = job({**machine, "reservationAffinity": "${reservations.h10}"})
    lines = reported(content, table={"reservations.h100": {}})
    assert list(lines) == ["unknown-reference"]
    assert "did you mean 'reservations.h100'?" in lines["unknown-reference"]


def test_misplaced_reduction_servers_serve_the_first_two_pools_alone():
    server = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    node = gpu("a2-highgpu-8g", "NVIDIA_TESLA_A100", 8)
    reducers = {
        "machineSpec": {"machineType": "n1-highcpu-16"},
        "replicaCount": 4,
        "containerSpec": {"imageUri": server},
    }
    third = {"machineSpec": node, "replicaCount": 3, "containerSpec": {"imageUri": IMAGE}}
    found = reported(job(node, reducers, third))
    assert "reduction-place" in found
    assert "reduction-bandwidth" not in found  # 128 Gbps against 100 Gbps of the first pool


@pytest.mark.parametrize(
    ("other", "rules"),
    [
        (gpu("g2-standard-8", "NVIDIA_L4", 1), set()),
        (gpu("g2-standard-12", "NVIDIA_L4", 1), {"flex-start-same-machines"}),
        (gpu("g2-standard-24", "NVIDIA_L4", 2), {"flex-start-same-machines"}),
        (gpu("a2-highgpu-1g", "NVIDIA_TESLA_A100", 1), {"flex-start-same-machines"}),
    ],
)
def test_the_pools_of_a_flex_start_job_have_one_machine_type(other, rules):
    workers = {"machineSpec": other, "replicaCount": 1, "containerSpec": {"imageUri": IMAGE}}
    scheduling = {"timeout": "3600s", "strategy": "FLEX_START"}
    found = reported(job(gpu("g2-standard-8", "NVIDIA_L4", 1), workers, scheduling=scheduling))
    assert {rule for rule in found if rule and rule.startswith("flex-start")} == rules


def test_an_accelerator_is_refused_from_the_day_its_support_ends():
    content = job(gpu("n1-standard-8", "NVIDIA_TESLA_P100", 1))
    before = Context(today=datetime.date(2026, 9, 14))
    that_day = Context(today=datetime.date(2026, 9, 15))
    assert "accelerator-retired" not in reported(content, context=before)
    assert (
        "its support ended on 2026-09-15"
        in reported(content, context=that_day)["accelerator-retired"]
    )


def test_gpus_of_reduction_servers_and_of_later_pools_are_no_workers_gpus():
    server = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    node = gpu("a2-highgpu-8g", "NVIDIA_TESLA_A100", 8)
    small = {"machineType": "n1-highcpu-16"}

    def pool(machine, image):
        return {"machineSpec": machine, "replicaCount": 1, "containerSpec": {"imageUri": image}}

    servers_with_gpus = job(small, pool(node, server))
    later_gpus = job(small, pool(small, server), pool(node, IMAGE))
    assert "reduction-workers" in reported(servers_with_gpus)
    assert "reduction-workers" in reported(later_gpus)
    assert "reduction-workers" not in reported(job(node, pool(node, IMAGE), pool(small, server)))
