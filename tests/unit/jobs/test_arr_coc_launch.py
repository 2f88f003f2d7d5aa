import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "jobs" / "arr_coc"))
import launch

CLUSTER = {
    "workerpool0": ["chief-0:2222"],
    "workerpool1": ["worker-0:2222", "worker-1:2222", "worker-2:2222"],
    "workerpool2": ["reducer-0:2222"],
}


def spec(kind, index):
    return json.dumps({"cluster": CLUSTER, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize(
    ("kind", "index", "rank"),
    [("workerpool0", 0, 0), ("workerpool1", 0, 1), ("workerpool1", 2, 3)],
)
def test_ranks_count_the_nodes_in_order_of_their_pools(kind, index, rank):
    command = launch.torchrun(spec(kind, index), 8, ["train.py"])
    assert f"--node-rank={rank}" in command
    assert "--nnodes=4" in command
    assert "--nproc-per-node=8" in command
    assert "--master-addr=chief-0" in command


def test_one_node_needs_no_cluster():
    command = launch.torchrun("", 8, ["train.py", "--x"])
    assert command == ["torchrun", "--standalone", "--nproc-per-node=8", "train.py", "--x"]


def test_a_reduction_server_is_no_node():
    with pytest.raises(SystemExit, match="workerpool2 is no node"):
        launch.torchrun(spec("workerpool2", 0), 8, ["train.py"])


def test_the_configuration_of_zero_2_is_json_and_reduces_all():
    path = Path(launch.__file__).with_name("zero2.json")
    config = json.loads(path.read_text("utf-8"))
    assert config["zero_optimization"]["stage"] == 2
    assert config["zero_optimization"]["reduce_scatter"] is False
    # 4 nodes with 8 GPUs each
    per_step = config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"]
    assert config["train_batch_size"] == per_step * 32
