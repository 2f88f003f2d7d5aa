"""Stand-in for the Vertex AI job service: gRPC front, job records, the rules at create."""
