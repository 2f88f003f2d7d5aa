"""Stand-in for `pulumi-resource-gcp`: the resource plugin of the local cloud.

It speaks Pulumi's ResourceProvider protocol and behaves as the official plugin 9.35.0 was
measured to (`schema.json`): what it refuses, fills in, previews, replaces and returns. Any project
can be previewed; only projects whose id begins with `local-` can be written to.

    server.py    the protocol: one method per RPC
    codec.py     property values on the wire
    schema.py    property trees of the resource types, from schema.json
    check.py     inputs: names, defaults, validation (rules.py: the rules of single properties)
    plan.py      outputs: what is known before a resource exists, and what it has afterwards
    diff.py      which changes update and which replace
    cloud.py     what every write goes through: guard, project, API enabled
    services/    one module per Google service: ids, computed values, what the service refuses
"""
