"""Stores results of BigQuery queries as files that jobs can read.

===============  =====================================================================
``request``      a requested snapshot: query text, identity, folder
``manifest``     the last object of a snapshot: its sources and objects
``protocol``     runs query and export once, and writes the manifest; ports
``estimate``     preview of a snapshot: bytes, price, changed tables
``google``       the ports with REST and Google's client
``provider``     the resource ``Snapshot`` and its dynamic provider
===============  =====================================================================
"""
