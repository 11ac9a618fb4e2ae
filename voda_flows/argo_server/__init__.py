"""Argo's own server as a way into a cluster, for people who have its token and no kubeconfig.

It gives Workflows and what their pods print; in: ``HOST:PORT`` and a token, out: ``voda_flows.world.World``. What else
Voda shows (nodes, queue, decisions) is Kubernetes' to tell, and is refused here in one line.
"""
