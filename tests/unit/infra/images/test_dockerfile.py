"""A Dockerfile that cannot be built, and what a stack file says of images."""

import pytest

from vertex_training.errors import ConfigError
from vertex_training.images import dockerfile
from vertex_training.stack import read_settings, with_packages

DIGEST = "sha256:" + "a" * 64
OTHER = f"europe-docker.pkg.dev/acme-base/shared/torch@{DIGEST}"


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "jobs" / "flash"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("# syntax\nARG V=3\nFROM python:$V\nCOPY train.py /app/\n")
    (folder / "train.py").write_text("print(1)\n")
    return tmp_path


def settings(checkout, **image):
    raw = {
        "stack": "dev",
        "project": "acme-ml-dev",
        "region": "us-central1",
        "projectNumber": "210987654321",
        "images": {"flash": image},
    }
    return read_settings(raw, checkout)


def reference(checkout, **image):
    return with_packages(settings(checkout, **image), checkout).references["images.flash"]


def test_a_reference_is_the_image_by_digest(checkout):
    names = "us-central1-docker.pkg.dev/acme-ml-dev/training-dev/flash"
    assert reference(checkout, context="jobs/flash", digest=DIGEST) == f"{names}@{DIGEST}"
    assert reference(checkout, digest=DIGEST) == f"{names}@{DIGEST}"
    assert reference(checkout, uri=OTHER) == OTHER


def test_a_reference_to_what_was_not_built_says_the_command(checkout):
    unknown = reference(checkout, context="jobs/flash")
    assert unknown.hint == "no image was built of jobs/flash yet: vt images build flash --stack dev"


@pytest.mark.parametrize(
    ("image", "what"),
    [
        ({}, "give context, digest or uri"),
        ({"uri": OTHER, "digest": DIGEST}, "uri is a whole image: remove digest"),
        ({"digest": DIGEST, "target": "x"}, "target is about a context: add context"),
        ({"digest": DIGEST, "builtFrom": "context-" + "0" * 32}, "builtFrom is about a context"),
        ({"uri": "europe-docker.pkg.dev/acme-base/shared/torch:2"}, "must look like REGION-docker"),
        ({"uri": f"docker.io/library/python@{DIGEST}"}, "must look like REGION-docker"),
        ({"context": "jobs/flash", "dockerfile": "../Dockerfile"}, "must look like Dockerfile"),
        ({"context": "jobs/flash", "dockerfile": "Dockerfile/"}, "must look like Dockerfile"),
        ({"context": "jobs/flash/../flash"}, "must look like jobs/titanic"),
        ({"context": "/etc"}, "must look like jobs/titanic"),
        ({"context": "jobs/flash", "dockerfile": "Other"}, "has no Other"),
        ({"context": "jobs/flash", "buildArgs": {"A B": "x"}}, "must look like CUDA_VERSION"),
        ({"context": "jobs/flash", "buildArgs": {"HTTP_PROXY": "x"}}, "is the builder's own"),
        ({"context": "jobs/flash", "buildArgs": {"no_proxy": "x"}}, "is the builder's own"),
        ({"context": "jobs/flash", "buildArgs": {"BUILDKIT_SYNTAX": "x"}}, "is the builder's own"),
        ({"context": "jobs/flash", "tag": "v1"}, "unknown key"),
        ({"digest": DIGEST, "include": ["jobs/lib"]}, "include is about a context"),
        ({"context": "jobs/flash", "include": ["jobs/none"]}, "no such file"),
        ({"context": "jobs/flash", "include": ["jobs/flash/train.py"]}, "is no folder"),
        ({"context": "jobs/flash", "include": ["../other"]}, "must look like jobs/lib"),
        ({"context": "jobs/flash", "include": ["."]}, "must look like jobs/lib"),
        ({"context": "jobs/flash", "include": ["jobs/.git"]}, "must look like jobs/lib"),
    ],
)
def test_what_an_image_may_be(checkout, image, what):
    with pytest.raises(ConfigError) as failed:
        settings(checkout, **image)
    assert what.lower() in str(failed.value).lower()


def test_an_included_folder_that_leads_out_of_the_checkout_is_refused(checkout, tmp_path_factory):
    (checkout / "jobs" / "lib").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(ConfigError, match="lies outside of the checkout"):
        settings(checkout, context="jobs/flash", include=["jobs/lib"])


BASE, NONE = "FROM x\n", ("its Dockerfile has no FROM", "begin with FROM and a base image")


def absent(name: str) -> tuple[str, str]:
    hint = "paths start in the folder; include puts other folders into the context"
    return f"its Dockerfile copies {name}, which is not there", hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FROM x", []),
        ("ARG V\n  from x:$V", []),
        ("", [NONE]),
        ("RUN true\n# FROM x\n", [NONE]),
        ("FROMAGE x", [NONE]),
        ("FROM\nRUN true\n", [NONE]),
        ("# C:\\\nFROM \\\n  # y\n  x\n", []),
        (f"{BASE}COPY\na b\n", []),
        ("COPY a /x", [NONE, absent("a")]),
        (f"{BASE}COPY a b train.py /x\nadd c /x", [absent("a"), absent("b"), absent("c")]),
        (f"{BASE}COPY --chown=1:1 --chmod=755 a /x", [absent("a")]),
        (f"{BASE}COPY train.py \\ \n a \\\n /x", [absent("a")]),
        (f"{BASE}COPY /a /x\nCOPY /train.py /x\nCOPY . /x", [absent("/a")]),
        (f"{BASE}COPY lib/a /lib /x\nCOPY libs/a sub/lib /x", [absent("libs/a"),
                                                              absent("sub/lib")]),
        (f"{BASE}COPY --from=base a /x\n# COPY a /x\nRUN COPY a /x\nCOPY a", []),
        (f'{BASE}COPY ["a", "b", "/x"]', []),
        (f"{BASE}COPY a* b? [cd] $E <<EOF git@e.org:a https://e.org/a /x", []),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_dockerfile_is_told_at_once(checkout, text, said):
    folder = checkout / "jobs" / "flash"
    (folder / "Dockerfile").write_text(text)
    assert list(dockerfile.problems(folder, "Dockerfile", ["lib"])) == said


def test_a_dockerfile_may_have_bytes_that_are_no_text(checkout):
    folder = checkout / "jobs" / "flash"
    (folder / "Dockerfile").write_bytes(b"# \xff\nFROM x\nCOPY a /x\n")
    assert list(dockerfile.problems(folder, "Dockerfile")) == [absent("a")]


def test_a_dockerfile_is_a_file_of_its_folder(checkout):
    folder = checkout / "jobs" / "flash"
    (folder / "Other").mkdir()
    (folder / "Link").symlink_to("Dockerfile")
    (checkout / "Dockerfile").write_text("FROM x\n")
    (folder / "Out").symlink_to("../../Dockerfile")
    hint = "name the folder that holds it, or set dockerfile"
    told = {
        name: list(dockerfile.problems(folder, name)) for name in ("Other", "None", "Link", "Out")
    }
    assert told == {
        "Other": [("has no Other", hint)],
        "None": [("has no None", hint)],
        "Link": [],
        "Out": [("its Out is a link out of the folder", "copy what it leads to")],
    }
    names = ("Dockerfile", "Other", "None", "Link", "Out")
    assert [name for name in names if dockerfile.is_inside(folder, name)] == ["Dockerfile", "Link"]
