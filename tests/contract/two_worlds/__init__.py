"""One suite of Workflow documents, run side by side on the local engine and on the real Argo controller."""
