"""Workloads: readers of published traces, and generators."""
