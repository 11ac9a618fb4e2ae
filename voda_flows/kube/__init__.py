"""The object store of a Kubernetes cluster: everything that speaks with its API server, and what that may answer.

``store.KubeStore`` is what others use, made by ``voda_flows.worlds``. Exceptions of the ``kubernetes`` package and of
HTTP end in this package.
"""
