"""Policies on the resources that a stack is about to create or change.

================  ===================================================================
``policy``        the class of a policy and of the resource it checks; the registry
``grants``        IAM members, bindings and policies of any resource; account keys
``buckets``       buckets: access, location, versions, protection
``retention``     how long deleted objects, old versions, objects and images are kept
``registry``      Docker repositories
``jobs``          training jobs: image, account, timeout, capacity, secrets, network
``serving``       model versions and endpoints: image, reachability, replicas
``encryption``    customer-managed keys, where a stack requires them
``network``       firewall rules
``pack``          serves the policies; the only module that loads the policy SDK
================  ===================================================================

A policy checks the inputs of one resource. It runs in previews, and again before each create or
update. An unknown value passes, and is checked when it is known.
"""
