"""Which tests ``make quick`` chooses: those that import what changed, the nearest first."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tools import quick

FILES = {
    "infra/product/__init__.py": "",
    "infra/product/price.py": "RATE = 2\n",
    "infra/product/bill.py": "from product.price import RATE\n",
    "infra/product/lazy.py": 'TABLE = {"bill": "product.bill:main"}\n',
    "infra/product/types.py": "if TYPE_CHECKING:\n    from product.price import RATE\n",
    "infra/product/table.py": 'open("rates.yaml")\n',
    "infra/product/rates.yaml": "",
    "tests/unit/test_price.py": "from product import price\n",
    "tests/unit/test_bill.py": "def test_it():\n    from product.bill import RATE\n",
    "tests/unit/test_lazy.py": "import product.lazy\n",
    "tests/unit/test_types.py": "import product.types\n",
    "tests/unit/rated/conftest.py": "from product import table\n",
    "tests/unit/rated/test_rated.py": "",
    "tests/e2e/test_all.py": "from product import price\n",
    "tests/golden/test_inventories.py": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_data_counts_as_the_modules_that_name_it(tree: Path) -> None:
    chosen = quick.select(tree, FILES, ["infra/product/rates.yaml"])
    assert chosen == ["tests/unit/rated/test_rated.py", "tests/golden/test_inventories.py"]


def test_a_changed_test_is_chosen_and_a_removed_one_is_not(tree: Path) -> None:
    changed = ["tests/unit/test_bill.py", "tests/unit/test_gone.py"]
    assert quick.select(tree, FILES, changed) == ["tests/unit/test_bill.py"]


def test_changes_are_those_since_the_merge_base_and_of_the_working_tree(tree: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *who, *words], cwd=tree, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "first")
    git("checkout", "-qb", "branch")
    git("rm", "-q", "infra/product/types.py")
    git("commit", "-qm", "second")
    (tree / "infra/product/price.py").write_text("RATE = 3\n")
    (tree / "new.py").write_text("")
    changed = ["infra/product/price.py", "infra/product/types.py", "new.py"]
    assert quick.changed_files(tree, "main") == changed


@pytest.mark.parametrize(("ago", "is_over"), [(0, False), (60, False), (80, True)])
def test_no_test_begins_when_the_time_since_the_commands_begin_is_over(
    monkeypatch: pytest.MonkeyPatch, ago: float, is_over: bool
) -> None:
    monkeypatch.setenv(quick.BEGAN, str(time.monotonic() - ago))
    deadline = quick.Deadline()
    if is_over:
        with pytest.raises(pytest.skip.Exception, match="make test"):
            deadline.pytest_runtest_setup()
    else:
        deadline.pytest_runtest_setup()
