"""Stand-in for ``pulumi-resource-gcp``: the resource plugin of the local cloud.

The plugin implements Pulumi's ResourceProvider protocol. Its errors, defaults, previews and
replacements equal those that were measured with the official plugin 9.35.0 (``schema.json``). The
plugin previews every project, but writes only to local projects.

============  ==============================================================
``server``    one method for each RPC of the protocol
``codec``     converts property values between protobuf and Python
``schema``    property trees of the resource types; the package's schema
``check``     checks inputs; fills in automatic names and defaults
``plan``      computes outputs in previews and after changes
``diff``      computes which changes update or replace a resource
``cloud``     the local cloud's database, project checks and object storage
``services``  behavior of each resource type
============  ==============================================================
"""
