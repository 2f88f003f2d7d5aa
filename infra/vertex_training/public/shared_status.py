"""One ``google.rpc.Status`` for Pulumi's provider host and for Google's clients.

Pulumi's SDK (3.272.0) has its own copy of the message, under another file name than Google's. A
process cannot have both: "duplicate symbol 'google.rpc.Status'", whichever comes second. Only the
provider host uses the SDK's copy, so this module, imported before ``pulumi.provider``, puts
Google's in its place.
"""

import sys

from google.rpc import status_pb2

sys.modules["pulumi.runtime.proto.status_pb2"] = status_pb2
