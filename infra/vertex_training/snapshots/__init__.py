"""Results of queries in BigQuery, kept as files that a job can name.

===============  =====================================================================
``request``      what a snapshot is asked to be, its query as text, its identity and its folder
``manifest``     what was read and which objects hold it: the last object of a snapshot
``protocol``     one request, one query, one export, one manifest; its ports
``estimate``     what a preview says: bytes, price, tables that changed
``google``       the ports by REST and Google's client
``provider``     ``Snapshot``, which the program declares, and its dynamic provider
===============  =====================================================================
"""
