"""Which files of a folder are checked."""

import json

from vertex_training_cli.check import checking


def test_a_folder_means_its_yaml_files_and_json_files_of_jobs(tmp_path):
    (tmp_path / "a.yaml").write_text("{}")
    (tmp_path / "b.json").write_text(json.dumps({"jobSpec": {"workerPoolSpecs": []}}))
    (tmp_path / "c.json").write_text(json.dumps({"worker_pool_specs": []}))
    (tmp_path / "config.json").write_text(json.dumps({"train_batch_size": 8}))
    (tmp_path / "job.schema.json").write_text(json.dumps({"properties": {"jobSpec": {}}}))
    (tmp_path / "train.py").write_text("")
    found = [name.rsplit("/", 1)[-1] for name in checking.files_of([str(tmp_path)])]
    assert found == ["a.yaml", "b.json", "c.json"]


def test_json_that_cannot_be_read_as_text_is_no_job_file(tmp_path):
    (tmp_path / "data.json").write_bytes(bytes(range(256)))
    (tmp_path / "a.yml").write_text("{}")
    assert checking.files_of([str(tmp_path)]) == [str(tmp_path / "a.yml")]
