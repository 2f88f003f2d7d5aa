"""Compute Engine in the local cloud: networks, addresses, peerings, attachments, reservations."""
