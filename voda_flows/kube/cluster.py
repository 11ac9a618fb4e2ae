"""Which cluster is meant: a value that the command line and ``worlds`` pass on; reading it is ``connection.py``'s."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Which cluster is meant.

    Attributes:
        kubeconfig: Path of a kubeconfig (or several, joined by colons); empty for ``KUBECONFIG``, then
            ``~/.kube/config``, then the service account of the pod that one runs in.
        context: Context in it; empty for its current one.
    """

    kubeconfig: str = ""
    context: str = ""
