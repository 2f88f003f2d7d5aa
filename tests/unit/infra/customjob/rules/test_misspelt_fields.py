"""A field that is misspelt, or has no value, is one mistake: its absence is not told as well."""

import pytest

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
