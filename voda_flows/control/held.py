"""Acting while the Lease is ours: between a round's writes it is renewed where that is due.

A call to the API server is given up after nine seconds without an answer (``kube/retrying.py``), and the Lease was
renewed at most five seconds before: one call does not outlast its fifteen. Many calls do, of a server that is slow or
of a round with much to do, and so each action begins with a look at the Lease's age; an action is one to three calls,
so that a server that needs most of those nine seconds for each still has its holder replaced. Where the Lease cannot be
renewed, nothing more is done in this round: what was decided may be another's to decide by now. No write of an old
holder harms (``lease.py``); this keeps a holder that is at work from being replaced, and one that was replaced from
going on.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.model.plan import Action
from scheduler_core.model.ports import Enforcer
from voda_flows.control.lease import Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldEnforcer:
    """``Enforcer`` that acts under a Lease.

    Attributes:
        enforcer: Acts.
        lease: What gives the right to.
    """

    enforcer: Enforcer
    lease: Lease

    def enforce(self, action: Action) -> None:
        """See ``scheduler_core.model.ports.Enforcer``.

        Raises:
            LeaseLost: Somebody else decides now: the whole round is over, and not this action alone.
            Unreachable: Nobody can tell whether it is still ours: likewise.
        """
        self.lease.keep()
        self.enforcer.enforce(action)
