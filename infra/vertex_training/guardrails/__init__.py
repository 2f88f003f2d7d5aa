"""Policies for the resources that a stack creates or changes.

================  ===================================================================
``policy``        classes of policies and resources; the registry of policies
``grants``        IAM members, bindings and policies; account keys; firewall rules
``storage``       buckets, repositories, secrets: access, location, retention
``jobs``          jobs, model versions and endpoints; customer-managed keys
``pack``          serves the policies; the only module that loads the policy SDK
================  ===================================================================

A policy checks the inputs of one resource, in previews and again before each create or update. A
policy accepts unknown values, and checks them when they are known.
"""
