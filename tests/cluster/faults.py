"""What can go wrong with the cluster; messages say what was expected, what was found, where, and what to do."""

from __future__ import annotations


class ClusterError(Exception):
    """The cluster is not as it should be, or could not be made so."""


class CannotRunHereError(ClusterError):
    """This machine lacks what the cluster needs; the text is one line."""
