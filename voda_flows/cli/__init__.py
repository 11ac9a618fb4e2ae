"""The voda command: one file per subcommand; parse, one call, print."""
