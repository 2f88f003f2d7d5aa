"""REST's form and gcloud's form of a job file, and fields that only the service fills in."""

import pytest
import yaml

from tests.unit.infra.customjob.test_rules import check, job, reported

CLASSIC = {"machineType": "n1-standard-4"}


def test_a_file_with_the_spec_inside_is_read_as_rest_writes_it():
    plain = check(job(CLASSIC)).request
    wrapped = check({"displayName": "train", "jobSpec": job(CLASSIC)}).request
    assert plain is not None
    assert wrapped is not None


def test_labels_alone_do_not_change_how_the_rest_is_read():
    assert "unknown-field" not in reported(job(CLASSIC))
    found = reported({"jobSpec": job(CLASSIC), "scheduling": {"timeout": "3600s"}})
    assert found


def test_what_the_service_fills_in_is_left_out_as_the_service_does():
    verdict = check({"jobSpec": job(CLASSIC), "createTime": "2026-01-01T00:00:00Z"})
    assert [problem.rule for problem in verdict.warnings] == ["output-field"]
    assert verdict.request is not None
    assert "createTime" not in verdict.request.body


@pytest.mark.parametrize(
    ("field", "empty"),
    [
        ("network", ""),
        ("tensorboard", ""),
        ("experiment", ""),
        ("baseOutputDirectory", {"outputUriPrefix": ""}),
        ("base_output_directory", {"output_uri_prefix": ""}),
    ],
)
def test_empty_text_is_a_field_that_is_not_set(field, empty):
    wanted = job(CLASSIC)
    wanted.pop("baseOutputDirectory", None)
    verdict, without = check({**wanted, field: empty}), check(wanted)
    assert verdict.request is not None
    assert without.request is not None
    assert verdict.request.body == without.request.body
    assert [problem.rule for problem in verdict.warnings] == ["no-value"]


def test_an_empty_disk_is_the_service_s_own():
    content = job(CLASSIC)
    content["workerPoolSpecs"][0]["diskSpec"] = {"bootDiskType": "", "bootDiskSizeGb": 0}
    verdict = check(content)
    assert not verdict.errors


@pytest.mark.parametrize("field", ["imageUri", "machineType"])
def test_empty_text_where_a_value_is_required_is_refused(field):
    content = job(dict(CLASSIC))
    pool = content["workerPoolSpecs"][0]
    message = pool["machineSpec"] if field == "machineType" else pool["containerSpec"]
    message[field] = ""
    assert check(content).errors


def test_one_pool_without_a_list_is_taken_with_a_note():
    content = job(CLASSIC)
    content["workerPoolSpecs"] = content["workerPoolSpecs"][0]
    verdict = check(yaml.safe_dump(content, sort_keys=False))
    assert not verdict.errors
    assert not verdict.warnings
    assert [problem.rule for problem in verdict.notes] == ["pool-list"]


@pytest.mark.parametrize(
    ("field", "lone"),
    [("args", "--epochs=3"), ("command", "train"), ("env", {"name": "A", "value": "x"})],
)
def test_one_value_is_taken_for_a_list_of_it_as_gcloud_does(field, lone):
    content, listed = job(CLASSIC), job(CLASSIC)
    content["workerPoolSpecs"][0]["containerSpec"][field] = lone
    listed["workerPoolSpecs"][0]["containerSpec"][field] = [lone]
    verdict, wanted = check(content), check(listed)
    assert verdict.request is not None
    assert wanted.request is not None
    assert verdict.request.body == wanted.request.body
    assert [problem.rule for problem in verdict.warnings] == ["lone-value"]


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("args", {"epochs": "3"}), ("env", {"A": "x"}), ("env", "A=x"), ("env", {}), ("args", [None])],
)
def test_what_is_no_item_either_is_refused(field, wrong):
    content = job(CLASSIC)
    content["workerPoolSpecs"][0]["containerSpec"][field] = wrong
    verdict = check(content)
    assert len(verdict.errors) == 1
    assert verdict.errors[0].rule in ("wrong-type", "not-text-value")


def test_a_mistake_in_a_lone_item_is_one_error():
    content = job(CLASSIC)
    content["workerPoolSpecs"][0]["containerSpec"]["args"] = 5
    verdict = check(content)
    assert [problem.rule for problem in verdict.errors] == ["not-text-value"]


@pytest.mark.parametrize(
    "mistake",
    [
        {"machineSpec": CLASSIC | {"machineTyp": "n1-standard-4", "machineType": None}},
        {"machineSpec": {"machineTyp": "n1-standard-4"}},
        {"containerSpec": {"imageUrl": "us-docker.pkg.dev/acme/train/x:v1"}},
        {"replicaCount": "one"},
        {"diskSpec": {"bootDiskType": "pd-fast"}},
    ],
)
def test_a_mistake_in_a_pool_without_a_list_is_reported_as_in_a_list(mistake):
    content = job(CLASSIC)
    [pool] = content["workerPoolSpecs"]
    listed = reported(content | {"workerPoolSpecs": [pool | mistake]})
    assert reported(content | {"workerPoolSpecs": pool | mistake}).keys() == {"pool-list", *listed}


@pytest.mark.parametrize("image", ["gcr.io/acme/x:latest", "us-docker.pkg.dev/acme/x/y:latest"])
def test_an_image_that_runs_no_package_is_one_finding(image):
    content = job(dict(CLASSIC))
    pool = content["workerPoolSpecs"][0]
    del pool["containerSpec"]
    pool["pythonPackageSpec"] = {
        "executorImageUri": image,
        "packageUris": ["gs://acme/trainer-1.tar.gz"],
        "pythonModule": "trainer.task",
    }
    assert [problem.rule for problem in check(content).problems] == ["executor-image"]
