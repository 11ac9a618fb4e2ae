"""The runtime: driver, agent, session, checkpoint step."""
