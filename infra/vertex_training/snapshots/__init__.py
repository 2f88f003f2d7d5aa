"""Results of queries in BigQuery, kept as files that a job can name.

===============  =====================================================================
``statement``    a query as text: comments, parameters, its canonical form
``request``      what a snapshot is asked to be, its identity and its folder
===============  =====================================================================
"""
