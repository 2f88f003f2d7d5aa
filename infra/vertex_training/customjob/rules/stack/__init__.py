"""Rules about a job in its stack.

====================  ================================================================
``stack``             accounts and their grants, secrets, outputs of other jobs
``limits``            what jobs may cost and run on
``batch``             what a job on Batch cannot ask for
``fit_network``       the stack's network, with room for all jobs at once
``fit_reservations``  the stack's reservations, with machines for all jobs
====================  ================================================================
"""
