"""Elastic training programs, one file each."""
