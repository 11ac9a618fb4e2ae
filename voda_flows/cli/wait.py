"""``voda wait``: until jobs have ended."""

from __future__ import annotations

import re
from typing import Final

import click

from scheduler_core.errors import InvalidValue
from voda_flows.cli import following
from voda_flows.cli.options import JOB, Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.report import jobs

_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


@verb(
    "voda wait digits --timeout 10m",
    "voda wait @latest && voda report @latest",
)
@click.argument("names", type=JOB, metavar="JOB...", nargs=-1, required=True)
@click.option("--timeout", metavar="TIME", help="How long at most, such as 90s, 5m or 2h.  [default: for ever]")
@shared_options(output=False)
@click.pass_context
def command(context: click.Context, shared: Shared, names: tuple[str, ...], timeout: str | None) -> None:
    """Wait until jobs have ended: exit 0 when all succeeded, 1 when one failed, 5 when the time was over first."""
    limit_s, store = duration_s(timeout) if timeout else None, shared.store()
    chosen = [jobs.find(store, shared.namespace, name).workflow for name in names]
    if not all(following.has_ended(store, body) for body in chosen):
        shared.warn_if_down()
    context.exit(following.wait(store, chosen, timeout_s=limit_s))


def duration_s(text: str) -> float:
    """Seconds from ``90``, ``90s``, ``1.5m`` or ``2h``.

    Raises:
        InvalidValue: It is none of these.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", text)
    if match is None:
        raise InvalidValue(f"--timeout: expected a time such as 90s, 5m or 2h, found {text!r}")
    return float(match[1]) * _UNITS[match[2]]
