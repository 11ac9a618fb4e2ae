"""From a user's file to objects in a store: documents are read strictly, prepared, checked as a whole, then created.

In order: ``documents`` (text to documents), ``prepare`` (the wishes of whoever submits; creating), ``checks`` (what the
gate or the engine would refuse later). The command line and the demo submit through it.
"""
