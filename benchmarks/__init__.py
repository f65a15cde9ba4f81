"""The airspeed-velocity suite: thin, it calls ladders, probes and engine. See docs/benchmarks.md."""
