"""Unit tests of scheduler_core."""
