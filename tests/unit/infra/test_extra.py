"""A team's own resources: what `extra.py` may be, and what is said of one that is wrong."""

import asyncio

import pulumi
import pytest

from tests.extra_page import EXAMPLE, NOT_LOCAL
from tests.unit.infra.recorder import Recorder, settings
from vertex_training import program
from vertex_training.errors import ConfigError
from vertex_training.extra import load
from vertex_training.stack import with_packages


def write(root, text, name="extra.py"):
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return root


def messages(root):
    return "\n".join(map(str, load(root).problems))


def deployed(root):
    """What a stack with this `extra.py` registers, also if it raises; and the mistakes."""
    recorder = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, "vertex-training", "dev")
    config = settings("dev").model_copy(update={"packages": {}, "jobs": {}, "tuning_jobs": {}})
    stack = with_packages(config, root)
    errors = []

    @pulumi.runtime.test
    def run():
        try:
            program.deploy(stack)
        except ConfigError as error:
            errors.append(str(error))

    run()
    return recorder.registered, "".join(errors)


HINT = "Hint: write `def declare(environment: Environment) -> None:` (docs/components.md)"
BAD_IMPORT = "install the package with module no_such_thing, and add it to requirements.txt"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", f"extra.py: module extra has no function declare. {HINT}"),
        ("declare = 3\n", f"extra.py: declare is not a function (got int). {HINT}"),
        (
            "\ndef declare(): ...\n",
            f"extra.py:2: declare must accept one argument (got declare()). {HINT}",
        ),
        (
            "async def declare(e): ...\n",
            f"extra.py:1: declare must not be async or a generator. {HINT}",
        ),
        ("def declare(e)\n", "extra.py:1: import of extra raised SyntaxError: expected ':'."),
        (
            "\n\nimport no_such_thing\n",
            "extra.py:3: import of extra raised ModuleNotFoundError: No module named "
            f"'no_such_thing'. Hint: {BAD_IMPORT}",
        ),
        (
            "def f(): return 1 / 0\nf()\n",
            "extra.py:1: import of extra raised ZeroDivisionError: division by zero. Hint: called "
            "at extra.py:2",
        ),
        (
            "import sys\nsys.exit(0)\n",
            "extra.py:2: import of extra ended the program: sys.exit(0). Hint: raise an exception "
            "with a message instead",
        ),
        (
            "import pulumi\nraise pulumi.RunError('no zone.')\n",
            "extra.py:2: import of extra: no zone.",
        ),
    ],
)
def test_a_mistake_is_one_line_with_the_place_in_the_teams_code(tmp_path, text, message):
    assert messages(write(tmp_path, text)) == message


def test_modules_without_a_package_and_two_places_are_mistakes(tmp_path):
    write(tmp_path, "", "extra/red.py")
    assert messages(tmp_path) == (
        "extra: extra/ has modules, but no __init__.py. Hint: add extra/__init__.py with `def "
        "declare(environment)`, or rename the folder"
    )
    write(tmp_path, "", "extra/__init__.py")
    write(tmp_path, "def declare(e): ...\n")
    assert messages(tmp_path) == (
        "extra.py: extra.py and extra/__init__.py both exist. Hint: remove extra.py or "
        "extra/__init__.py"
    )


@pytest.mark.parametrize("name", ["extra.py", "extra", "extra/__init__.py"])
@pytest.mark.parametrize("target", ["nothing", "{itself}"])
def test_a_link_that_leads_nowhere_is_no_missing_file(tmp_path, name, target):
    link = tmp_path / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target.format(itself=link.name))
    [problem] = load(tmp_path).problems
    assert str(problem) == (
        f"{name}: {name} is a symbolic link without a target. "
        "Hint: restore the target or remove the link"
    )


def test_a_folder_is_no_file_of_a_team(tmp_path):
    (tmp_path / "extra.py").mkdir()
    [problem] = load(tmp_path).problems
    assert str(problem) == (
        "extra.py: extra.py is a folder. Hint: rename the folder; a package is extra/__init__.py"
    )


def test_programs_of_the_page_run(tmp_path):
    registered, errors = deployed(write(tmp_path, EXAMPLE + NOT_LOCAL))
    assert errors == ""
    assert registered["reports"][1]["name"] == "acme-ml-dev-reports"
    assert registered["reports-readers"][1]["bucket"] == "acme-ml-dev-reports"
    assert registered["events"][0] == "gcp:pubsub/topic:Topic"


def test_an_output_of_the_program_cannot_be_replaced(tmp_path):
    text = "import pulumi\ndef declare(e):\n    pulumi.export('mine', 1)\n"
    assert deployed(write(tmp_path, text))[1] == ""
    _, errors = deployed(write(tmp_path, text.replace("mine", "buckets")))
    assert errors == (
        "extra.py replaces an output of the program (got buckets). Hint: use another name, "
        "since other stacks and vt read the program's output"
    )
    package = write(tmp_path / "package", text.replace("mine", "buckets"), "extra/__init__.py")
    assert deployed(package)[1].startswith("extra/__init__.py replaces an output")


def test_advice_about_resources_of_other_providers_is_logged_and_jobs_are_our_own(
    tmp_path, monkeypatch
):
    said = []
    monkeypatch.setattr(pulumi.log, "warn", said.append)
    text = (
        "import pulumi\n\n\ndef declare(environment):\n"
        "    pulumi.CustomResource('random:index/randomPet:RandomPet', 'pet')\n"
        "    pulumi.ComponentResource('acme:index:Thing', 'thing')\n"
    )
    deployed(write(tmp_path, text))
    assert [line for line in said if line.startswith("extra")] == [
        "extra: random:index/randomPet:RandomPet: `vt deploy` will refuse a state with this "
        "resource, whose provider is not part of the program. Hint: use resources of gcp, or a "
        "separate Pulumi project (docs/components.md)"
    ]
