"""Submits a request exactly once, even if processes die. Imports neither Pulumi nor Google.

=================  =====================================================================
``ports``          interfaces: job service, intent store, process, time limits
``submission``     the protocol, step by step; start reading here
``turn``           third step of the protocol: waits until the previous request is inactive
``ladder``         submits the next rung of a job if no machines were available
``idle``           cancels a job with idle accelerators
``prerequisites``  checks of permissions, images, reservations and quota before a cancellation
``waiting``        waits for a job in the program; cancels a job that leaves the stack
=================  =====================================================================
"""
