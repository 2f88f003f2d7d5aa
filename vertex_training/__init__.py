"""Training on Vertex AI as one Pulumi program, the command line for it, and a rehearsal of both.

==============  ===========================================================================
``foundation``  a second program: what precedes a first deployment (``bootstrap/``)
``infra``       the program: what a stack file says, checked and declared; the job provider
``localcloud``  stand-ins for Google Cloud on this machine
``vt``          the command line
==============  ===========================================================================
"""
