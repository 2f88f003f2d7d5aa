"""Stand-in for ``pulumi-resource-gcp``: the resource plugin of the local cloud.

It speaks Pulumi's ResourceProvider protocol and behaves as the official plugin 9.35.0 was
measured to (``schema.json``): what it refuses, fills in, previews, replaces and returns. Any
project can be previewed; only local projects can be written to.

==================  ==============================================================
``server``          the protocol: one method per RPC
``wire``            translates requests and answers of the protocol
``codec``           property values on the wire
``schema``          property trees of the resource types, from ``schema.json``
``package_schema``  the same trees as Pulumi's schema of a package; its version
``check``           inputs: automatic names, defaults, validation
``rules``           rules of single properties
``plan``            outputs: before a resource exists, and afterwards
``diff``            which changes update and which replace
``cloud``           what every write goes through: guard, project, enabled API
``emulator``        the object storage emulator, through the JSON API
``services``        a row and hooks for each resource type
==================  ==============================================================
"""
