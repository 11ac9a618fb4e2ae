"""A virtual clock under the production cycle: jobs and nodes that exist as numbers only."""
