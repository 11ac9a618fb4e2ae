"""Everything that touches workflows, processes, clusters and people; the decisions are scheduler_core's."""
