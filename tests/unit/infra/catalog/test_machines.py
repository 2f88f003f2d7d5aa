import yaml

from vertex_training import catalog
from vertex_training.catalog import machines
from vertex_training.customjob.rules.compute.machines import RETIRED

ROWS = ("machines.yaml", "accelerators.yaml", "regions.yaml")


def rows():
    """Every row of the catalogue, prices included."""

    def inside(value):
        if isinstance(value, dict):
            if "source" in value:
                yield value
            for item in value.values():
                yield from inside(item)
        if isinstance(value, list):
            for item in value:
                yield from inside(item)

    for name in ROWS:
        yield from inside(catalog.load(name))


def test_every_row_has_a_source_that_is_explained_and_a_date():
    sources = catalog.load("sources.yaml")
    found = list(rows())
    assert len(found) > 250
    for row in found:
        assert row["date"]
        assert any(key in sources for key in row["source"])


def test_every_accelerator_of_a_machine_type_is_known():
    for shape in machines.machine_types().values():
        assert set(shape.accelerators) <= set(machines.accelerators())
        assert shape.regions <= machines.regions()
        assert shape.accelerator_required == bool(shape.accelerators) or shape.family == "n1"


def test_a_price_says_for_which_region_and_since_when():
    price = machines.machine_types()["a3-megagpu-8g"].price
    assert price is not None
    assert (price.region, price.date) == ("us-east4", "2026-07-30")
    assert machines.machine_types()["a4-highgpu-8g"].price is None
    assert catalog.load("machines.yaml")["types"]["a4-highgpu-8g"]["price"] == "no price"


def test_families_give_what_their_types_do_not_say():
    shape = machines.machine_types()["a2-highgpu-8g"]
    assert shape.accelerators == {"NVIDIA_TESLA_A100": (8,)}
    assert shape.flex_start
    assert "us-central1" in shape.regions
    assert machines.machine_types()["ct5lp-hightpu-4t"].topologies[0] == "2x2"


def test_the_refresh_script_writes_what_it_was_given():
    from tools.generate.catalogue import Facts

    facts = {
        "sources": {"page": "https://example.com (copy of 2026-01-02)"},
        "generated": "2026-01-03",
        "training_regions": ["us-central1"],
        "accelerators": {"NVIDIA_L4": {"regions": ["us-central1"], "source": "page"}},
        "families": {"g2": {"accelerator_required": True, "source": "page"}},
        "machine_types": [
            {"name": "g2-standard-4", "family": "g2", "source": "page",
             "accelerators": [{"type": "NVIDIA_L4", "counts": [1]}]}
        ],
        "not_supported": [{"name": "c2d", "reason": "no", "source": "page"}],
        "boot_disk": {"types": ["pd-ssd"], "size_gb": {"min": 1, "max": 2}, "source": "page"},
        "vertex_management_fee": {"ratio_over_compute_list": 1.15, "basis": "one"},
    }  # fmt: skip
    facts["sources"]["n1-vertex-price"] = "seen 2026-02-03"
    files = Facts(facts).files()
    row = yaml.safe_load(files["machines.yaml"])["types"]["g2-standard-4"]
    assert row["price"] == "no price"
    assert row["date"] == "2026-01-02"
    assert yaml.safe_load(files["regions.yaml"])[0]["region"] == "us-central1"


def test_the_end_of_an_accelerators_support_is_the_one_that_the_rule_refuses_from():
    found = machines.accelerators()
    ended = {name for name, row in found.items() if "end of support" in row.status}
    assert ended == set(RETIRED)
    assert all(f"end of support {RETIRED[name]}" in found[name].status for name in ended)


def test_an_accelerator_without_a_caution_has_none():
    assert machines.accelerators()["NVIDIA_L4"].status == ""
