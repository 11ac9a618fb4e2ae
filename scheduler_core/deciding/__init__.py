"""The pieces of ``cycle.decide``: where a decision starts, serving a pool, and the next target with its reasons."""
