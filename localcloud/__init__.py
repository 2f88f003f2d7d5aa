"""The local cloud: stand-ins for Google Cloud that the stack ``local`` runs against."""
