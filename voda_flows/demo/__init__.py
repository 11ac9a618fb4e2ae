"""The demo: five jobs on four GPUs, from the first submission to a report, on this machine or on a cluster.

``script`` says what is submitted when (pure), ``verify`` what the record must show (pure), ``run`` does it on a
``stage``: ``local_stage`` is a world of real processes on this machine, ``cluster_stage`` one of Kubernetes.
"""
