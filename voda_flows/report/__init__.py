"""What jobs did: from the objects of a world and the files beside the checkpoints to one record, a table and a page.

``tree`` and ``lives`` read objects (pure), ``gather`` does the reading of store and files, ``record`` sums up,
``table``, ``timeline``, ``curves`` and ``page`` show it. The command line uses the same lives for ``list`` and ``get``.
"""
