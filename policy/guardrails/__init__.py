"""Guard rails over what a stack is about to create or change.

================  ===================================================================
``policy``        a policy, what it is told of a resource, and the table of all
``grants``        who may do what: IAM of any kind of resource, and keys
``buckets``       buckets: closed, regional, versioned, protected
``registry``      Docker repositories
``jobs``          training jobs: image, account, timeout, capacity, secrets, network
``encryption``    keys of one's own, where they are asked for
``network``       what becomes reachable
``pack``          the policies as the engine's SDK wants them; the only module that loads it
================  ===================================================================

A policy judges the inputs of one resource. It runs in previews and once more before each create or
update. What a preview does not know yet passes, and is judged when it is known.
"""
