"""The library for jobs: node rank and primary from what the service sets, and torchrun."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from vertex_job import cluster, folders, launch
from vertex_job.errors import ClusterError

REPLICAS = Path(__file__).resolve().parents[2] / "fixtures/replicas"
LAYOUTS = sorted(REPLICAS.glob("*.json"))


def environments(layout: Path) -> dict[str, dict[str, str]]:
    """Variables of every replica, as the local cloud sets them (golden files)."""
    seen: dict[str, dict[str, Any]] = json.loads(layout.read_text())
    return {
        name: {key: v if isinstance(v, str) else json.dumps(v) for key, v in variables.items()}
        for name, variables in seen.items()
    }


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda path: path.stem)
def test_ranks_of_all_nodes_are_0_to_n_and_all_name_the_primary(layout: Path) -> None:
    nodes: list[cluster.Cluster] = []
    for name, variables in environments(layout).items():
        if name.startswith(cluster.NODE_POOLS):
            nodes.append(cluster.read_cluster(variables))
        else:
            with pytest.raises(ClusterError, match=f"this replica is {name}, which is no node"):
                cluster.read_cluster(variables)
    assert [node.node_rank for node in nodes] == list(range(len(nodes)))
    assert {node.nodes for node in nodes} == {len(nodes)}
    assert {node.master_address for node in nodes} == {"cmle-training-workerpool0-ab-0"}
    assert len({node.master_port for node in nodes}) == 1
    assert nodes[0].node_rank == 0


def test_without_a_description_there_is_one_node() -> None:
    assert cluster.read_cluster({}) == cluster.Cluster(0, 1, "127.0.0.1", 29500)


def spec(**changed: Any) -> str:
    whole = {
        "cluster": {"workerpool0": ["a:2222"], "workerpool1": ["b:2222"]},
        "task": {"type": "workerpool1", "index": 0},
    }
    return json.dumps({**whole, **changed})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        (spec(cluster=[]), "AttributeError"),
        (spec(cluster={"chief": ["a:2222"]}), "the cluster has unknown pools: chief"),
        (spec(cluster={"workerpool1": ["a:2222"]}), "workerpool0, the primary, has no host"),
        (spec(cluster={"workerpool0": ["a"]}), "'a' is not HOST:PORT"),
        (spec(task={"type": "workerpool1", "index": 1}), "the task workerpool1-1 is not in"),
        (spec(task={"type": "workerpool1"}), "KeyError: 'index'"),
    ],
)
def test_an_unknown_shape_fails_with_what_was_seen(text: str, said: str) -> None:
    with pytest.raises(ClusterError) as failed:
        cluster.read_cluster({"CLUSTER_SPEC": text})
    assert said in str(failed.value)
    assert f"Value: {text}" in str(failed.value)


def test_the_launcher_gives_torchrun_the_node_and_the_program() -> None:
    node = cluster.Cluster(2, 3, "chief", 29501)
    assert launch.torchrun(node, 8, ["train.py", "--lr=1"]) == [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=8", "--nnodes=3",
        "--node-rank=2", "--master-addr=chief", "--master-port=29501", "train.py", "--lr=1",
    ]  # fmt: skip
    alone = launch.torchrun(cluster.Cluster(0, 1, "127.0.0.1", 29500), 1, ["-m", "a.b"])
    assert alone[3:] == ["--nproc-per-node=1", "--standalone", "-m", "a.b"]
    again = launch.torchrun(node, 1, ["t.py"], 3)
    assert again[3:5] == ["--nproc-per-node=1", "--max-restarts=3"]


@pytest.mark.parametrize("argv", [[], ["train.py"], ["--"], ["--processes", "0", "--", "x"]])
def test_the_launcher_refuses_what_it_cannot_start(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        launch.main(argv)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_launcher_reports_an_unknown_shape_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER_SPEC", "{}")
    with pytest.raises(SystemExit, match=r"^error: CLUSTER_SPEC has an unknown form: KeyError"):
        launch.main(["--", "train.py"])


def test_output_folders_are_the_services_or_local_ones() -> None:
    aip = {"AIP_MODEL_DIR": "gs://b/x/model/", "AIP_CHECKPOINT_DIR": "gs://b/x/checkpoints/"}
    assert folders.model_folder(aip) == "gs://b/x/model"
    assert folders.checkpoint_folder(aip) == "gs://b/x/checkpoints"
    assert folders.tensorboard_folder(aip) == "logs"
    assert folders.model_folder({}) == "model"


def test_the_library_loads_the_standard_library_alone() -> None:
    """Of this interpreter, isolated: nothing else can be found."""
    folder = Path(cluster.__file__).parent
    files = [f for f in sorted(folder.glob("[a-z]*.py")) if f.stem not in ("ranks", "states")]
    code = (
        f"import sys; sys.path.insert(0, {str(folder.parent)!r})\n"
        + "\n".join(f"import vertex_job.{f.stem}" for f in files)
        + "\nprint(sorted({m.partition('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)"
        " - {'__main__'}))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['vertex_job']"
