"""The ports on one machine: interpreter, clock, fleets, nodes, S3 and event endpoints."""
