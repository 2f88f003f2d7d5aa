"""The programs of docs/components.md, which tests run as they stand there."""

from __future__ import annotations

import re
from typing import Final

from tests.fixture_project import ROOT

_SECTION: Final = (
    (ROOT / "docs" / "components.md")
    .read_text()
    .partition("\n## Resources beside a stack file\n")[2]
)
_BLOCKS: Final = re.findall(r"```python\n(.*?)```", _SECTION, re.DOTALL)
#: A bucket, and a group that reads it. More lines of ``declare`` can be appended.
EXAMPLE: Final[str] = _BLOCKS[0]
#: Lines of ``declare`` for a type that the local cloud does not have.
NOT_LOCAL: Final[str] = "".join(f"    {line}\n" for line in _BLOCKS[1].splitlines())
