"""The table of figures: what decides its exit code."""
