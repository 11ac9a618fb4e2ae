"""A real Kubernetes cluster with Argo Workflows as plain processes on this computer, for tests and for trying.

``Cluster`` is the whole of it; ``python -m tests.cluster`` and ``make cluster`` call it. README.md says what it is.
"""
