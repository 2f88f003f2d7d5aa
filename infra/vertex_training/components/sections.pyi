"""The sections of a stack file as typed dicts, for the arguments of components.

Written by ``python -m tools.generate.component_args`` from ``vertex_training.settings``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict

from pulumi import Input

from vertex_training.settings.section import Section

FLAT: Final[Mapping[type[Section], tuple[str, frozenset[str]]]]
MODELS: Final[Mapping[str, type[Section]]]

def sections_in(annotation: Any) -> list[type[Section]]: ...
def docs_of(section: type[Section]) -> dict[str, str]: ...
def flat_base(section: type[Section]) -> type[Section] | None: ...

class TeamLimitsArgs(TypedDict):
    """Bounds for what is a team's, beside those of the stack. What is absent is not limited."""

    max_usd_per_job: NotRequired[Input[float]]
    """The most a job of the team may cost if it runs until its timeout."""
    max_usd_per_team: NotRequired[Input[float]]
    """The most all jobs of the team may cost together, each once and until its timeout; those with
    a schedule for a month."""
    max_usd_per_month: NotRequired[Input[float]]
    """The most an endpoint of the team may cost a month, all its versions with all their replicas;
    and the most that a job of it with a schedule may."""
    machine_types: NotRequired[Input[Sequence[Input[str]]]]
    """Machine types of its jobs and endpoints; ``n1-*`` stands for all that begin with ``n1-``."""
    strategies: NotRequired[Input[Sequence[Input[Literal["STANDARD", "SPOT", "FLEX_START"]]]]]
    """Strategies its jobs may be scheduled with."""

class TeamArgs(TypedDict):
    """People who share accounts, buckets and secrets of the stack, apart from other teams."""

    submitters: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may submit jobs as the team's accounts, and as no others."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels on what the team owns and on its jobs, beside ``team: NAME``."""
    limits: NotRequired[Input[TeamLimitsArgs]]
    """Bounds for the team's jobs."""

class RetentionArgs(TypedDict):
    """Days in which no user can delete or overwrite an object: https://docs.cloud.google.com/storage/docs/bucket-lock"""

    days: Input[int]
    """Days from an object's creation; at most a hundred years."""
    locked: NotRequired[Input[bool]]
    """Forbid ever shortening or removing it. A lock cannot be undone."""

class BucketArgs(TypedDict):
    """A bucket. Always regional, closed to the public, with uniform access."""

    formerly: NotRequired[Input[str]]
    """The key it was created under, which its name and its place in the state keep."""
    name: NotRequired[Input[str]]
    """Its name in the cloud; ``PROJECT-KEY-STACK`` without it."""
    existing: NotRequired[Input[str]]
    """A bucket that is there: only grants on it are the stack's."""
    project: NotRequired[Input[str]]
    """Project that owns an existing bucket; the stack's own without it."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """IAM members that get a role on it, beside what follows from the accounts."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of its own, beside the stack's and the team's."""
    objects: NotRequired[Input[Mapping[str, Input[str]]]]
    """Objects kept in the bucket: name -> file, or prefix -> folder, in the checkout."""
    versioning: NotRequired[Input[bool]]
    """Keep overwritten and deleted objects as versions."""
    keep_noncurrent_days: NotRequired[Input[int]]
    """Days an overwritten or deleted version is kept (and paid for)."""
    delete_after_days: NotRequired[Input[int]]
    """Days after which objects are deleted; never if absent."""
    storage_class: NotRequired[Input[Literal["STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"]]]
    """Of new objects. All but STANDARD cost money to read, and for a least time of storage."""
    retention: NotRequired[Input[RetentionArgs]]
    """Days within which nobody can delete or overwrite an object; none without it."""
    soft_delete_days: NotRequired[Input[int]]
    """Days a deleted object can be restored: 0 (off) or 7 to 90."""
    force_destroy: NotRequired[Input[bool]]
    """Allow ``pulumi destroy`` to delete a bucket that still has objects."""
    protect: NotRequired[Input[bool]]
    """Refuse to delete or replace the bucket, and to destroy the stack."""
    team: NotRequired[Input[str]]
    """The team whose accounts alone may name it; every account's without it."""

class ServiceAccountArgs(TypedDict):
    """An account that jobs run as, and its access; every grant is derived from this."""

    formerly: NotRequired[Input[str]]
    """The key it was created under, which its name and its place in the state keep."""
    name: NotRequired[Input[str]]
    """The part of its address before the ``@``; ``KEY-STACK`` without it."""
    existing: NotRequired[Input[str]]
    """The address of an account that is there: only its grants are the stack's."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """IAM members that get a role on the account itself, beside the submitters."""
    roles: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """Project -> roles of the account there. The owners of other projects grant theirs."""
    datasets: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """BigQuery dataset -> roles of the account there, such as ``roles/bigquery.dataViewer``. Owners
    of other projects grant theirs. With any, the account may make read sessions in the stack's
    project; queries take ``roles/bigquery.jobUser`` in ``roles``."""
    reads: NotRequired[Input[Sequence[Input[str]]]]
    """Buckets whose objects it may read."""
    writes: NotRequired[Input[Sequence[Input[str]]]]
    """Buckets whose objects it may read, write and delete."""
    secrets: NotRequired[Input[Sequence[Input[str]]]]
    """Secrets whose value it may read."""
    calls_vertex: NotRequired[Input[bool]]
    """The code calls Vertex AI itself (experiments, model upload, TensorBoard). By a job
    that names no account it then reaches all buckets and datasets of the project."""
    description: NotRequired[Input[str]]
    """Description in the console."""
    team: NotRequired[Input[str]]
    """The team it belongs to."""
    submitters: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may submit jobs as it; the team's without it, or else the stack's."""

class SecretArgs(TypedDict):
    """A secret's container. The value is added outside of this stack and never read here."""

    formerly: NotRequired[Input[str]]
    """The key it was created under, which its name and its place in the state keep."""
    name: NotRequired[Input[str]]
    """Its id in the cloud; ``KEY-STACK`` without it."""
    existing: NotRequired[Input[str]]
    """A secret that is there: only grants on it are the stack's."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """IAM members that get a role on it, beside what follows from the accounts."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of its own, beside the stack's and the team's."""
    description: NotRequired[Input[str]]
    """Description, an annotation of the secret."""
    protect: NotRequired[Input[bool]]
    """Refuse to delete or replace the secret, and to destroy the stack."""
    team: NotRequired[Input[str]]
    """The team whose accounts alone may name it; every account's without it."""

class PackageArgs(TypedDict):
    """Python code below ``jobs/``, turned into a source distribution."""

    path: Input[str]
    """Folder with the code, below the checkout."""

class ImageArgs(TypedDict):
    """An image, pinned by digest: one of the stack's repository, or one from outside.

    ``vt images build`` builds the context and writes the digest; ``vt promote`` copies it to
    another stack."""

    context: NotRequired[Input[str]]
    """Folder with a Dockerfile, below the checkout."""
    dockerfile: NotRequired[Input[str]]
    """The Dockerfile, a path inside of the context."""
    include: NotRequired[Input[Sequence[Input[str]]]]
    """Folders of the checkout that are put into the context, each under its own last name."""
    build_args: NotRequired[Input[Mapping[str, Input[str]]]]
    """Values of the Dockerfile's ARGs. Everybody who can pull the image can read them."""
    target: NotRequired[Input[str]]
    """Stage to build; the last one without it."""
    digest: NotRequired[Input[str]]
    """The image that jobs run, in the stack's repository under the image's name."""
    built_from: NotRequired[Input[str]]
    """Sources of ``digest``, as ``vt images build`` writes them."""
    uri: NotRequired[Input[str]]
    """An image of another repository, by digest."""

class RegistryArgs(TypedDict):
    """The stack's Docker repository."""

    name: NotRequired[Input[str]]
    """Its id in the cloud; ``training-STACK`` without it."""
    existing: NotRequired[Input[str]]
    """A Docker repository that is there: only grants on it are the stack's."""
    members: NotRequired[Input[Mapping[str, Input[Sequence[Input[str]]]]]]
    """IAM members that get a role on it, beside the builders."""
    immutable_tags: NotRequired[Input[bool]]
    """Forbid moving a tag, once pushed."""
    keep_versions: NotRequired[Input[int]]
    """Newest versions of each image that are always kept."""
    scanning: NotRequired[Input[bool]]
    """Scan images for known vulnerabilities; the project's setting applies if absent."""
    delete_untagged_after_days: NotRequired[Input[int]]
    """Days after which a version without a tag is deleted."""
    protect: NotRequired[Input[bool]]
    """Refuse to delete or replace the repository, and to destroy the stack."""

class SubnetArgs(TypedDict):
    """A subnet: the one a network attachment takes addresses from, or for machines of one's own."""

    range: NotRequired[Input[str]]
    """Its addresses. Of an existing subnet: what it has, for the checks."""
    existing: NotRequired[Input[str]]
    """A subnet that is there; without it the stack makes one."""
    private_ip_google_access: NotRequired[Input[bool]]
    """Machines without an external address reach Google's APIs."""

class IpRangeArgs(TypedDict):
    """Addresses that peering sets aside for the machines of jobs: a global address."""

    formerly: NotRequired[Input[str]]
    """The key it was created under, which its name and its place in the state keep."""
    prefix_length: NotRequired[Input[int]]
    """16 has room for 63 parallel jobs with up to 8 nodes each."""
    address: NotRequired[Input[str]]
    """First address; without it, Google chooses."""
    name: NotRequired[Input[str]]
    """Its name in the cloud; ``training-KEY-STACK`` without it."""
    existing: NotRequired[Input[str]]
    """Name of a range that the network's service connection has already."""

class AttachmentArgs(TypedDict):
    """The network attachment that jobs of a Private Service Connect interface use."""

    existing: NotRequired[Input[str]]
    """An attachment that is there; without it the stack makes one."""
    connection_preference: NotRequired[Input[Literal["ACCEPT_AUTOMATIC", "ACCEPT_MANUAL"]]]
    """Automatic or manual acceptance of connections."""

class DnsPeeringArgs(TypedDict):
    """Private names that jobs look up in a network's private zones."""

    domain: Input[str]
    """Ends with a dot: ``corp.example.com.``"""
    target_project: NotRequired[Input[str]]
    """Project of the network with the zones; the stack's network without it."""
    target_network: NotRequired[Input[str]]
    """Network with the zones; the stack's without it."""

class AllowArgs(TypedDict):
    """Traffic of job machines that the network allows, beside that among themselves."""

    formerly: NotRequired[Input[str]]
    """The key it was created under, which its name and its place in the state keep."""
    protocol: NotRequired[Input[Literal["tcp", "udp", "icmp"]]]
    """The protocol."""
    ports: NotRequired[Input[Sequence[Input[str]]]]
    """All of them if none is given."""
    destination_ranges: Input[Sequence[Input[str]]]
    """Destinations, as blocks of addresses."""

class NetworkArgs(TypedDict):
    """Connection of jobs to a network, and the network itself unless it exists.

    ``none``: they do not. ``peering``: Google's network, where jobs run, is peered with it.
    ``psc``: each machine has an interface in it, by way of a network attachment."""

    mode: NotRequired[Input[Literal["none", "peering", "psc"]]]
    """Kind of connection: none, peering, or Private Service Connect."""
    existing: NotRequired[Input[str]]
    """A network that is there; without it the stack makes one."""
    subnet: NotRequired[Input[SubnetArgs]]
    """The subnet that the attachment takes addresses from, or one for machines of one's own."""
    ranges: NotRequired[Input[Mapping[str, Input[IpRangeArgs]]]]
    """Peering: addresses for the machines of jobs, by name."""
    export_custom_routes: NotRequired[Input[bool]]
    """Peering: whether jobs see the network's own routes, for example to on-premises."""
    import_custom_routes: NotRequired[Input[bool]]
    """Peering: whether the network sees the routes of Google's."""
    attachment: NotRequired[Input[AttachmentArgs]]
    """Private Service Connect: the network attachment."""
    dns_peering: NotRequired[Input[Mapping[str, Input[DnsPeeringArgs]]]]
    """Private Service Connect: private names that jobs look up, by a name of one's own."""
    nat: NotRequired[Input[bool]]
    """Cloud NAT for the subnet's machines. Jobs do not use it: see docs/environments.md."""
    allow: NotRequired[Input[Mapping[str, Input[AllowArgs]]]]
    """Allowed traffic of the machines of jobs in the network, by name."""
    avoid: NotRequired[Input[Sequence[Input[str]]]]
    """Addresses used elsewhere, like on-premises, that none of these may overlap."""
    parallel_jobs: NotRequired[Input[int]]
    """Number of the stack's jobs that use the network at once; all of them without it."""

class SharedVpcArgs(TypedDict):
    """The project that owns the network, if that is another one than where jobs run."""

    host_project: Input[str]
    """The project that owns the network."""
    host_project_number: Input[str]
    """Its number."""
    manage_host: NotRequired[Input[bool]]
    """Create the requirements of the host project. If not, the preview lists them."""
    enable_host: NotRequired[Input[bool]]
    """Also turn the project into a host; usually it is one already."""

class LocalSsdsArgs(TypedDict):
    """Local SSDs that are attached to every machine."""

    count: Input[int]
    """Number of them."""
    interface: NotRequired[Input[Literal["NVME", "SCSI"]]]
    """Interface of the disks."""
    disk_size_gb: NotRequired[Input[int]]
    """Size of each, in GB."""

class ReservationFields(TypedDict):
    """Arguments that are fields of ``Reservation``."""

    zone: Input[str]
    """Zone of the machines, in the stack's region."""
    machine_type: Input[str]
    """Machine type, as job files name it."""
    count: Input[int]
    """Number of machines."""
    accelerator_type: NotRequired[Input[str]]
    """For N1 machines. Other machine types have their GPUs in their name."""
    accelerator_count: NotRequired[Input[int]]
    """Accelerators of each N1 machine; 1 if absent."""
    local_ssds: NotRequired[Input[LocalSsdsArgs]]
    """Local SSDs of each machine; none if absent."""
    specific_reservation_required: NotRequired[Input[bool]]
    """Only jobs that name it use it; if not, any job that fits does."""
    share_with: NotRequired[Input[Sequence[Input[str]]]]
    """Other projects that may use it."""
    delete_at_time: NotRequired[Input[str]]
    """Time at which Google deletes it."""
    delete_after_duration: NotRequired[Input[str]]
    """Seconds after its creation when Google deletes it by itself; not with ``deleteAtTime``."""
    name: NotRequired[Input[str]]
    """Its name in the cloud; ``KEY-STACK`` without it."""
    existing: NotRequired[Input[str]]
    """A reservation that is there. Its ``serviceShareType`` must be ``ALLOW_ALL``."""
    parallel_jobs: NotRequired[Input[int]]
    """Number of the stack's jobs that use it at once; all of them without it."""
    protect: NotRequired[Input[bool]]
    """Refuse to delete or replace it, and to destroy the stack."""

class ReservationArgs(ReservationFields):
    """Machines that are kept for jobs, and paid for from creation to deletion, used or not."""

    formerly: NotRequired[Input[str]]
    """The key it was created under, which its name and its place in the state keep."""
    project: NotRequired[Input[str]]
    """Project that owns and pays for it; the stack's own without it."""

class EncryptionArgs(TypedDict):
    """A key in Cloud KMS that exists; the stack makes none, for a key can never be deleted."""

    key: Input[str]
    """The key; it is in the stack's region."""
    covers: NotRequired[Input[Sequence[Input[Literal["buckets", "registry", "secrets", "jobs"]]]]]
    """Resources that it encrypts. On an existing repository or secret, it means a new one."""

class LimitsArgs(TypedDict):
    """Bounds of the stack, and of each job and endpoint. What is absent is not limited."""

    max_usd_per_job: NotRequired[Input[float]]
    """The most a job may cost until its timeout (see ``vertex_training.catalog.costs``)."""
    max_usd_per_environment: NotRequired[Input[float]]
    """The most all jobs of the stack, each once and until its timeout, each snapshot's
    ``maxBytesBilled`` on demand, and a month of its schedules and of the reservations that it makes
    may cost together."""
    max_usd_per_month: NotRequired[Input[float]]
    """The most an endpoint may cost a month, all its versions with all their replicas; and the
    most that a job with a schedule may, each slot until its timeout."""
    max_usd_per_month_in_total: NotRequired[Input[float]]
    """The most all endpoints and schedules of the stack may cost a month together."""
    allow_unpriced: NotRequired[Input[bool]]
    """Allow a job or an endpoint without a known price. Its cost cannot be compared with a limit in
    USD, so it is refused if there is one."""
    regions: NotRequired[Input[Sequence[Input[str]]]]
    """Regions the stack may be in."""
    machine_types: NotRequired[Input[Sequence[Input[str]]]]
    """Machine types of jobs and endpoints; ``n1-*`` stands for all that begin with ``n1-``."""
    strategies: NotRequired[Input[Sequence[Input[Literal["STANDARD", "SPOT", "FLEX_START"]]]]]
    """Strategies jobs may be scheduled with."""
    member_domains: NotRequired[Input[Sequence[Input[str]]]]
    """Domains of users and groups, and of accounts of other projects, that may be members, like
    ``example.com`` or ``PROJECT.iam.gserviceaccount.com``; of a pool of identities
    ``workforcePools/ID`` or ``projects/NUMBER``. The stack's own project always may."""

class JobDefaultsArgs(TypedDict):
    """Values for fields that a job file does not have. What a file says always wins."""

    service_account: NotRequired[Input[str]]
    """``serviceAccount``, like ``${serviceAccounts.trainer}``."""
    timeout: NotRequired[Input[str]]
    """``scheduling.timeout``."""
    output_directory: NotRequired[Input[str]]
    """``baseOutputDirectory.outputUriPrefix``, like ``${buckets.out}/${job.requestId}``."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of the request; a label of the file wins over one of the same key."""

class SnapshotArgs(TypedDict):
    """The result of one query in BigQuery, kept as files that never change.

    ``${snapshots.KEY}`` is their folder. The query runs once for each ``run``."""

    formerly: NotRequired[Input[str]]
    """The key it was created under, which its name and its place in the state keep."""
    query: Input[str]
    """File of the checkout with one query of GoogleSQL."""
    parameters: NotRequired[Input[Mapping[str, Input[Any]]]]
    """Values of the query's parameters: ``@day``. Text is STRING; numbers are INT64 or FLOAT64;
    true and false are BOOL."""
    as_of: NotRequired[Input[str]]
    """Time of the tables' state, such as ``2026-11-20T00:00:00Z``: the query reads ``FROM table FOR
    SYSTEM_TIME AS OF @as_of``. BigQuery goes back seven days. Without it, the first ``pulumi up``
    reads the tables as they are then."""
    max_bytes_billed: Input[int]
    """The most bytes that the query may be billed for; the service refuses more, without a
    charge."""
    format: NotRequired[Input[Literal["parquet", "csv"]]]
    """Of the files."""
    bucket: NotRequired[Input[str]]
    """Key of the bucket that keeps them."""
    location: NotRequired[Input[str]]
    """Location of the tables; the stack's region without it."""
    run: NotRequired[Input[int]]
    """Raise it to run an unchanged query once more. Files of earlier runs stay."""

class RungArgs(TypedDict):
    """Differences of one rung from the job file; all else is as in the job file.

    A rung with a ``machineType`` names the whole machine: accelerators of the file are left out. A
    rung uses the reservation that it names, and none without one."""

    strategy: NotRequired[Input[Literal["STANDARD", "SPOT", "FLEX_START"]]]
    """Provisioning of its machines; the job file's without it, STANDARD beside a reservation."""
    max_wait_duration: NotRequired[Input[str]]
    """Longest wait of FLEX_START for machines; ``0s`` is for ever, so no rung would follow."""
    machine_type: NotRequired[Input[str]]
    """Machine type of every pool that has the machine of the first one."""
    accelerator_type: NotRequired[Input[str]]
    """Accelerator of those pools."""
    accelerator_count: NotRequired[Input[int]]
    """Number of them in a machine."""
    reservation: NotRequired[Input[str]]
    """Key in ``reservations``, or ``projects/P/zones/ZONE/reservations/NAME``."""

class TrainedModelArgs(TypedDict):
    """Sizes of the transformer that a job trains, to predict its peak of GPU memory."""

    parameters: Input[int]
    """Number of parameters."""
    layers: Input[int]
    """Number of layers."""
    width: Input[int]
    """Width of the residual stream."""
    vocabulary: Input[int]
    """Number of tokens that it distinguishes."""
    micro_batch: Input[int]
    """Sequences that one GPU computes at once."""
    sequence: Input[int]
    """Tokens of a sequence."""
    optimizer: NotRequired[Input[Literal["adamw", "momentum", "sgd"]]]
    """``momentum`` is SGD with momentum."""
    zero_stage: NotRequired[Input[int]]
    """Parts that all GPUs of the job share: optimizer's state (1), also gradients (2), also weights
    (3)."""
    gradient_checkpointing: NotRequired[Input[bool]]
    """Compute activations again in the backward pass."""

class ScheduleArgs(TypedDict):
    """Repeated submission of a job; ``up`` submits none of it.

    Each slot has one submission at most, with a folder of its own (docs/jobs.md)."""

    cron: Input[str]
    """Five fields of a cron line, like ``0 6 * * 1``: Mondays at 6."""
    time_zone: NotRequired[Input[str]]
    """The zone that it is meant in, like ``Europe/Berlin``."""
    paused: NotRequired[Input[bool]]
    """Stop the schedule for the time being. Slots that pass are not submitted later."""
    missed: NotRequired[Input[Literal["skip", "latest", "all"]]]
    """Treatment of slots that were not submitted in time. ``skip``: one that is an hour late is
    left out. ``latest``: the newest is submitted, however late. ``all``: each is, one after the
    other."""

class StateMessagesArgs(TypedDict):
    """Messages that Batch publishes to a Pub/Sub topic when a job or a task of it changes state.
    Vertex AI has no such messages."""

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
    """States of the job to tell of; every change without it."""
    task_states: NotRequired[
        Input[
            Sequence[
                Input[
                    Literal["PENDING", "ASSIGNED", "RUNNING", "FAILED", "SUCCEEDED", "UNEXECUTED"]
                ]
            ]
        ]
    ]
    """States of its tasks to tell of, each task by itself."""

class JobFields(TypedDict):
    """Arguments that are fields of ``JobOptions``."""

    run: NotRequired[Input[int]]
    """Raise it to submit an unchanged job once more."""
    on_delete: NotRequired[Input[Literal["keep", "delete"]]]
    """Keep or delete the record of an ended job that leaves the stack."""
    backend: NotRequired[Input[Literal["vertex", "batch"]]]
    """The service that runs it: Vertex AI, or Google Batch, which takes no fee (docs/batch.md)."""
    on_change: NotRequired[Input[Literal["cancel", "finish"]]]
    """Treatment of the running job when its request changes; the stack's if absent."""
    wait: NotRequired[Input[Literal["running", "succeeded"]]]
    """State that ``pulumi up`` waits for after it submitted the job; none if absent."""
    deadline: NotRequired[Input[str]]
    """Longest time to wait; an hour if absent. It needs ``wait``."""
    ladder: NotRequired[Input[Sequence[Input[RungArgs]]]]
    """Alternatives, in order, if the service had no machines for the job file's request."""
    idle_stop: NotRequired[Input[str]]
    """Cancel the idle job, like ``5% for 30m``: none of its accelerators was at that or above for
    so long. A waiting ``up`` or ``vt jobs advance`` cancels it. From 10m to 23h30m."""
    model: NotRequired[Input[TrainedModelArgs]]
    """Sizes of the transformer that it trains: checks and reviews compare the predicted peak of GPU
    memory with the accelerator's."""

class JobArgs(JobFields):
    """A file of a job or of a tuning job, and what the stack asks of it."""

    formerly: NotRequired[Input[str]]
    """The key it was created under, which its name and its place in the state keep."""
    file: Input[str]
    """The job file, like ``jobs/titanic.yaml``."""
    schedule: NotRequired[Input[ScheduleArgs]]
    """Times of submission; without it ``pulumi up`` submits the job once."""
    messages: NotRequired[Input[StateMessagesArgs]]
    """Messages of Batch to a topic when the job changes its state; with ``backend: batch``."""

class ServingContainerArgs(TypedDict):
    """The container that answers predictions, by Vertex AI's contract for containers."""

    image: Input[str]
    """An image: ``${images.NAME}``, or one in Artifact Registry, by digest."""
    predict_route: NotRequired[Input[str]]
    """Path of predictions, by POST."""
    health_route: NotRequired[Input[str]]
    """Path that answers 200 once it can serve."""
    port: NotRequired[Input[int]]
    """The port that it listens on."""
    env: NotRequired[Input[Mapping[str, Input[str]]]]
    """Environment variables. Everybody who can see the model can read them."""
    command: NotRequired[Input[Sequence[Input[str]]]]
    """In place of the image's ENTRYPOINT."""
    args: NotRequired[Input[Sequence[Input[str]]]]
    """In place of the image's CMD."""
    deployment_timeout: NotRequired[Input[str]]
    """Longest time to become healthy, at most 7200s; half an hour without it."""

class ModelArgs(TypedDict):
    """A model of the registry: one version for each run of a job that is named."""

    formerly: NotRequired[Input[str]]
    """The key it was created under, which its name and its place in the state keep."""
    job: NotRequired[Input[str]]
    """Key of the job whose artifacts it has; the model's own without it."""
    run: Input[Sequence[Input[int]]]
    """The run of the job, or several: ``[3, 4]``."""
    container: Input[ServingContainerArgs]
    """The container that serves it: an image, or an image with routes, port and environment."""
    artifacts: NotRequired[Input[str]]
    """Folder below the run's output directory; ``model`` is what code has as AIP_MODEL_DIR."""
    files: NotRequired[Input[Sequence[Input[str]]]]
    """Files that the container expects in that folder; a preview refuses a run without them."""
    on_delete: NotRequired[Input[Literal["keep", "delete"]]]
    """Keep or delete versions that leave the stack."""
    team: NotRequired[Input[str]]
    """The team that it belongs to."""

class AcceleratorArgs(TypedDict):
    """Accelerators of each replica."""

    type: Input[str]
    """Their type, as the API spells it."""
    count: NotRequired[Input[int]]
    """Number of accelerators of a replica."""

class ReplicasArgs(TypedDict):
    """Numbers of replicas of each version. All of them are paid for while they are deployed."""

    min: NotRequired[Input[int]]
    """The least, also without any traffic; at least 1."""
    max: NotRequired[Input[int]]
    """The most; ``min`` without it."""

class EndpointArgs(TypedDict):
    """An address for predictions, and the versions of a model that answer them."""

    formerly: NotRequired[Input[str]]
    """The key it was created under, which its name and its place in the state keep."""
    model: NotRequired[Input[str]]
    """Key of the model; the endpoint's own without it."""
    machine: Input[str]
    """Machine type of the replicas."""
    accelerator: NotRequired[Input[AcceleratorArgs]]
    """Accelerators of each replica; none without it."""
    replicas: NotRequired[Input[ReplicasArgs]]
    """Numbers of replicas of each version."""
    account: NotRequired[Input[str]]
    """Key of the service account that the containers act as; Google's own without it."""
    split: Input[Mapping[str, Input[int]]]
    """Share of the traffic by run, like ``{"run 3": 90, "run 4": 10}``; 100 in total. A run with 0
    stays deployed. One that is left out is undeployed once it has no traffic."""
    public: NotRequired[Input[bool]]
    """Reachable from the internet. Without it, it is private where the stack's network
    has mode ``psc``, and public elsewhere."""
    team: NotRequired[Input[str]]
    """The team that owns it."""

class ChannelArgs(TypedDict):
    """A destination of alerts: one of ``email``, ``pubsub`` and ``existing``."""

    email: NotRequired[Input[str]]
    """Address of a person or a group."""
    pubsub: NotRequired[Input[str]]
    """A topic of Pub/Sub that is there."""
    existing: NotRequired[Input[str]]
    """A channel of the project that is there, such as one to Slack or PagerDuty: what has a secret
    is made by hand, so that no state has it."""

class AlertsArgs(TypedDict):
    """Alerts about jobs, of the whole project: no log and no metric of a job has the name of the
    stack that it belongs to."""

    channels: Input[Sequence[Input[str]]]
    """Keys of ``channels``: all of them are told."""
    failed: NotRequired[Input[bool]]
    """Alert on each failed job, once, by the line that Vertex AI logs."""
    gpu_idle_below: NotRequired[Input[str]]
    """Alert if a job's accelerators are idle, like ``5% for 30m``: no replica was above it for so
    long. At most 23h30m."""

class BudgetArgs(TypedDict):
    """An alert on the monthly cost of the project. It stops nothing, and costs reach it up to a day
    late."""

    billing_account: Input[str]
    """The billing account of the project; it must pay in USD."""
    usd_per_month: Input[int]
    """The amount for each calendar month, of all that the project costs."""
    thresholds: NotRequired[Input[Sequence[Input[int]]]]
    """Percent of it at which mail is sent, ascending."""
    channels: NotRequired[Input[Sequence[Input[str]]]]
    """Keys of ``channels`` with an address, or of one to an address that is there: budgets tell
    others nothing. Administrators and users of the billing account are told in any case."""

class DashboardArgs(TypedDict):
    """A page of Cloud Monitoring with charts of all jobs of the project."""

    title: NotRequired[Input[str]]
    """Its title; the stack's name and its key without it."""
    panels: NotRequired[
        Input[
            Sequence[
                Input[
                    Literal["accelerator", "acceleratorMemory", "cpu", "memory", "network", "ends"]
                ]
            ]
        ]
    ]
    """Its charts, in order. ``ends``: lines that Vertex AI logs when jobs begin and end."""

class EnvironmentFields(TypedDict):
    """Arguments that are fields of ``Settings``."""

    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels on everything that can carry some."""
    submitters: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may submit jobs as the stack's accounts that have no team and no submitters
    of their own."""
    deployers: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that run ``pulumi up``, like CI's account: they may act as every account of the
    stack, also those of teams, and use a host's subnet."""
    teams: NotRequired[Input[Mapping[str, Input[TeamArgs]]]]
    """Teams apart from one another, by name."""
    builders: NotRequired[Input[Sequence[Input[str]]]]
    """IAM members that may build the stack's images on Google's machines."""
    buckets: NotRequired[Input[Mapping[str, Input[BucketArgs]]]]
    """Buckets by name."""
    service_accounts: NotRequired[Input[Mapping[str, Input[ServiceAccountArgs]]]]
    """Accounts that jobs run as, by name."""
    secrets: NotRequired[Input[Mapping[str, Input[SecretArgs]]]]
    """Secrets by name: containers alone; values are never kept here."""
    packages: NotRequired[Input[Mapping[str, Input[PackageArgs]]]]
    """Python code below ``jobs/``, by name."""
    images: NotRequired[Input[Mapping[str, Input[ImageArgs]]]]
    """Images of containers, by name."""
    registry: NotRequired[Input[RegistryArgs]]
    """The stack's Docker repository."""
    network: NotRequired[Input[NetworkArgs]]
    """Connection of jobs to a network."""
    shared_vpc: NotRequired[Input[SharedVpcArgs]]
    """The project that owns the network, if it is another one."""
    reservations: NotRequired[Input[Mapping[str, Input[ReservationArgs]]]]
    """Machines that are kept for jobs, by name."""
    tensorboard: NotRequired[Input[str]]
    """Display name of a TensorBoard instance for jobs, which the stack makes, or the full name of
    one that is there: ``projects/P/locations/REGION/tensorboards/ID``."""
    encryption: NotRequired[Input[EncryptionArgs]]
    """A key for what the stack stores; Google's keys encrypt it otherwise."""
    limits: NotRequired[Input[LimitsArgs]]
    """Bounds for the stack and every job."""
    job_defaults: NotRequired[Input[JobDefaultsArgs]]
    """Values that job files may leave out."""
    allowed_secrets: NotRequired[Input[Mapping[str, Input[str]]]]
    """Files that may leave the machine though they look like secrets, or lines of files, as
    ``vt check`` names them (``FILE`` or ``FILE:LINE``): each with a reason."""
    rules: NotRequired[Input[Mapping[str, Input[Literal["error", "warning", "note"]]]]]
    """Levels of rules of job files; an error stays one."""
    on_change: NotRequired[Input[Literal["cancel", "finish"]]]
    """Treatment of a running job when its request changes. A job's ``onChange`` has precedence.
    ``finish``: it ends by itself, and the next ``pulumi up`` submits the changed one."""
    snapshots: NotRequired[Input[Mapping[str, Input[SnapshotArgs]]]]
    """Results of queries in BigQuery that are kept as files, by name."""
    jobs: NotRequired[Input[Mapping[str, Input[JobArgs]]]]
    """Training jobs by name."""
    tuning: NotRequired[Input[Mapping[str, Input[JobArgs]]]]
    """Tuning jobs: each runs many trials of one job."""
    models: NotRequired[Input[Mapping[str, Input[ModelArgs]]]]
    """Models of the registry, by name: versions made of what runs of jobs left."""
    endpoints: NotRequired[Input[Mapping[str, Input[EndpointArgs]]]]
    """Endpoints by name: which versions of a model answer predictions, and with what share."""
    channels: NotRequired[Input[Mapping[str, Input[ChannelArgs]]]]
    """Destinations of alerts and of the budget's mail, by name."""
    alerts: NotRequired[Input[AlertsArgs]]
    """Alerts about jobs, and their channels."""
    budget: NotRequired[Input[BudgetArgs]]
    """Alert on the monthly cost of the project."""
    dashboards: NotRequired[Input[Mapping[str, Input[DashboardArgs]]]]
    """Dashboards of jobs, by name."""
