"""`vt catalogue`: what there is, where, and what it lists for."""

import json

import pytest

from vertex_training.catalog import machines
from vertex_training_cli import catalogue


def test_every_machine_type_is_shown():
    assert {row.machine.name for row in catalogue.select()} == set(machines.machine_types())


def test_a_part_of_an_accelerators_name_is_enough():
    assert {row.accelerator for row in catalogue.select("l4")} == {"NVIDIA_L4"}
    h100 = {row.accelerator for row in catalogue.select("H100")}
    assert h100 == {"NVIDIA_H100_80GB", "NVIDIA_H100_MEGA_80GB"}
    assert {row.accelerator for row in catalogue.select("A100_80GB")} == {"NVIDIA_A100_80GB"}


def test_a_region_shows_only_what_it_has():
    for row in catalogue.select(region="us-west3"):
        assert "us-west3" in row.machine.regions
        assert not row.accelerator or "us-west3" in machines.accelerators()[row.accelerator].regions


def test_the_table_says_where_and_when_a_price_was_listed(vt):
    done = vt("catalogue", "-a", "H100", "-r", "us-central1")
    assert done.exit_code == 0
    price = machines.machine_type("a3-highgpu-2g").price
    line = next(line for line in done.stdout.splitlines() if "a3-highgpu-2g" in line)
    assert f"{price.on_demand:.2f}" in line
    assert f"{price.region}, {price.date}" in line


def test_a_machine_without_a_listed_price_says_so(vt):
    done = vt("catalogue", "--accelerator", "B200")
    assert "no price" in done.stdout


def test_json_has_prices_with_their_source(vt):
    text = vt("catalogue", "-a", "t4", "-f", "json").stdout
    assert text.startswith('[\n  {\n    "machineType": "n1-')
    [row] = [row for row in json.loads(text) if row["machineType"] == "n1-standard-4"]
    assert row["acceleratorCounts"] == [1, 2, 4]
    assert {"onDemand", "spot", "region", "source", "date"} == set(row["price"])
    assert row["pricePerGpu"]["source"]


def test_an_unknown_accelerator_or_region_exits_2(vt):
    for wrong in (["-a", "H1000"], ["-r", "us-centrl1"]):
        done = vt("catalogue", *wrong)
        assert (done.exit_code, done.stdout) == (2, "")
    assert "did you mean 'us-central1'?" in done.stderr


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_cuts_no_name_and_no_price(monkeypatch, capsys, width):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    catalogue.catalogue("H100", "us-central1")
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= width
    assert "\u2026" not in told
    for row in catalogue.select("H100", "us-central1"):
        assert f"{row.machine.name}: {row.accelerator} (" in told
        price = row.price("us-central1")
        assert f"{price.on_demand:.2f} USD/h" in told if price else "no price" in told
