"""Compute Engine: networks and what belongs to them.

==================  ==================================================================
``compute``         behaviour that all types of Compute Engine share
``networks``        VPC networks and subnetworks
``egress``          firewall rules, routers and NAT
``peerings``        allocated ranges, connections to Google's services, their routes
``attachments``     network attachments of Private Service Connect
``shared_vpc``      host projects and service projects
``reservations``    reservations of machines
``machines``        machines of one's own
==================  ==================================================================
"""
