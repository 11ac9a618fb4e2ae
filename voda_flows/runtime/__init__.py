"""What runs inside the pods of a job: driver, worker agent, session, checkpoint step."""
