"""Stores results of BigQuery queries as files that jobs can read.

===============  =====================================================================
``request``      a requested snapshot: query text, identity, folder
``manifest``     the last object of a snapshot: its source tables and objects
``protocol``     runs query and export once, and writes the manifest; interfaces
``estimate``     preview of a snapshot: bytes, price, changed tables
``google``       calls of BigQuery by REST, and of Cloud Storage by Google's client
``provider``     the resource ``Snapshot`` and its dynamic provider
===============  =====================================================================
"""
