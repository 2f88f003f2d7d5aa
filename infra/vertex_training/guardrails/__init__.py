"""Policies for the resources that a stack is about to create or change.

================  ===================================================================
``policy``        classes of policies and resources; the registry
``grants``        IAM members, bindings and policies of any resource; account keys; firewall rules
``storage``       buckets, repositories, secrets: access, location, retention
``jobs``          jobs, model versions and endpoints; customer-managed keys of stored data
``pack``          serves the policies; the only module that loads the policy SDK
================  ===================================================================

A policy checks the inputs of one resource. It runs in previews, and again before each create or
update. A policy accepts unknown values, and checks them when they are known.
"""
