"""Local mode: store, nodes, pods, engine, cron."""
