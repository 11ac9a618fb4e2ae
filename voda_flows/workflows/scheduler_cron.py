"""The scheduler as a CronWorkflow: the cron is the watchdog, one run lives for most of an hour.

When it ends just before a tick, that tick's run takes over. In between a tick's run sees that the Lease is renewed and
ends within seconds; where it is not, it is the scheduler. ``Forbid`` would save those, and would keep the next run away
from a cluster whose scheduler's pod is on a lost node: to Argo such a pod runs on (docs/adr/0016).
"""

from __future__ import annotations

from hera.workflows import Container, CronWorkflow, Env, FieldEnv, RetryStrategy

from voda_flows.config import SCHEDULER_CRON, SCHEDULER_TICK_MINUTES, Settings
from voda_flows.workflows.described import described

#: Below an hour, so that new versions and settings of its pod come into force and logs stay readable.
LIFETIME = "55m"
#: A run that does not come up (its image cannot be had, no node has room) goes after this; the next ones try as well.
DEADLINE_S = 3600


def scheduler_cron(settings: Settings) -> CronWorkflow:
    """The scheduler's CronWorkflow in the scheduler's own namespace."""
    run = Container(
        name="scheduler",
        image=settings.image,
        command=["python", "-m", "voda_flows.control.scheduler"],
        # A pod that is started anew has what is left: its Workflow's deadline would end it in the middle of its work.
        args=["--for", LIFETIME, "--since", "{{workflow.creationTimestamp.s}}"],
        env=[
            Env(name="VODA_SCHEDULER_NAMESPACE", value=settings.namespace),
            FieldEnv(name="VODA_POD_UID", field_path="metadata.uid"),
        ],
        labels={"voda.dev/role": "scheduler"},
        retry_strategy=RetryStrategy(limit="10", retry_policy="Always"),
    )
    return CronWorkflow(
        name=SCHEDULER_CRON,
        namespace=settings.namespace,
        labels={"app.kubernetes.io/part-of": "voda"},
        annotations=described(
            "Voda's scheduler. Gives GPUs to training jobs. One run lives for most of an hour; this starts the next."
            " A run that finds another at work ends at once, and takes its place where it is gone."
            " `voda explain` says why a job waits.",
        ),
        schedules=[f"*/{SCHEDULER_TICK_MINUTES} * * * *"],
        timezone="Etc/UTC",
        concurrency_policy="Allow",
        starting_deadline_seconds=30,
        successful_jobs_history_limit=2,
        failed_jobs_history_limit=3,
        active_deadline_seconds=DEADLINE_S,
        entrypoint="scheduler",
        service_account_name="voda-scheduler",
        templates=[run],
    )


w = scheduler_cron(Settings())
