"""Property values survive the wire."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from localgcp.gcp.codec import UNKNOWN, Secret, decode, encode

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
