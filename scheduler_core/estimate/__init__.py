"""Speed and remaining time of jobs, as plain tables in the observation."""
