"""Paths of included files: below the checkout, without links or tricks. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from vertex_training.settings.section import form

#: The key that names the files.
INCLUDE: Final = "include"
#: Relative, with ``/``, without ``.`` and ``..``, to a YAML file.
FORM: Final = r"(?!\.\.?/)(?!.*/\.\.?/)(?!.*//)[A-Za-z0-9_.@+-][A-Za-z0-9_.@+/-]*\.ya?ml"
IncludePath = Annotated[
    str, form(FORM, "stacks/shared.yaml: a YAML file of the checkout, from its top")
]
_PATH: Final = re.compile(rf"(?:{FORM})\Z")


def numbered_paths(config: Mapping[str, Any], namespace: str) -> list[tuple[int, str]]:
    """Paths of the files that a config includes, with their places in its list.

    Those that have not the form of one are left out: the model reports them.
    """
    given = config.get(f"{namespace}:{INCLUDE}")
    paths = enumerate(given if isinstance(given, list) else [])
    return [(index, path) for index, path in paths if isinstance(path, str) and _PATH.match(path)]
