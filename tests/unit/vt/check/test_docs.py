"""What the documentation shows is what happens."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[4] / "docs" / "job-files.md").read_text()


def test_every_reference_of_a_stack_is_listed():
    from vertex_training_cli.check import placeholders

    listed = set(re.findall(r"\$\{([A-Za-z]+)\.", PAGE)) | {"job"}
    assert set(placeholders.KEYED) <= listed
