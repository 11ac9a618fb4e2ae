"""Which nodes the granted GPUs are on."""
