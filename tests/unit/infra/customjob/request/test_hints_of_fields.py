"""A field that does not exist gets the right neighbour, or none."""

from __future__ import annotations

import pytest

from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.request import hints
from vertex_training.errors import Mend


@pytest.mark.parametrize(
    ("field", "message", "hint"),
    [
        ("replicas", "WorkerPoolSpec", "did you mean 'replicaCount'?"),
        ("imageUrl", "ContainerSpec", "did you mean 'imageUri'?"),
        ("timeOut", "Scheduling", "did you mean 'timeout'?"),
        ("spotInstances", "Scheduling", "write scheduling.strategy: SPOT in jobSpec"),
        ("maxRunTime", "CustomJobSpec", "write scheduling.timeout"),
        ("workingDir", "ContainerSpec", "there is none"),
        ("acceleratorTypes", "WorkerPoolSpec", "did you mean 'acceleratorType'? It belongs to"),
        # These resemble fields of quite other places, and were never meant to be those.
        ("user", "ContainerSpec", "known here: args, command, env, imageUri"),
        ("gracePeriod", "Scheduling", "known here: disableRetries"),
        ("healthCheck", "WorkerPoolSpec", "known here: containerSpec"),
        # What the service fills in is no field to write.
        ("createTme", "CustomJob", "known here: displayName, encryptionSpec, jobSpec, labels"),
    ],
)
def test_a_field_that_does_not_exist_gets_the_right_neighbour_or_none(
    field: str, message: str, hint: str
) -> None:
    rule, said = hints.not_a_field(field, field, message, CUSTOM_JOB)
    assert rule == "unknown-field"
    assert said.startswith(hint)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("86400", "86400s"),
        ("24h", "86400s"),
        ("90m", "5400s"),
        ("7d", "604800s"),
        ("0", "0s"),
        ("9" * 12, f"{'9' * 12}s"),
        ("9" * 13, None),
        ("1w", None),
        ("1.5h", None),
        ("-1h", None),
        ("24hours", None),
        ("", None),
    ],
)
def test_a_duration_that_is_meant_is_told_in_seconds(text: str, seconds: str | None) -> None:
    assert hints.seconds(text) == seconds
    told = f'write "{seconds}"' if seconds else 'seconds with an s, as text: "3600s"'
    assert hints.not_a_duration(text) == told


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("1e3", 1000), ("1E+3", 1000), ("4.0", 4), ("2.50e1", 25), ("1", 1)),
        *((text, None) for text in ("1.5", "1e-3", "1e10", "-1.0", "", "x", "1" * 10, "1.")),
    ],
)
def test_a_whole_number_that_is_meant_is_told_plainly(text: str, number: int | None) -> None:
    assert hints.whole_number(text) == number
    told = "digits alone, like 4" if number is None else f"write {number}"
    assert hints.not_whole(text) == told


ACCELERATORS = ["ACCELERATOR_TYPE_UNSPECIFIED", "NVIDIA_TESLA_A100", "NVIDIA_L4", "TPU_V2"]
STRATEGIES = ["STRATEGY_UNSPECIFIED", "STANDARD", "SPOT"]


@pytest.mark.parametrize(
    ("text", "values", "hint", "mend"),
    [
        ("nvidia-l4", ACCELERATORS, "did you mean 'NVIDIA_L4'?", Mend("value", "NVIDIA_L4")),
        (
            "NVIDIA_A100_40GB",
            ACCELERATORS,
            "write NVIDIA_TESLA_A100",
            Mend("value", "NVIDIA_TESLA_A100", guessed=True),
        ),
        ("preemptible", STRATEGIES, "write SPOT", Mend("value", "SPOT", guessed=True)),
        # It means something here, but no value of this field.
        ("preemptible", ACCELERATORS, None, None),
        ("Spot", STRATEGIES, "did you mean 'SPOT'?", Mend("value", "SPOT")),
        ("whenever", STRATEGIES, "known here: SPOT, STANDARD", None),
        *(
            (text, ACCELERATORS, "machineType and tpuTopology alone name a TPU since v5e", None)
            for text in ("TPU_V5E", "tpu-v5litepod", "TPU_V5P", "TPUV6E", "TPU_V7", "TPU7X")
        ),
        ("TPU_V5E", STRATEGIES, "known here: SPOT, STANDARD", None),
    ],
)
def test_a_value_that_is_none_of_an_enum(
    text: str, values: list[str], hint: str | None, mend: Mend | None
) -> None:
    said = hints.not_a_value(text, values)
    assert said.startswith(hint) if hint else "write" not in said
    assert hints.mend_of_value(text, values) == mend


@pytest.mark.parametrize(
    ("key", "message", "field"),
    [
        ("serviceaccount", "CustomJobSpec", "serviceAccount"),
        ("service-account", "CustomJobSpec", "serviceAccount"),
        ("machinType", "MachineSpec", "machineType"),
        # Two are near, and it is one of them.
        ("Experiment", "CustomJobSpec", "experiment"),
        # Near, and at home elsewhere; near to two; not near enough; has a hint of its own.
        ("machinType", "WorkerPoolSpec", None),
        ("acceleratorTyp", "WorkerPoolSpec", None),
        ("replicas", "WorkerPoolSpec", None),
        ("maxWait", "Scheduling", None),
        ("tpuTopo", "MachineSpec", None),
        ("gpuType", "MachineSpec", None),
        # What the service fills in is no field to write.
        ("State", "CustomJob", None),
    ],
)
def test_only_a_certain_field_is_put_in_place_of_another(
    key: str, message: str, field: str | None
) -> None:
    assert hints.certain_field(key, message, CUSTOM_JOB) == field


#: Where fields of a custom job's spec belong.
SPEC = "jobSpec (the top level in gcloud's form)"


@pytest.mark.parametrize(
    ("field", "message", "kind", "hint"),
    [
        ("env", "WorkerPoolSpec", CUSTOM_JOB, "containerSpec or pythonPackageSpec"),
        ("labels", "CustomJobSpec", CUSTOM_JOB, "the top level, beside jobSpec"),
        ("goal", "StudySpec", TUNING_JOB, "an item of studySpec.metrics"),
        ("scheduling", "StudySpec", TUNING_JOB, "trialJobSpec"),
        ("timeout", "CustomJobSpec", CUSTOM_JOB, "scheduling"),
        ("diskSpec", "CustomJobSpec", CUSTOM_JOB, "a worker pool"),
        ("workerPoolSpecs", "CustomJob", CUSTOM_JOB, SPEC),
        ("machineType", "CustomJob", CUSTOM_JOB, "machineSpec"),
        ("imageUri", "CustomJob", CUSTOM_JOB, "containerSpec"),
        ("executorImageUri", "CustomJob", CUSTOM_JOB, "pythonPackageSpec"),
        ("bootDiskType", "CustomJob", CUSTOM_JOB, "diskSpec"),
        ("reservationAffinityType", "CustomJob", CUSTOM_JOB, "machineSpec.reservationAffinity"),
        ("outputUriPrefix", "CustomJob", CUSTOM_JOB, "baseOutputDirectory"),
        ("networkAttachment", "CustomJob", CUSTOM_JOB, "pscInterfaceConfig"),
        ("domain", "CustomJob", CUSTOM_JOB, "an item of pscInterfaceConfig.dnsPeeringConfigs"),
        ("server", "CustomJob", CUSTOM_JOB, "an item of nfsMounts"),
        ("instanceIp", "CustomJob", CUSTOM_JOB, "an item of lustreMounts"),
        ("value", "ContainerSpec", CUSTOM_JOB, "an item of env"),
        ("parallelTrialCount", "StudySpec", TUNING_JOB, "the top level, beside studySpec"),
        ("decayCurveStoppingSpec", "CustomJobSpec", TUNING_JOB, "studySpec"),
        ("safetyThreshold", "StudySpec", TUNING_JOB, "safetyConfig of a metric"),
        ("doubleValueSpec", "StudySpec", TUNING_JOB, "an item of studySpec.parameters"),
        ("minValue", "StudySpec", TUNING_JOB, "doubleValueSpec or integerValueSpec"),
        ("values", "StudySpec", TUNING_JOB, "categoricalValueSpec or discreteValueSpec"),
        ("parentDiscreteValues", "StudySpec", TUNING_JOB, "an item of conditionalParameterSpecs"),
        ("shouldStopAsap", "StudySpec", TUNING_JOB, "studySpec.studyStoppingConfig"),
    ],
)
def test_a_field_of_another_place_is_told_where_it_belongs(
    field: str, message: str, kind: JobKind, hint: str
) -> None:
    here = hints.places(kind)[message]
    rule, said = hints.not_a_field(field, field, message, kind)
    assert (rule, said) == ("misplaced-field", f"it belongs to {hint}, not to {here}")


@pytest.mark.parametrize(
    ("message", "here"),
    [
        ("CustomJob", "the top level, beside jobSpec"),
        ("CustomJobSpec", SPEC),
        ("WorkerPoolSpec", "a worker pool"),
        ("EnvVar", "an item of env"),
        ("MachineSpec", "machineSpec"),
        ("ContainerSpec", "containerSpec"),
        ("PythonPackageSpec", "pythonPackageSpec"),
        ("DiskSpec", "diskSpec"),
        ("ReservationAffinity", "machineSpec.reservationAffinity"),
        ("GcsDestination", "baseOutputDirectory"),
        ("EncryptionSpec", "encryptionSpec"),
        ("PscInterfaceConfig", "pscInterfaceConfig"),
        ("DnsPeeringConfig", "an item of pscInterfaceConfig.dnsPeeringConfigs"),
        ("NfsMount", "an item of nfsMounts"),
        ("LustreMount", "an item of lustreMounts"),
    ],
)
def test_a_misplaced_field_is_told_where_it_stands(message: str, here: str) -> None:
    said = ("misplaced-field", f"it belongs to scheduling, not to {here}")
    assert hints.not_a_field("timeout", "timeout", message, CUSTOM_JOB) == said


@pytest.mark.parametrize(
    ("fields", "other"),
    [
        *(([field], "TrainingPipeline") for field in (
            "trainingTaskDefinition", "trainingTaskInputs", "modelToUpload")),
        *((["displayName", field], "PipelineJob") for field in (
            "pipelineSpec", "pipelineInfo", "runtimeConfig", "deploymentSpec")),
        (["trainingInput"], "job of AI Platform Training"),
        (["apiVersion"], "Kubernetes resource"),
        (["taskGroups"], "job of Google Batch"),
        (["allocationPolicy"], "job of Google Batch"),
        (["displayName", "jobSpec"], ""),
        *(([field], "stack file of Pulumi") for field in (
            "secretsprovider", "encryptionsalt", "encryptedkey")),
        (["name", "config", "runtime"], "project file of Pulumi"),
        *(([field], "") for field in ("config", "name", "runtime")),
        *((["name", "runtime", "encryptionsalt", field], "") for field in (
            "jobSpec", "trialJobSpec", "workerPoolSpecs", "studySpec", "labels")),
    ],
)  # fmt: skip
def test_a_file_of_another_resource_is_known_by_its_fields(fields: list[str], other: str) -> None:
    assert hints.other_resource(fields) == other
    assert not other or hints.OTHER_HINTS[other]


@pytest.mark.parametrize(
    ("fields", "config", "other"),
    [
        (["config"], ["a", "gcp:project"], "stack file of Pulumi"),
        (["config"], ["a"], ""),
        (["config", "workerPoolSpecs"], ["gcp:project"], ""),
        (["config", "name", "runtime"], ["gcp:project"], "project file of Pulumi"),
    ],
)
def test_a_stack_file_is_known_by_the_namespaces_of_its_config(
    fields: list[str], config: list[str], other: str
) -> None:
    assert hints.other_resource(fields, config=config) == other


@pytest.mark.parametrize("spec", ["jobSpec", "trialJobSpec", "workerPoolSpecs", "studySpec"])
def test_a_spec_says_more_than_the_name_of_a_file(spec: str) -> None:
    assert hints.other_resource(["labels", spec], "jobs/Pulumi.foo.yaml") == ""


@pytest.mark.parametrize(
    ("file", "other", "stack"),
    [
        ("a/Pulumi.dev.yaml", "stack file of Pulumi", "dev"),
        ("Pulumi.eu.west.yaml", "stack file of Pulumi", "eu.west"),
        ("Pulumi.yaml", "project file of Pulumi", "STACK"),
        ("myPulumi.dev.yaml", "", ""),
        ("Pulumi.dev/job.yaml", "", ""),
    ],
)
def test_a_file_of_the_engine_is_known_by_its_name(file: str, other: str, stack: str) -> None:
    assert hints.other_resource(["labels"], file) == other
    assert not other or f"--stack {stack}`" in hints.hint_of_other(other, file)


def test_what_yaml_made_of_text_is_told_with_quotes() -> None:
    assert hints.not_text(False, "no") == 'YAML reads it as false; quote it: "no"'
    assert hints.not_text(1342, "22:22") == 'YAML reads it as 1342; quote it: "22:22"'
    assert hints.not_text(10**45, "1_0") == f'YAML reads it as 1{"0" * 39}; quote it: "1_0"'
