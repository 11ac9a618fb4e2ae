"""The scheduler's shell: observes a world, asks scheduler_core, enforces the plan."""
