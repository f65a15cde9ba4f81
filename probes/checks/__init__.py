"""The checks, a file a family. May import probes.parts, probes.thresholds and what reads the host."""
