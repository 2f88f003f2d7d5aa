"""Submit one request as one job, whatever process dies in between. Imports no Pulumi, no Google.

=================  =====================================================================
``ports``          what the protocol needs: a job service, an intent store, a process, bounds
``submission``     the protocol, step by step; start reading here
``turn``           its third step: waits out the previous request of the job
``ladder``         takes a job from rung to rung, where there were no machines for it
``idle``           cancels a job whose accelerators did nothing
``adoption``       chooses the job to adopt among those that carry a request id
``prerequisites``  what else it needs, asked of Google before anything is cancelled
``withdrawal``     cancels a job that leaves the stack
``waiting``        waits for a job, in the program
=================  =====================================================================
"""
