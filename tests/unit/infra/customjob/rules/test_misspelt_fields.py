"""A field that is misspelt, or has no value, is one mistake: its absence is not told as well."""

import pytest
import yaml

from tests.unit.infra.customjob.rules.test_limits import told
from tests.unit.infra.customjob.rules.tuning_cases import RIGHT

DIGEST = "0" * 64
#: Every field that a rule misses where it is left out.
WHOLE = f"""\
displayName: x
encryptionSpec:
  kmsKeyName: projects/p/locations/us-central1/keyRings/r/cryptoKeys/k
jobSpec:
  serviceAccount: trainer@acme-ml-dev.iam.gserviceaccount.com
  tensorboard: projects/p/locations/us-central1/tensorboards/1
  baseOutputDirectory:
    outputUriPrefix: gs://bucket/x
  pscInterfaceConfig:
    networkAttachment: mine
    dnsPeeringConfigs:
    - domain: corp.example.com.
      targetProject: my-project
      targetNetwork: my-network
  scheduling:
    timeout: 3600s
    strategy: SPOT
  workerPoolSpecs:
  - machineSpec:
      machineType: n1-standard-4
    nfsMounts:
    - server: 10.0.0.2
      path: /export
      mountPoint: data
    lustreMounts:
    - instanceIp: 10.0.0.2
      volumeHandle: handle
      filesystem: scratch
      mountPoint: more
    containerSpec:
      imageUri: us-docker.pkg.dev/acme/train/x@sha256:{DIGEST}
      env:
      - name: A
        value: b
  - machineSpec:
      machineType: g2-standard-4
      acceleratorType: NVIDIA_L4
      acceleratorCount: 1
    pythonPackageSpec:
      executorImageUri: us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest
      packageUris: [gs://bucket/x.tar.gz]
      pythonModule: titanic.task
"""
TPU = """\
serviceAccount: trainer@acme-ml-dev.iam.gserviceaccount.com
workerPoolSpecs:
- machineSpec:
    machineType: ct5lp-hightpu-4t
    tpuTopology: 2x2
  containerSpec: {imageUri: us-docker.pkg.dev/acme/train/x:1}
"""
RESERVED = f"""\
serviceAccount: trainer@acme-ml-dev.iam.gserviceaccount.com
scheduling: {{timeout: 3600s}}
workerPoolSpecs:
- machineSpec:
    machineType: a3-megagpu-8g
    acceleratorType: NVIDIA_H100_MEGA_80GB
    acceleratorCount: 8
    reservationAffinity:
      reservationAffinityType: SPECIFIC_RESERVATION
      key: compute.googleapis.com/reservation-name
      values: [projects/acme-ml-dev/zones/us-central1-a/reservations/spare]
  containerSpec: {{imageUri: us-docker.pkg.dev/acme/train/x@sha256:{DIGEST}}}
"""
ON_SGD = "parentCategoricalValues: {values: [sgd]}"


def rows():
    fields = {
        WHOLE: (
            *("kmsKeyName", "serviceAccount", "baseOutputDirectory", "outputUriPrefix"),
            *("networkAttachment", "domain", "targetProject", "targetNetwork", "timeout"),
            *("workerPoolSpecs", "server", "path", "instanceIp", "volumeHandle", "filesystem"),
            *("imageUri", "value", "acceleratorType", "acceleratorCount", "executorImageUri"),
            *("packageUris", "pythonModule", "containerSpec"),
        ),
        TPU: ("tpuTopology", "workerPoolSpecs", "machineSpec", "machineType"),
        RESERVED: (
            *("reservationAffinity", "reservationAffinityType", "key", "values"),
            *("acceleratorType", "acceleratorCount"),
        ),
        RIGHT: (
            *("studySpec", "metrics", "goal", "metricId", "parameters", "doubleValueSpec"),
            *("discreteValueSpec", "parentCategoricalValues", "parameterSpec", "minValue"),
            *("maxTrialCount", "parallelTrialCount", "baseOutputDirectory", "integerValueSpec"),
            *("maxValue", "categoricalValueSpec"),
        ),
    }
    return [(text, field) for text, names in fields.items() for field in names]


@pytest.mark.parametrize(("text", "field"), rows(), ids=lambda value: value[:20])
def test_a_misspelt_field_is_one_mistake(text, field):
    begin = text.index(f"{field}:")
    edited = f"{text[:begin]}{field}x{text[begin + len(field) :]}"
    assert [rule for rule, _, _ in told(text)] == []
    assert [rule for rule, _, _ in told(edited)] == ["unknown-field"]


@pytest.mark.parametrize(
    ("old", "place"),
    [
        (ON_SGD, "studySpec.parameters[3].conditionalParameterSpecs[0].parentCategoricalValues"),
        (
            "categoricalValueSpec: {values: [adam, sgd]}",
            "studySpec.parameters[3].categoricalValueSpec",
        ),
        ("discreteValueSpec: {values: [16, 32, 64]}", "studySpec.parameters[2].discreteValueSpec"),
    ],
)
def test_values_that_are_misspelt_are_one_mistake(old, place):
    edited = RIGHT.replace(old, old.replace("values", "valuess"))
    assert told(edited) == [("unknown-field", f"{place}.valuess", "")]


def without(content, field):
    """The first mapping that has the field gets another, unknown one in its place; True if done."""
    if isinstance(content, list):
        return any(without(item, field) for item in content)
    if not isinstance(content, dict):
        return False
    if field in content:
        del content[field]
        content["unrelated"] = 1
        return True
    return any(without(item, field) for item in content.values())


@pytest.mark.parametrize(
    ("text", "field", "rules"),
    [
        (WHOLE, "serviceAccount", "service-account, tensorboard-account"),
        (WHOLE, "baseOutputDirectory", "spot-output, tensorboard-output"),
        (WHOLE, "networkAttachment", "attachment-missing"),
        (WHOLE, "domain", "dns-peering-needs"),
        (WHOLE, "targetProject", "dns-peering-needs"),
        (WHOLE, "targetNetwork", "dns-peering-needs"),
        (WHOLE, "timeout", "timeout-missing"),
        (WHOLE, "scheduling", "timeout-missing"),
        (WHOLE, "workerPoolSpecs", "first-pool"),
        (WHOLE, "server", "mount-needs"),
        (WHOLE, "mountPoint", "mount-needs"),
        (WHOLE, "volumeHandle", "mount-needs"),
        (WHOLE, "imageUri", "container-image"),
        (WHOLE, "value", "env-value"),
        (WHOLE, "name", "env-name"),
        (WHOLE, "containerSpec", "pool-task"),
        (WHOLE, "machineType", "pool-machine"),
        (WHOLE, "machineSpec", "pool-machine"),
        (WHOLE, "acceleratorType", "accelerator-required"),
        (WHOLE, "acceleratorCount", "accelerator-required"),
        (WHOLE, "executorImageUri", "package-needs"),
        (WHOLE, "packageUris", "package-needs"),
        (WHOLE, "pythonModule", "package-needs"),
        (TPU, "tpuTopology", "tpu-topology"),
        (RESERVED, "reservationAffinity", "scarce-accelerator"),
        (RESERVED, "reservationAffinityType", "reservation-type"),
        (RESERVED, "key", "reservation-specific"),
        (RESERVED, "values", "reservation-specific"),
        (RIGHT, "studySpec", "study-metrics"),
        (RIGHT, "metrics", "study-metrics"),
        (RIGHT, "goal", "metric-goal"),
        (RIGHT, "metricId", "metric-id"),
        (RIGHT, "parameters", "study-parameters"),
        (RIGHT, "parameterId", "parameter-id"),
        (RIGHT, "doubleValueSpec", "parameter-values"),
        (RIGHT, "minValue", "parameter-range"),
        (RIGHT, "values", "parameter-values"),
        (RIGHT, "parentCategoricalValues", "parameter-condition"),
        (RIGHT, "parameterSpec", "parameter-condition"),
        (RIGHT, "maxTrialCount", "trial-count"),
        (RIGHT, "parallelTrialCount", "trial-count"),
        (RIGHT, "baseOutputDirectory", "trial-output"),
    ],
)
def test_another_mistake_beside_it_hides_no_field_that_is_missing(text, field, rules):
    content = yaml.safe_load(text)
    assert without(content, field)
    found = {rule for rule, _, _ in told(yaml.safe_dump(content, sort_keys=False))}
    assert sorted(found - {"unknown-field"}) == rules.split(", ")
