"""Policies on the resources that a stack is about to create or change.

================  ===================================================================
``policy``        the class of a policy and of the resource it checks; the registry
``grants``        IAM members, bindings and policies of any resource; account keys; firewall rules
``storage``       buckets, repositories, secrets: access, location, how long what they hold is kept
``jobs``          jobs, model versions and endpoints; customer-managed keys of all that stores data
``pack``          serves the policies; the only module that loads the policy SDK
================  ===================================================================

A policy checks the inputs of one resource. It runs in previews, and again before each create or
update. An unknown value passes, and is checked when it is known.
"""
