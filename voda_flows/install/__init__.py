"""Voda onto a cluster: the manifests of deploy/kustomize read, applied through the API server, the scheduler started.

``voda install`` is an alternative to ``kubectl apply -k``: the same files, the same documents. ``overlays.py`` says
which documents are meant, ``kustomize.py`` and ``json_patch.py`` read them, ``images.py`` knows the images in them,
``applying.py`` and ``starting.py`` act; ``removing.py`` takes all of it away.
"""
