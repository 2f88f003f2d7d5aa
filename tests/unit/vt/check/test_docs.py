"""What the documentation shows is what happens."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[4] / "docs" / "job-files.md").read_text()
EXAMPLE = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1]
CONSOLE = re.search(r"```console\n\$ vt (.*?)\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_is_clean(project, vt):
    (project / "jobs" / "fine-tune.yaml").write_text(EXAMPLE)
    done = vt("check", "jobs/fine-tune.yaml")
    assert (done.exit_code, done.stdout) == (0, "1 file, no mistakes.\n")


def test_the_mistake_is_told_as_shown(project, vt):
    (project / "jobs" / "fine-tune.yaml").write_text(EXAMPLE.replace("10800s", "3h"))
    done = vt(*CONSOLE[1].split())
    assert (done.exit_code, done.stdout) == (1, CONSOLE[2])


def test_every_reference_of_a_stack_is_listed():
    from vertex_training_cli.check import placeholders

    listed = set(re.findall(r"\$\{([A-Za-z]+)\.", PAGE)) | {"job"}
    assert set(placeholders.KEYED) <= listed
