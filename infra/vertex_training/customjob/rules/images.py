"""Rules for container images: registries, digests, and Google's prebuilt images."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training import catalog
from vertex_training.customjob.rules.job import Job, Pool, pools_of
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, Findings, rule
from vertex_training.errors import Path, nearest

PREBUILT_PAGE: Final = GUIDES + "training/pre-built-containers"
CUSTOM_PAGE: Final = GUIDES + "training/create-custom-container"
#: https://github.com/opencontainers/distribution-spec: [HOST[:PORT]/]PATH[:TAG][@DIGEST]
NAME: Final = re.compile(
    r"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[./]|_{1,2}|-+)[a-z0-9]+)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?\Z"
)
#: Google's registries, the minimum number of parts in an image name, and its form.
PARTS: Final = (
    (re.compile(r"[a-z0-9-]+-docker\.pkg\.dev(/|\Z)"), 4, "HOST/PROJECT/REPOSITORY/NAME:TAG"),
    (re.compile(r"([a-z]+\.)?gcr\.io(/|\Z)"), 3, "HOST/PROJECT/NAME:TAG"),
)
SHELL_VARIABLE: Final = re.compile(r"\$\{?[A-Za-z_]\w*\}?")
MAX_NAME: Final = 1000
PREBUILT: Final = re.compile(
    r"(us|europe|asia)-docker\.pkg\.dev/vertex-ai/training/[a-z0-9.-]+(:.+)?\Z"
)
#: The former registry of prebuilt images, which old job files still name.
LEGACY: Final = re.compile(
    r"((us|eu|asia)\.)?gcr\.io/cloud-aiplatform/training/([a-z0-9.-]+)(:.+)?\Z"
)
#: Frameworks of prebuilt training images.
FRAMEWORKS: Final = ("tf", "pytorch", "sklearn", "scikit", "xgboost", "ray", "reductionserver")
#: Devices in the names of prebuilt images: ``scikit-learn-cpu.0-23``.
DEVICES: Final = ("cpu", "gpu", "tpu", "xla")
#: Framework and version in the name of a prebuilt image, like ``tf-cpu.2-17.py310``.
VERSION: Final = re.compile(r"([a-z]+)-[a-z]+\.([0-9]+)-([0-9]+)(?:\.|\Z)")
#: Google's own repositories, to which users cannot push.
GOOGLES: Final = re.compile(
    r"[a-z0-9-]+-docker\.pkg\.dev/(vertex-ai|vertex-ai-restricted|deeplearning-platform-release)/"
    r"|([a-z]+\.)?gcr\.io/(cloud-aiplatform|deeplearning-platform-release|google\.com/[a-z]+)/"
)


#: Registries that require a login, which a job cannot provide.
FOREIGN: Final = re.compile(
    r"\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/|[a-z0-9]+\.azurecr\.io/|ghcr\.io/"
    r"|registry\.gitlab\.com/|docker\.pkg\.github\.com/"
)
#: Container Registry, in any multi-region.
REGISTRY: Final = re.compile(r"([a-z]+\.)?gcr\.io/")


def _images(job: Job, *, named: bool = True) -> Iterator[tuple[Pool, str, Path]]:
    """Yield each image (with ``named``, each image with a valid name), its pool and its path."""
    for pool in job.pools:
        if pool.image and (_is_name(pool.image) or not named):
            yield pool, pool.image, (*pool.task_path, pool.image_field)


def _is_name(image: str) -> bool:
    return len(image) <= MAX_NAME and NAME.match(image) is not None


@rule("container-image", TYPES + "custom_job.py", of=pools_of)
def container_image(pool: Pool) -> Findings:
    """Check that a containerSpec has an imageUri."""
    if pool.task_name == "containerSpec" and not pool.image:
        hint = "write imageUri: ${images.NAME}"
        yield Finding(pool.task_path, "imageUri is missing", "", hint, missing="imageUri")


@rule("image-name", CUSTOM_PAGE)
def image_name(job: Job) -> Findings:
    """Check that an image name has the form HOST/PATH:TAG or HOST/PATH@sha256:DIGEST."""
    for _, image, path in _images(job, named=False):
        if not _is_name(image):
            hint = "write HOST/PATH:TAG in lowercase, without https:// and spaces"
            if SHELL_VARIABLE.search(image):
                hint = "replace the shell variable by its value: imageUri is not expanded"
            elif "@" in image:
                hint = "write the digest as sha256: and 64 hexadecimal digits"
            yield Finding(path, "this is not a valid image name", image, hint)
            continue
        for registry, parts, form in PARTS:
            if registry.match(image) and len(image.split("/")) < parts:
                what = "the image name is too short for this registry"
                yield Finding(path, what, image, f"write {form}")


@rule("image-registry", CUSTOM_PAGE, "warning", of=_images)
def image_registry(pool: Pool, image: str, path: Path) -> Findings:
    """Check that images are in Artifact Registry, from which jobs can pull private images."""
    if legacy := LEGACY.match(image):
        region = {"eu": "europe"}.get(legacy[2], legacy[2] or "us")
        what = "prebuilt images moved from gcr.io/cloud-aiplatform to Artifact Registry"
        hint = f"write {region}-docker.pkg.dev/vertex-ai/training/{legacy[3]}:latest"
        yield Finding(path, what, image, hint)
    elif pool.task_name == "pythonPackageSpec":
        return  # not a prebuilt image: the rule executor-image reports it
    elif FOREIGN.match(image):
        what = "Vertex AI can pull only public images from this registry"
        hint = "copy the image into the stack's registry, and write ${images.NAME}"
        yield Finding(path, what, image, hint)
    elif REGISTRY.match(image) and not GOOGLES.match(image):
        what = "gcr.io serves images only for projects that moved to Artifact Registry"
        hint = "write REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG"
        yield Finding(path, what, image, hint)


@rule("image-pinned", CUSTOM_PAGE, "note", of=_images)
def image_pinned(pool: Pool, image: str, path: Path) -> Findings:
    """Check that your own image has a digest or a tag other than latest."""
    last = image.rsplit("/", 1)[-1]
    moving = last.endswith(":latest") or (":" not in last and "@" not in last)
    reported = REGISTRY.match(image) or pool.task_name == "pythonPackageSpec"
    if moving and not GOOGLES.match(image) and not reported:
        what = "the image is not pinned: another image may get this name"
        hint = "write ${images.NAME}, which the stack file pins by digest"
        yield Finding(path, what, image, hint)


@rule("executor-image", TYPES + "custom_job.py", of=_images)
def executor_image(pool: Pool, image: str, path: Path) -> Findings:
    """Check that a Python package runs in one of Google's prebuilt training images."""
    prebuilt = PREBUILT.match(image) or LEGACY.match(image)
    if pool.task_name == "pythonPackageSpec" and not prebuilt:
        hint = "write us-docker.pkg.dev/vertex-ai/training/NAME:latest, or use containerSpec"
        yield Finding(path, "a Python package requires a prebuilt training image", image, hint)


@rule("prebuilt-tag", PREBUILT_PAGE, of=_images)
def prebuilt_tag(_pool: Pool, image: str, path: Path) -> Findings:
    """Check that a prebuilt image has the tag :latest."""
    if PREBUILT.match(image) and not image.endswith(":latest"):
        name = image.rsplit(":", 1)[0]
        what = "a prebuilt image must have the tag :latest"
        yield Finding(path, what, image, f"write {name}:latest")


@rule("prebuilt-name", PREBUILT_PAGE, "warning", of=_images)
def prebuilt_name(_pool: Pool, image: str, path: Path) -> Findings:
    """Check that a prebuilt image has one of Google's names: PyTorch 2.x on CPUs is pytorch-xla."""
    short, hint = _short(image), ""
    if not PREBUILT.match(image):
        return
    framework, device = short.partition("-")[0], short.partition(".")[0].rpartition("-")[2]
    if short.startswith("pytorch-cpu.2-"):
        hint = f"write {short.replace('pytorch-cpu', 'pytorch-xla')}"
    elif framework not in FRAMEWORKS and (meant := nearest(framework, FRAMEWORKS)):
        hint = f"did you mean '{short.replace(framework, meant, 1)}'?"
    elif device not in DEVICES and (meant := nearest(device, DEVICES)):
        hint = f"did you mean '{short.replace(f'-{device}.', f'-{meant}.', 1)}'?"
    if hint:
        yield Finding(path, "this prebuilt image does not exist", short, hint)


@rule("image-age", PREBUILT_PAGE, "warning")
def image_age(job: Job) -> Findings:
    """Check that a prebuilt image is still available; add a note if its framework has no image."""
    rows = catalog.load("training_images.yaml")
    ended = [row for row in rows if row["available_until"] < job.context.date]
    served = {row["framework"] for row in rows if row not in ended}
    for _, image, path in _images(job):
        if not (PREBUILT.match(image) or LEGACY.match(image)):
            continue
        short = _short(image)
        same = [row for row in ended if re.fullmatch(row["pattern"], short)][:1]
        for row in same or [row for row in ended if _is_older(short, row)][-1:]:
            which = "this prebuilt image" if same else "a newer image than this image"
            what = f"support of {which} ended on {row['available_until']}"
            level = None if row["framework"] in served else "note"
            yield Finding(path, what, short, "build your own image", level=level)


def _is_older(name: str, row: Mapping[str, Any]) -> bool:
    version = VERSION.match(name)
    if version is None or version[1] != row["framework"]:
        return False
    return [int(version[2]), int(version[3])] < row["version"]


def _short(image: str) -> str:
    return image.rsplit("/", 1)[-1].split(":")[0]
