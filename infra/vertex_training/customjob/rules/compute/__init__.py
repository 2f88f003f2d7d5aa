"""Rules about worker pools.

==============  ======================================================================
``pools``       order, replicas and required fields of the pools; reduction servers
``machines``    machine types, accelerators, regions, boot disks
``tpu``         TPUs
``capacity``    reservations, persistent resources, scarce accelerators
``scheduling``  strategy, timeout and restarts
==============  ======================================================================
"""
