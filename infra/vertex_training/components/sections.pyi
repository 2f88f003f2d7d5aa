"""The sections of a stack file as typed dicts, for the arguments of components.

Written by ``python -m tools.generate.component_args`` from ``vertex_training.settings``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict

from pulumi import Input

from vertex_training.settings.section import Section

FLAT: Final[Mapping[type[Section], tuple[str, frozenset[str]]]]
MODELS: Final[Mapping[str, type[Section]]]

def docs_of(section: type[Section]) -> dict[str, str]: ...
def flat_base(section: type[Section]) -> type[Section] | None: ...

class TeamLimitsArgs(TypedDict):
    """Limits of a team, in addition to the limits of the stack."""

    max_usd_per_job: NotRequired[Input[float]]
    """Maximum cost of one of the team's jobs, if it runs until its timeout."""
    max_usd_per_team: NotRequired[Input[float]]
    """Maximum total cost of the team's jobs, each until its timeout, and a month of schedules."""
    max_usd_per_month: NotRequired[Input[float]]
    """Maximum monthly cost of one of the team's endpoints, with all versions and replicas, or of
    one of its schedules."""
    machine_types: NotRequired[Input[Sequence[Input[str]]]]
    """Allowed machine types of the team's jobs and endpoints. ``n1-*`` allows all N1 machines."""
    strategies: NotRequired[Input[Sequence[Input[Literal["STANDARD", "SPOT", "FLEX_START"]]]]]
    """Allowed provisioning strategies of the team's jobs."""

class TeamArgs(TypedDict):
    """People who share accounts, buckets and secrets that other teams cannot use."""

    submitters: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may submit jobs as the team's accounts only."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of the team's resources and jobs, in addition to ``team: NAME``."""
    limits: NotRequired[Input[TeamLimitsArgs]]
    """Limits of the team's jobs and endpoints."""

class RetentionArgs(TypedDict):
    """Retention policy of a bucket: no user can delete or overwrite an object in this time.
    https://docs.cloud.google.com/storage/docs/bucket-lock"""

    days: Input[int]
    """Days from an object's creation; at most a hundred years."""
    locked: NotRequired[Input[bool]]
    """Lock the retention policy: no user can shorten or remove it. A lock is irreversible."""

class BucketArgs(TypedDict):
    """A regional bucket with uniform access and without public access."""

    formerly: NotRequired[Input[str]]
    """Key before a rename. The name in the cloud and in the state derive from this key."""
    name: NotRequired[Input[str]]
    """Name in the cloud; default: ``PROJECT-KEY-STACK``."""
    existing: NotRequired[Input[str]]
    """Name of an existing bucket. The stack manages only grants on the bucket."""
    project: NotRequired[Input[str]]
    """Project that owns an existing bucket; default: the stack's project."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Role -> IAM members that get this role on the bucket, in addition to grants to accounts."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of the bucket, in addition to labels of the stack and the team."""
    objects: NotRequired[Input[Mapping[str, Input[str]]]]
    """Objects to upload: object name -> file, or prefix -> folder, of the checkout."""
    versioning: NotRequired[Input[bool]]
    """Keep overwritten and deleted objects as versions."""
    keep_noncurrent_days: NotRequired[Input[int]]
    """Days before an overwritten or deleted version is removed. Until then it costs storage."""
    delete_after_days: NotRequired[Input[int]]
    """Days after which objects are deleted; default: never."""
    storage_class: NotRequired[Input[Literal["STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"]]]
    """Storage class of new objects. Other classes than STANDARD charge for each read, and have a
    minimum storage time."""
    retention: NotRequired[Input[RetentionArgs]]
    """Days in which no user can delete or overwrite an object; default: no retention."""
    soft_delete_days: NotRequired[Input[int]]
    """Days in which a deleted object can be restored: 0 (off) or 7 to 90."""
    force_destroy: NotRequired[Input[bool]]
    """Allow ``pulumi destroy`` to delete the bucket with its objects."""
    protect: NotRequired[Input[bool]]
    """Refuse to delete or replace the bucket, and to destroy the stack."""
    team: NotRequired[Input[str]]
    """Team whose accounts may use the bucket; default: all accounts may."""

class ServiceAccountArgs(TypedDict):
    """A service account that jobs run as, and its access."""

    formerly: NotRequired[Input[str]]
    """Key before a rename. The name in the cloud and in the state derive from this key."""
    name: NotRequired[Input[str]]
    """Part of the address before the ``@``; default: ``KEY-STACK``."""
    existing: NotRequired[Input[str]]
    """Address of an existing account. The stack manages only its grants."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Role -> IAM members that get this role on the account, in addition to submitters."""
    roles: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Project -> roles of the account in this project. The owner of another project must grant
    the roles there."""
    datasets: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """BigQuery dataset -> roles of the account on this dataset, such as
    ``roles/bigquery.dataViewer``. The owner of another project must grant the roles there. With any
    dataset, the account may also create read sessions in the stack's project. Queries require
    ``roles/bigquery.jobUser`` in ``roles``."""
    reads: NotRequired[Input[Sequence[Input[str]]]]
    """Buckets whose objects the account may read."""
    writes: NotRequired[Input[Sequence[Input[str]]]]
    """Buckets whose objects the account may read, write and delete."""
    secrets: NotRequired[Input[Sequence[Input[str]]]]
    """Secrets whose value the account may read."""
    calls_vertex: NotRequired[Input[bool]]
    """Grant the account the right to call Vertex AI (experiments, model upload, TensorBoard). The
    account can then also submit jobs without ``serviceAccount``, which can access all buckets and
    datasets of the project."""
    description: NotRequired[Input[str]]
    """Description in the console."""
    team: NotRequired[Input[str]]
    """Team that owns the account."""
    submitters: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may submit jobs as this account; default: submitters of the team, or of the
    stack if the account has no team."""

class SecretArgs(TypedDict):
    """A secret in Secret Manager. Users add its value outside of the stack."""

    formerly: NotRequired[Input[str]]
    """Key before a rename. The name in the cloud and in the state derive from this key."""
    name: NotRequired[Input[str]]
    """Id in the cloud; default: ``KEY-STACK``."""
    existing: NotRequired[Input[str]]
    """Full name of an existing secret. The stack manages only grants on the secret."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Role -> IAM members that get this role on the secret, in addition to grants to accounts."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of the secret, in addition to labels of the stack and the team."""
    description: NotRequired[Input[str]]
    """Description, stored as an annotation of the secret."""
    protect: NotRequired[Input[bool]]
    """Refuse to delete or replace the secret, and to destroy the stack."""
    team: NotRequired[Input[str]]
    """Team whose accounts may use the secret; default: all accounts may."""

class PackageArgs(TypedDict):
    """Python code below ``jobs/``, which the stack builds into a source distribution."""

    path: Input[str]
    """Folder with the code, relative to the top of the checkout."""

class ImageArgs(TypedDict):
    """A container image with its digest, in the stack's repository or in another repository.

    ``vt images build`` builds the context and writes the digest; ``vt promote`` copies the image
    to another stack."""

    context: NotRequired[Input[str]]
    """Build context: folder with a Dockerfile, relative to the top of the checkout."""
    dockerfile: NotRequired[Input[str]]
    """Dockerfile, as a path inside of the context."""
    include: NotRequired[Input[Sequence[Input[str]]]]
    """Folders of the checkout to add to the context, each under the last part of its path."""
    build_args: NotRequired[Input[Mapping[str, Input[str]]]]
    """Values of the Dockerfile's ARGs. Every user who can pull the image can read them."""
    target: NotRequired[Input[str]]
    """Stage of the Dockerfile to build; default: the last stage."""
    digest: NotRequired[Input[str]]
    """Digest of the image that jobs run, in the stack's repository under the image's name."""
    built_from: NotRequired[Input[str]]
    """Digest of the sources of ``digest``; ``vt images build`` writes this value."""
    uri: NotRequired[Input[str]]
    """URI of an image in another repository, with its digest."""

class RegistryArgs(TypedDict):
    """The stack's Docker repository."""

    name: NotRequired[Input[str]]
    """Id in the cloud; default: ``training-STACK``."""
    existing: NotRequired[Input[str]]
    """Full name of an existing Docker repository. The stack manages only grants on it."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Role -> IAM members that get this role on the repository, in addition to builders."""
    immutable_tags: NotRequired[Input[bool]]
    """Forbid that a pushed tag moves to another image."""
    keep_versions: NotRequired[Input[int]]
    """Number of newest versions of each image that are never deleted."""
    scanning: NotRequired[Input[bool]]
    """Scan images for known vulnerabilities; default: the project's setting."""
    delete_untagged_after_days: NotRequired[Input[int]]
    """Days after which an image version without a tag is deleted."""
    protect: NotRequired[Input[bool]]
    """Refuse to delete or replace the repository, and to destroy the stack."""

class SubnetArgs(TypedDict):
    """Subnet of the network attachment, or of your own machines."""

    range: NotRequired[Input[str]]
    """Address block of the subnet. For an existing subnet, checks use this value."""
    existing: NotRequired[Input[str]]
    """Full name of an existing subnet; default: the stack creates a subnet."""
    private_ip_google_access: NotRequired[Input[bool]]
    """Private Google Access: machines without external address can call Google's APIs."""

class IpRangeArgs(TypedDict):
    """Address range for the machines of jobs in a peered network."""

    formerly: NotRequired[Input[str]]
    """Key before a rename. The name in the cloud and in the state derive from this key."""
    prefix_length: NotRequired[Input[int]]
    """Prefix length of the range. A /16 has room for 63 parallel jobs of up to 8 nodes each."""
    address: NotRequired[Input[str]]
    """First address; default: Google chooses."""
    name: NotRequired[Input[str]]
    """Name in the cloud; default: ``training-KEY-STACK``."""
    existing: NotRequired[Input[str]]
    """Name of an existing range of the network's private services connection."""

class AttachmentArgs(TypedDict):
    """Network attachment of jobs with Private Service Connect interfaces."""

    existing: NotRequired[Input[str]]
    """Full name of an existing attachment; default: the stack creates an attachment."""
    connection_preference: NotRequired[Input[Literal["ACCEPT_AUTOMATIC", "ACCEPT_MANUAL"]]]
    """Acceptance of connections: automatic or manual."""

class DnsPeeringArgs(TypedDict):
    """DNS names that jobs resolve in private zones of a network."""

    domain: Input[str]
    """DNS domain that ends with a dot, like ``corp.example.com.``"""
    target_project: NotRequired[Input[str]]
    """Project of the network with the private zones; default: that of the stack's network."""
    target_network: NotRequired[Input[str]]
    """Name of the network with the private zones; default: the stack's network."""

class AllowArgs(TypedDict):
    """Firewall rule: allowed traffic from job machines to other hosts."""

    formerly: NotRequired[Input[str]]
    """Key before a rename. The name in the cloud and in the state derive from this key."""
    protocol: NotRequired[Input[Literal["tcp", "udp", "icmp"]]]
    """Protocol of the traffic."""
    ports: NotRequired[Input[Sequence[Input[str]]]]
    """Ports or port ranges; default: all ports."""
    destination_ranges: Input[Sequence[Input[str]]]
    """Destination address blocks."""

class NetworkArgs(TypedDict):
    """Network of jobs.

    ``none``: jobs use no network of yours. ``peering``: Google's network, in which jobs run, is
    peered with your network. ``psc``: each job machine has an interface in your network, through a
    network attachment."""

    mode: NotRequired[Input[Literal["none", "peering", "psc"]]]
    """Kind of connection: none, VPC peering, or Private Service Connect interfaces."""
    existing: NotRequired[Input[str]]
    """Full name of an existing network; default: the stack creates a network."""
    subnet: NotRequired[Input[SubnetArgs]]
    """Subnet of the network attachment, or of your own machines."""
    ranges: NotRequired[Input[Mapping[str, Input[IpRangeArgs]]]]
    """Peering: address ranges for the machines of jobs, by name."""
    export_custom_routes: NotRequired[Input[bool]]
    """Peering: export the network's custom routes, for example to on-premises, to jobs."""
    import_custom_routes: NotRequired[Input[bool]]
    """Peering: import custom routes of Google's network."""
    attachment: NotRequired[Input[AttachmentArgs]]
    """Private Service Connect: network attachment of jobs."""
    dns_peering: NotRequired[Input[Mapping[str, Input[DnsPeeringArgs]]]]
    """Private Service Connect: DNS domains that jobs resolve, by a name of your choice."""
    nat: NotRequired[Input[bool]]
    """Cloud NAT for machines in the subnet. Jobs do not use it: see docs/environments.md."""
    allow: NotRequired[Input[Mapping[str, Input[AllowArgs]]]]
    """Allowed traffic from job machines to hosts in the network, by name."""
    avoid: NotRequired[Input[Sequence[Input[str]]]]
    """Address blocks in use elsewhere, like on-premises. No range of the stack may overlap them."""
    parallel_jobs: NotRequired[Input[int]]
    """Maximum number of the stack's jobs in the network at the same time; default: all jobs."""

class SharedVpcArgs(TypedDict):
    """Shared VPC: the project that owns the network, if jobs run in another project."""

    host_project: Input[str]
    """Host project, which owns the network."""
    host_project_number: Input[str]
    """Number of the host project."""
    manage_host: NotRequired[Input[bool]]
    """Create required resources and grants in the host project. With false, previews list them."""
    enable_host: NotRequired[Input[bool]]
    """Enable the project as a Shared VPC host; usually an administrator has done this."""

class LocalSsdsArgs(TypedDict):
    """Local SSDs of each machine."""

    count: Input[int]
    """Number of disks."""
    interface: NotRequired[Input[Literal["NVME", "SCSI"]]]
    """Interface of the disks."""
    disk_size_gb: NotRequired[Input[int]]
    """Size of each disk, in GB."""

class ReservationFields(TypedDict):
    """Arguments from the fields of ``Reservation``."""

    zone: Input[str]
    """Zone of the machines, in the stack's region."""
    machine_type: Input[str]
    """Machine type, as job files name it."""
    count: Input[int]
    """Number of machines."""
    accelerator_type: NotRequired[Input[str]]
    """Accelerator type, only for N1 machines. Other machine types imply their GPUs."""
    accelerator_count: NotRequired[Input[int]]
    """Accelerators of each N1 machine; default: 1."""
    local_ssds: NotRequired[Input[LocalSsdsArgs]]
    """Local SSDs of each machine; default: none."""
    specific_reservation_required: NotRequired[Input[bool]]
    """Restrict the reservation to jobs that name it. With false, every matching job uses it."""
    share_with: NotRequired[Input[Sequence[Input[str]]]]
    """Other projects that may use the reservation."""
    delete_at_time: NotRequired[Input[str]]
    """Time at which Google deletes the reservation."""
    delete_after_duration: NotRequired[Input[str]]
    """Seconds from creation until Google deletes the reservation. Excludes ``deleteAtTime``."""
    name: NotRequired[Input[str]]
    """Name in the cloud; default: ``KEY-STACK``."""
    existing: NotRequired[Input[str]]
    """Full name of an existing reservation, with ``serviceShareType: ALLOW_ALL``."""
    parallel_jobs: NotRequired[Input[int]]
    """Maximum number of the stack's jobs that use the reservation at once; default: all jobs."""
    protect: NotRequired[Input[bool]]
    """Refuse to delete or replace the reservation, and to destroy the stack."""

class ReservationArgs(ReservationFields):
    """Reserved machines for jobs. A reservation costs the same whether used or not."""

    formerly: NotRequired[Input[str]]
    """Key before a rename. The name in the cloud and in the state derive from this key."""
    project: NotRequired[Input[str]]
    """Project that owns the reservation and pays for it; default: the stack's project."""

class EncryptionArgs(TypedDict):
    """An existing Cloud KMS key. The stack creates no keys, since keys can never be deleted."""

    key: Input[str]
    """Full name of the key, in the stack's region."""
    covers: NotRequired[Input[Sequence[Input[Literal["buckets", "registry", "secrets", "jobs"]]]]]
    """Resources that the key encrypts. A later addition of ``registry`` or ``secrets`` replaces
    deployed resources."""

class LimitsArgs(TypedDict):
    """Limits of the stack, its jobs and endpoints. Without a key there is no such limit."""

    max_usd_per_job: NotRequired[Input[float]]
    """Maximum cost of one job, if it runs until its timeout."""
    max_usd_per_environment: NotRequired[Input[float]]
    """Maximum total cost of the stack: each job once until its timeout, a month of each schedule
    and of each reservation that the stack creates, and ``maxBytesBilled`` of each snapshot."""
    max_usd_per_month: NotRequired[Input[float]]
    """Maximum monthly cost of one endpoint, with all versions and replicas, or of one schedule, if
    each job runs until its timeout."""
    max_usd_per_month_in_total: NotRequired[Input[float]]
    """Maximum monthly cost of all endpoints and schedules of the stack together."""
    allow_unpriced: NotRequired[Input[bool]]
    """Allow jobs and endpoints without a known price. Limits in USD count them as 0."""
    regions: NotRequired[Input[Sequence[Input[str]]]]
    """Allowed regions of the stack."""
    machine_types: NotRequired[Input[Sequence[Input[str]]]]
    """Allowed machine types of jobs and endpoints. ``n1-*`` allows all N1 machines."""
    strategies: NotRequired[Input[Sequence[Input[Literal["STANDARD", "SPOT", "FLEX_START"]]]]]
    """Allowed provisioning strategies of jobs."""
    member_domains: NotRequired[Input[Sequence[Input[str]]]]
    """Allowed domains of IAM members: ``example.com`` for users and groups,
    ``PROJECT.iam.gserviceaccount.com`` for accounts of other projects, ``workforcePools/ID`` or
    ``projects/NUMBER`` for pools of identities. The stack's own project is always allowed."""

class JobDefaultsArgs(TypedDict):
    """Default values of job files. Values in a job file take precedence."""

    service_account: NotRequired[Input[str]]
    """Default of ``serviceAccount``, like ``${serviceAccounts.trainer}``."""
    timeout: NotRequired[Input[str]]
    """Default of ``scheduling.timeout``."""
    output_directory: NotRequired[Input[str]]
    """Default of ``baseOutputDirectory.outputUriPrefix``, like
    ``${buckets.out}/${job.requestId}``."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of the request. A job file's label with the same key takes precedence."""

class SnapshotArgs(TypedDict):
    """The result of a BigQuery query, exported to files that never change.

    ``${snapshots.KEY}`` is the folder of the files. The query runs once for each ``run``."""

    formerly: NotRequired[Input[str]]
    """Key before a rename. The name in the cloud and in the state derive from this key."""
    query: Input[str]
    """Path of a file in the checkout with one GoogleSQL query."""
    parameters: NotRequired[Input[Mapping[str, Input[Any]]]]
    """Values of query parameters such as ``@day``. Text is STRING, numbers are INT64 or FLOAT64,
    true and false are BOOL."""
    as_of: NotRequired[Input[str]]
    """Time of the table contents to read, such as ``2026-11-20T00:00:00Z``, at most seven days ago.
    The query must contain ``FROM table FOR SYSTEM_TIME AS OF @as_of``. Default: the time of the
    first ``pulumi up``."""
    max_bytes_billed: Input[int]
    """Maximum bytes billed for the query. BigQuery refuses a larger query, without a charge."""
    format: NotRequired[Input[Literal["parquet", "csv"]]]
    """Format of the files."""
    bucket: NotRequired[Input[str]]
    """Key of the bucket that stores the files."""
    location: NotRequired[Input[str]]
    """Location of the tables; default: the stack's region."""
    run: NotRequired[Input[int]]
    """Number of the run. Increment it to run an unchanged query again. Old files remain."""

class RungArgs(TypedDict):
    """Changes to the job file's request in one rung (alternative) of a ladder.

    A rung with ``machineType`` replaces the whole machine, including the file's accelerators. A
    rung without ``reservation`` uses no reservation."""

    strategy: NotRequired[Input[Literal["STANDARD", "SPOT", "FLEX_START"]]]
    """Provisioning strategy; default: that of the job file, or STANDARD with ``reservation``."""
    max_wait_duration: NotRequired[Input[str]]
    """Maximum wait of FLEX_START for machines. ``0s``: without limit, so no later rung is used."""
    machine_type: NotRequired[Input[str]]
    """Machine type of the first worker pool and of all pools with the same machine."""
    accelerator_type: NotRequired[Input[str]]
    """Accelerator type of these worker pools."""
    accelerator_count: NotRequired[Input[int]]
    """Number of accelerators per machine."""
    reservation: NotRequired[Input[str]]
    """Reservation: key in ``reservations``, or ``projects/P/zones/ZONE/reservations/NAME``."""

class TrainedModelArgs(TypedDict):
    """Sizes of the transformer that a job trains, to predict its peak of GPU memory."""

    parameters: Input[int]
    """Number of parameters."""
    layers: Input[int]
    """Number of layers."""
    width: Input[int]
    """Width of the residual stream."""
    vocabulary: Input[int]
    """Number of different tokens."""
    micro_batch: Input[int]
    """Number of sequences that one GPU processes in one step."""
    sequence: Input[int]
    """Number of tokens in a sequence."""
    optimizer: NotRequired[Input[Literal["adamw", "momentum", "sgd"]]]
    """Optimizer. ``momentum`` is SGD with momentum."""
    zero_stage: NotRequired[Input[int]]
    """ZeRO stage: GPUs share the optimizer's state (1), also gradients (2), also weights (3)."""
    gradient_checkpointing: NotRequired[Input[bool]]
    """Recompute activations in the backward pass, which saves memory."""

class ScheduleArgs(TypedDict):
    """Repeated submission of a job at given times (slots), by ``vt jobs advance``.

    Each slot has at most one submission, with its own output folder (docs/jobs.md)."""

    cron: Input[str]
    """Cron line with five fields, like ``0 6 * * 1`` for Mondays at 6."""
    time_zone: NotRequired[Input[str]]
    """Time zone of the cron line, like ``Europe/Berlin``."""
    paused: NotRequired[Input[bool]]
    """Pause the schedule. Slots in a pause are never submitted."""
    missed: NotRequired[Input[Literal["skip", "latest", "all"]]]
    """Action on slots that were not submitted in time. ``skip``: omit slots that are an hour late.
    ``latest``: submit only the newest slot. ``all``: submit every slot, one after another."""

class StateMessagesArgs(TypedDict):
    """Messages that Batch publishes to a Pub/Sub topic when a job or one of its tasks changes
    state. Vertex AI has no such messages."""

    channel: Input[str]
    """Key of a channel with ``pubsub``."""
    job_states: NotRequired[
        Input[
            Sequence[
                Input[
                    Literal[
                        "QUEUED",
                        "SCHEDULED",
                        "RUNNING",
                        "SUCCEEDED",
                        "FAILED",
                        "DELETION_IN_PROGRESS",
                        "CANCELLATION_IN_PROGRESS",
                        "CANCELLED",
                    ]
                ]
            ]
        ]
    ]
    """Job states to report; default: every change."""
    task_states: NotRequired[
        Input[
            Sequence[
                Input[
                    Literal["PENDING", "ASSIGNED", "RUNNING", "FAILED", "SUCCEEDED", "UNEXECUTED"]
                ]
            ]
        ]
    ]
    """Task states to report, with one message per task."""

class JobFields(TypedDict):
    """Arguments from the fields of ``JobOptions``."""

    run: NotRequired[Input[int]]
    """Number of the run. Increment it to submit an unchanged job again."""
    on_delete: NotRequired[Input[Literal["keep", "delete"]]]
    """Action on the ended job in Vertex AI when its entry in the stack file is removed."""
    backend: NotRequired[Input[Literal["vertex", "batch"]]]
    """Service that runs the job: Vertex AI, or Google Batch, which has no fee (docs/batch.md)."""
    on_change: NotRequired[Input[Literal["cancel", "finish"]]]
    """Action on the running job when its request changes; default: ``onChange`` of the stack."""
    wait: NotRequired[Input[Literal["running", "succeeded"]]]
    """State of the job that ``pulumi up`` waits for after submitting; default: no wait."""
    deadline: NotRequired[Input[str]]
    """Maximum time of the wait that ``wait`` requests; default: an hour."""
    ladder: NotRequired[Input[Sequence[Input[RungArgs]]]]
    """Alternatives, in order, to use if the service has no machines for the job file's request."""
    idle_stop: NotRequired[Input[str]]
    """Condition to cancel the idle job. With ``5% for 30m``, a waiting ``up`` or ``vt jobs
    advance`` cancels the job when every accelerator stays below 5% utilization for 30 minutes. The
    time is from 10m to 23h30m."""
    model: NotRequired[Input[TrainedModelArgs]]
    """Sizes of the transformer that the job trains. Checks and reviews compare the predicted peak
    of GPU memory with the memory of the accelerator."""

class JobArgs(JobFields):
    """A job or tuning job: its job file and its options in this stack."""

    formerly: NotRequired[Input[str]]
    """Key before a rename. The name in the cloud and in the state derive from this key."""
    file: Input[str]
    """Path of the job file, like ``jobs/titanic.yaml``."""
    schedule: NotRequired[Input[ScheduleArgs]]
    """Times at which the job is submitted; default: ``pulumi up`` submits the job once."""
    messages: NotRequired[Input[StateMessagesArgs]]
    """Messages to a Pub/Sub topic when the job changes state. Requires ``backend: batch``."""

class ServingContainerArgs(TypedDict):
    """Container that serves predictions, as Vertex AI requires for custom containers."""

    image: Input[str]
    """Image: ``${images.NAME}``, or the URI of an image in Artifact Registry with its digest."""
    predict_route: NotRequired[Input[str]]
    """Path of prediction requests (POST)."""
    health_route: NotRequired[Input[str]]
    """Path of health checks, which answers 200 when the container is ready."""
    port: NotRequired[Input[int]]
    """Port that the container listens on."""
    env: NotRequired[Input[Mapping[str, Input[str]]]]
    """Environment variables. Every user who can view the model can read them."""
    command: NotRequired[Input[Sequence[Input[str]]]]
    """Command that replaces the image's ENTRYPOINT."""
    args: NotRequired[Input[Sequence[Input[str]]]]
    """Arguments that replace the image's CMD."""
    deployment_timeout: NotRequired[Input[str]]
    """Maximum time until the container is healthy, at most 7200s; default: half an hour."""

class ModelArgs(TypedDict):
    """A model of the Vertex AI registry, with one version for each listed run of a job."""

    formerly: NotRequired[Input[str]]
    """Key before a rename. The name in the cloud and in the state derive from this key."""
    job: NotRequired[Input[str]]
    """Key of the job that trains the model; default: the model's own key."""
    run: Input[Sequence[Input[int]]]
    """Run of the job, or a list of runs like ``[3, 4]``."""
    container: Input[ServingContainerArgs]
    """Serving container: an image, or a mapping with image, routes, port and environment."""
    artifacts: NotRequired[Input[str]]
    """Folder of the artifacts below the run's output directory; ``model`` is AIP_MODEL_DIR."""
    files: NotRequired[Input[Sequence[Input[str]]]]
    """Required files in the artifacts folder. A preview fails if a run lacks one of the files."""
    on_delete: NotRequired[Input[Literal["keep", "delete"]]]
    """Action on a version in Vertex AI when its run is removed from the list: keep or delete."""
    team: NotRequired[Input[str]]
    """Team that owns the model."""

class AcceleratorArgs(TypedDict):
    """Accelerators of each replica."""

    type: Input[str]
    """Accelerator type, as spelled in the API."""
    count: NotRequired[Input[int]]
    """Number of accelerators per replica."""

class ReplicasArgs(TypedDict):
    """Number of replicas of each version. Replicas cost money while they are deployed."""

    min: NotRequired[Input[int]]
    """Minimum number of replicas, also without traffic; at least 1."""
    max: NotRequired[Input[int]]
    """Maximum number of replicas; default: ``min``."""

class EndpointArgs(TypedDict):
    """An endpoint for predictions, and the model versions that it serves."""

    formerly: NotRequired[Input[str]]
    """Key before a rename. The name in the cloud and in the state derive from this key."""
    model: NotRequired[Input[str]]
    """Key of the model; default: the endpoint's own key."""
    machine: Input[str]
    """Machine type of the replicas."""
    accelerator: NotRequired[Input[AcceleratorArgs]]
    """Accelerators of each replica; default: none."""
    replicas: NotRequired[Input[ReplicasArgs]]
    """Number of replicas of each version."""
    account: NotRequired[Input[str]]
    """Key of the service account that the containers run as; default: an account of Google."""
    split: Input[Mapping[str, Input[int]]]
    """Percentage of the traffic by run, like ``{"run 3": 90, "run 4": 10}``; the sum is 100. A run
    with 0 stays deployed. An unlisted run is undeployed when it has no more traffic."""
    public: NotRequired[Input[bool]]
    """Allow access from the internet; default: false with network mode ``psc``, otherwise true."""
    team: NotRequired[Input[str]]
    """Team that owns the endpoint."""

class ChannelArgs(TypedDict):
    """Destination of alerts: exactly one of ``email``, ``pubsub`` and ``existing``."""

    email: NotRequired[Input[str]]
    """E-mail address of a person or group."""
    pubsub: NotRequired[Input[str]]
    """Full name of an existing Pub/Sub topic."""
    existing: NotRequired[Input[str]]
    """Full name of an existing notification channel of the project, for example to Slack or
    PagerDuty. Create channels with a secret by hand, so that no state contains the secret."""

class AlertsArgs(TypedDict):
    """Alerts about all jobs of the project. Logs and metrics of a job do not name its stack."""

    channels: Input[Sequence[Input[str]]]
    """Keys of the channels to notify, from section ``channels``."""
    failed: NotRequired[Input[bool]]
    """Alert once for each failed job, when Vertex AI logs the failure."""
    gpu_idle_below: NotRequired[Input[str]]
    """Alert if all accelerators of a job are idle. With ``5% for 30m``, no replica exceeds 5%
    utilization for 30 minutes. The maximum time is 23h30m."""

class BudgetArgs(TypedDict):
    """Alert on the monthly cost of the project, which may be a day old. A budget stops no job."""

    billing_account: Input[str]
    """Billing account of the project, with currency USD."""
    usd_per_month: Input[int]
    """Budgeted cost of the project for each calendar month, in USD."""
    thresholds: NotRequired[Input[Sequence[Input[int]]]]
    """Percentages of the budget that trigger a notification, ascending."""
    channels: NotRequired[Input[Sequence[Input[str]]]]
    """Keys of channels with ``email``, or with ``existing`` for an e-mail channel; budgets support
    no other kind. Administrators and users of the billing account are always notified."""

class DashboardArgs(TypedDict):
    """Cloud Monitoring dashboard with charts of all jobs of the project."""

    title: NotRequired[Input[str]]
    """Title; default: the stack's name and the dashboard's key."""
    panels: NotRequired[
        Input[
            Sequence[
                Input[
                    Literal["accelerator", "acceleratorMemory", "cpu", "memory", "network", "ends"]
                ]
            ]
        ]
    ]
    """Charts, in order. ``ends``: lines that Vertex AI logs when jobs start and end."""

class EnvironmentFields(TypedDict):
    """Arguments from the fields of ``Settings``."""

    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of all resources that support labels."""
    submitters: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may submit jobs. This list does not apply to accounts with a team or with
    their own ``submitters``."""
    deployers: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that run ``pulumi up``, like CI's account. Deployers may act as every account of
    the stack, including accounts of teams, and may use the subnet of a Shared VPC host project."""
    teams: NotRequired[Input[Mapping[str, Input[TeamArgs]]]]
    """Teams by name. Teams are isolated from each other."""
    builders: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may build the stack's images in Cloud Build."""
    buckets: NotRequired[Input[Mapping[str, Input[BucketArgs]]]]
    """Buckets by name."""
    service_accounts: NotRequired[Input[Mapping[str, Input[ServiceAccountArgs]]]]
    """Service accounts that jobs run as, by name."""
    secrets: NotRequired[Input[Mapping[str, Input[SecretArgs]]]]
    """Secrets in Secret Manager by name, without their values."""
    packages: NotRequired[Input[Mapping[str, Input[PackageArgs]]]]
    """Python packages below ``jobs/``, by name."""
    images: NotRequired[Input[Mapping[str, Input[ImageArgs]]]]
    """Container images by name."""
    registry: NotRequired[Input[RegistryArgs]]
    """The stack's Docker repository."""
    network: NotRequired[Input[NetworkArgs]]
    """Network of jobs."""
    shared_vpc: NotRequired[Input[SharedVpcArgs]]
    """Shared VPC: the project that owns the network, if it differs from the stack's."""
    reservations: NotRequired[Input[Mapping[str, Input[ReservationArgs]]]]
    """Reserved machines for jobs, by name."""
    tensorboard: NotRequired[Input[str]]
    """Display name of a TensorBoard instance that the stack creates for jobs, or full name of an
    existing instance: ``projects/P/locations/REGION/tensorboards/ID``."""
    encryption: NotRequired[Input[EncryptionArgs]]
    """Cloud KMS key that encrypts the stack's data. By default, Google's keys encrypt the data."""
    limits: NotRequired[Input[LimitsArgs]]
    """Limits of the stack and of each job."""
    job_defaults: NotRequired[Input[JobDefaultsArgs]]
    """Default values of job files."""
    allowed_secrets: NotRequired[Input[Mapping[str, Input[str]]]]
    """Files or lines that look like secrets, but may be uploaded. A key is ``FILE`` or
    ``FILE:LINE``, as in the output of ``vt check``. A value is the reason."""
    rules: NotRequired[Input[Mapping[str, Input[Literal["error", "warning", "note"]]]]]
    """Rule of job files -> level. The level of a rule that is an error cannot be lowered."""
    on_change: NotRequired[Input[Literal["cancel", "finish"]]]
    """Effect of a changed request on a running job. ``cancel`` cancels the job. With ``finish``,
    the job ends by itself, and the next ``pulumi up`` submits the changed job. A job's own
    ``onChange`` takes precedence."""
    snapshots: NotRequired[Input[Mapping[str, Input[SnapshotArgs]]]]
    """Results of BigQuery queries, exported to files, by name."""
    jobs: NotRequired[Input[Mapping[str, Input[JobArgs]]]]
    """Training jobs by name."""
    tuning: NotRequired[Input[Mapping[str, Input[JobArgs]]]]
    """Tuning jobs by name. A tuning job runs many trials of a job."""
    models: NotRequired[Input[Mapping[str, Input[ModelArgs]]]]
    """Models of the registry by name. The versions of a model come from runs of a job."""
    endpoints: NotRequired[Input[Mapping[str, Input[EndpointArgs]]]]
    """Endpoints by name. An endpoint splits prediction traffic between versions of a model."""
    channels: NotRequired[Input[Mapping[str, Input[ChannelArgs]]]]
    """Destinations of alerts and budget notifications, by name."""
    alerts: NotRequired[Input[AlertsArgs]]
    """Alerts about jobs."""
    budget: NotRequired[Input[BudgetArgs]]
    """Alert on the monthly cost of the project."""
    dashboards: NotRequired[Input[Mapping[str, Input[DashboardArgs]]]]
    """Dashboards of jobs, by name."""
