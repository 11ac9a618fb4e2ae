"""Workflow definitions in Hera, rendered to templates/."""
