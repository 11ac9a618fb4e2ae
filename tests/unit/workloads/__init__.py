"""The elastic training programs."""
