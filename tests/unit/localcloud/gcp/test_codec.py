"""Property values survive the wire."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localgcp.gcp.codec import (
    UNKNOWN,
    Asset,
    Secret,
    decode,
    encode,
    has_secret,
    has_unknown,
    plain,
    stored,
)

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text().filter(lambda text: "04da6b54" not in text)
    | st.just(UNKNOWN)
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        | inner.filter(lambda value: not isinstance(value, Secret)).map(Secret)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=4))
def test_what_is_encoded_is_decoded_unchanged(properties: dict[str, Any]) -> None:
    assert decode(encode(properties)) == properties


@pytest.mark.parametrize(
    ("wire", "value"),
    [
        ({"value": "v", "secret": True}, Secret("v")),
        ({"value": "v", "dependencies": ["urn"]}, "v"),
        ({}, UNKNOWN),
    ],
)
def test_outputs_of_other_resources_become_their_values(wire: dict[str, Any], value: Any) -> None:
    signature = {"4dabf18193072939515e22adb298388d": "d0e6a833031e9bbcd3f4e8bde6ca49a4"}

    assert decode(encode({"x": {**signature, **wire}})) == {"x": value}


def test_assets_are_equal_by_content_and_keep_one_place() -> None:
    asset = Asset("h", (("path", "data/x.npz"),))

    assert decode(encode({"source": asset}))["source"] == Asset("h", ())
    assert stored({"source": asset}) == {"source": {"asset": "h"}}


def test_secrets_and_unknowns_are_found_at_any_depth() -> None:
    value = {"a": [{"b": Secret([UNKNOWN])}]}

    assert has_secret(value)
    assert has_unknown(value)
    assert plain(value) == {"a": [{"b": [UNKNOWN]}]}
    assert not has_secret(plain(value))


def test_an_unsupported_kind_of_value_is_named() -> None:
    archive = {"4dabf18193072939515e22adb298388d": "0def7320c3a5731c473e5ecbe6d01bc7"}

    with pytest.raises(ValueError, match="0def7320c3a5731c473e5ecbe6d01bc7"):
        decode(encode({"x": archive}))


IN_THE_SDK = """
import sys
from pulumi.provider.experimental.property_value import PropertyValue
from localgcp.gcp.codec import Asset, encode
with_path = encode({"a": Asset("hash", (("path", "x.txt"),))}).fields["a"]
print("hash" in str(PropertyValue.unmarshal(with_path).marshal()))
try:
    PropertyValue.unmarshal(encode({"a": Asset("hash", ())}).fields["a"])
except AssertionError as error:
    print(error)
"""


def test_the_sdks_own_property_values_still_lose_the_hash_of_an_asset() -> None:
    """If this fails, the SDK can replace the codec: docs/adr/0016."""
    # In a process of its own: the SDK and Google's clients both register google.rpc.Status.
    command = [sys.executable, "-c", IN_THE_SDK]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "False",
        "Invalid asset encountered when unmarshalling resource property",
    ]
