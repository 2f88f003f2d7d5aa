"""Rules about a job in its stack.

====================  ================================================================
``stack``             accounts and their grants, secrets, other jobs' outputs; the stack's limits
``batch``             what a job on Batch cannot ask for
``fit_network``       the stack's network, with room for all jobs at once
``fit_reservations``  the stack's reservations, with machines for all jobs
====================  ================================================================
"""
