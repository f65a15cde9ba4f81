"""This machine's own parts: CUDA, NVML, the installed libraries. May import probes.parts and what each part needs."""
