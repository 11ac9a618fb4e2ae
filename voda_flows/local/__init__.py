"""Local mode: virtual nodes on this machine, the same workflow documents, run as processes."""
