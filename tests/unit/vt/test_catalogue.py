"""`vt catalogue`: what there is, where, and what it lists for."""

import json

import pytest

from vertex_training_cli import catalogue


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
