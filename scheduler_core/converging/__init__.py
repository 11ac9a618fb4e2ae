"""The pieces of ``diff``: workers against the target, allocation documents, and what the queue is told."""
