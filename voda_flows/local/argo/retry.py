"""``retryStrategy``: a node whose children are tries of the same template.

In: the frame of a template with a strategy; out: the Retry node, with one more try begun where the last one failed
and the strategy allows it. Messages are Argo's.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.expressions import evaluate
from voda_flows.local.argo.names import pod_name, text
from voda_flows.local.argo.nodes import is_failed, is_fulfilled
from voda_flows.local.argo.run import POD_KINDS, Call, Frame, Run, kind_of
from voda_flows.local.argo.substitute import substitute
from voda_flows.local.argo.suspend import duration_s
from voda_flows.objects import Object, parse_time

POLICIES = {
    "Always": frozenset({"Failed", "Error"}),
    "OnFailure": frozenset({"Failed"}),
    "OnError": frozenset({"Error"}),
    "OnTransientError": frozenset[str](),
}

Starter = Callable[[Run, Frame], Object]


def run_retry(run: Run, frame: Frame, start: Starter) -> Object:
    """The Retry node, its last try taken on or the next one begun."""
    tree = run.tree
    if tree.get(frame.name) is None:
        tree.add(frame.new_node("Retry", "Running"))
    while True:
        tries = tree.children(tree.at(frame.name))
        if tries and is_fulfilled(tries[-1]):
            strategy = substitute(frame.template["retryStrategy"], frame.variables)
            if not _goes_on(run, frame, strategy, tries):
                return tree.at(frame.name)
            last = f"{frame.name}({len(tries)})"
        else:
            last = tries[-1]["name"] if tries else f"{frame.name}(0)"
        start(run, _attempt(run, frame, last, tries))
        tree.connect(frame.name, last)
        if not is_fulfilled(tree.at(last)):
            return tree.at(frame.name)


def _attempt(run: Run, frame: Frame, name: str, tries: list[Object]) -> Frame:
    """The frame of one try, with the variables that tell it from the others."""
    number = int(name[len(frame.name) + 1 : -1])
    local: dict[str, Any] = {"retries": str(number), "node.name": name, **_last_variables(tries[:number])}
    if kind_of(frame.template) in POD_KINDS:
        local["pod.name"] = pod_name(run.name, name, frame.template.get("name", ""))
    call = frame.call
    tried = Call(target=call.target, scope=call.scope, boundary_id=call.boundary_id, on_exit=call.on_exit,
                 flag={**(call.flag or {}), "retried": True}, depth=call.depth, parent=call.parent)  # fmt: skip
    return Frame(name=name, template=frame.template, scope=frame.scope, call=tried, inputs=frame.inputs,
                 variables=ChainMap(local, *frame.variables.maps))  # fmt: skip


def _last_variables(tries: list[Object]) -> dict[str, str]:
    """``lastRetry...`` as a try and an expression see them."""
    if not tries:
        return {"lastRetry.exitCode": "0", "lastRetry.status": "", "lastRetry.duration": "0", "lastRetry.message": ""}
    last = tries[-1]
    took_s = (parse_time(last["finishedAt"]) - parse_time(last["startedAt"])).total_seconds()
    return {
        "lastRetry.exitCode": (last.get("outputs") or {}).get("exitCode", "-1"),
        "lastRetry.status": last["phase"],
        "lastRetry.duration": str(int(took_s)),
        "lastRetry.message": last.get("message", ""),
    }


def _goes_on(run: Run, frame: Frame, strategy: Object, tries: list[Object]) -> bool:
    """Whether another try begins now; else the Retry node has been brought to its end, or waits."""
    last = tries[-1]
    if not is_failed(last):
        _end(run, frame, last, last["phase"], "")
        return False
    verdict = _verdict(run, strategy, tries)
    if verdict is not None:
        _end(run, frame, last, last["phase"], verdict)
        return False
    waited_s = _backoff_left_s(run, strategy, tries)
    if waited_s > 0 and strategy.get("limit") is not None:  # without a limit the controller does not wait
        run.look_again(waited_s)
        run.tree.update(frame.name, message=f"Backoff for {_backoff_s(strategy, len(tries)):g} seconds")
        return False
    run.tree.update(frame.name, message=None)
    return True


def _end(run: Run, frame: Frame, last: Object, phase: str, message: str) -> None:
    run.tree.update(frame.name, outputs=last.get("outputs"))
    run.tree.mark(frame.name, phase, message)


def _verdict(run: Run, strategy: Object, tries: list[Object]) -> str | None:
    """The message with which the tries end, or None where another may be made."""
    last = tries[-1]
    if run.shutdown:
        return f"Stopped with strategy '{run.shutdown}'"
    late = _too_late(run, strategy, tries)
    if late:
        return late
    expression = strategy.get("expression")
    policy = strategy.get("retryPolicy") or ("Always" if expression else "OnFailure")
    if last["phase"] not in POLICIES[policy]:
        return str(last.get("message", ""))
    limit = strategy.get("limit")
    if limit is not None and len(tries) > int(text(limit)):
        return "No more retries left"
    if expression and not _holds(expression, tries):
        return "retryStrategy.expression evaluated to false"
    return None


def _holds(expression: str, tries: list[Object]) -> bool:
    result = evaluate(expression, {"retries": str(len(tries) - 1), **_last_variables(tries)})
    if not isinstance(result, bool):
        raise InvalidValue(f"retryStrategy.expression: expected true or false, got {result!r}")
    return result


def _backoff_s(strategy: Object, tries: int) -> float:
    """How long to wait after that many tries."""
    backoff = strategy.get("backoff")
    if not backoff:
        return 0.0
    if not backoff.get("duration"):
        raise InvalidValue("no base duration specified for retryStrategy")
    factor = float(text(backoff.get("factor") or 0))
    base_s = duration_s(backoff["duration"], "retryStrategy.backoff.duration")
    wait_s = base_s * (factor ** (tries - 1) if factor else 1)
    cap = backoff.get("cap")
    return min(wait_s, duration_s(cap, "retryStrategy.backoff.cap")) if cap else wait_s


def _backoff_left_s(run: Run, strategy: Object, tries: list[Object]) -> float:
    until = parse_time(tries[-1]["finishedAt"]) + timedelta(seconds=_backoff_s(strategy, len(tries)))
    return (until - run.now).total_seconds()


def _too_late(run: Run, strategy: Object, tries: list[Object]) -> str | None:
    longest = (strategy.get("backoff") or {}).get("maxDuration")
    if not longest:
        return None
    limit_s = duration_s(longest, "retryStrategy.backoff.maxDuration")
    deadline = parse_time(tries[0]["startedAt"]) + timedelta(seconds=limit_s)
    if run.now > deadline:
        return "Max duration limit exceeded"
    if run.now + timedelta(seconds=_backoff_left_s(run, strategy, tries)) > deadline:
        return "Backoff would exceed max duration limit"
    return None
