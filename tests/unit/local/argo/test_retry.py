"""Retries: when another try is made, what it knows of the last, and in which words the tries end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.local.argo.builders import Bench, shell, workflow

KNOWS = "{{retries}} {{lastRetry.exitCode}} {{lastRetry.status}} {{node.name}}"


def tried(command: str = "true", **strategy: Any) -> Bench:
    """A Workflow of one retried pod, begun."""
    bench = Bench(workflow(shell(command=command, retryStrategy=strategy)))
    bench.look()
    return bench


def test_each_try_knows_its_number_and_the_last_end() -> None:
    """``retries`` counts from 0; ``lastRetry`` says how the one before ended."""
    bench = tried(KNOWS, limit="3")
    bench.end("w(0)", 7)
    bench.look()

    commands = [bench.pod(f"w({number})")["spec"]["containers"][0]["command"][2] for number in (0, 1)]
    assert commands == ["0 0  w(0)", "1 7 Failed w(1)"]


@pytest.mark.parametrize(
    ("strategy", "codes", "message"),
    [
        ({"limit": "1"}, [5, 5], "No more retries left"),
        ({"limit": 0}, [5], "No more retries left"),
        ({"limit": "3", "retryPolicy": "OnError"}, [5], "main: Error (exit code 5)"),
        ({"limit": "3", "expression": "asInt(lastRetry.exitCode) == 5"}, [5, 6],
         "retryStrategy.expression evaluated to false"),
    ],
)  # fmt: skip
def test_tries_end_in_argos_words(strategy: dict[str, Any], codes: list[int], message: str) -> None:
    """The Retry node's message, and so the Workflow's."""
    bench = tried(**strategy)
    for number, code in enumerate(codes):
        bench.end(f"w({number})", code)
        bench.look()

    assert (bench.status["phase"], bench.status["message"]) == ("Failed", message)
    assert len(bench.pods) == len(codes)


def test_success_ends_the_tries() -> None:
    """The Retry node takes over the outputs of the try that succeeded."""
    bench = tried(limit="3")
    bench.end("w(0)", 1)
    bench.look()
    bench.end("w(1)")
    bench.look()

    assert bench.status["phase"] == "Succeeded"
    assert bench.nodes["w"]["outputs"] == {"exitCode": "0"}


def test_backoff_waits_longer_each_time() -> None:
    """Duration * factor^n, up to the cap; the engine is told when to look again."""
    backoff = {"duration": "10", "factor": "3", "cap": "1m"}
    bench = tried(limit="5", backoff=backoff)
    waited = []
    for number in range(3):
        bench.end(f"w({number})", 1)
        delay_s = bench.look().again_s
        assert delay_s is not None
        assert bench.nodes["w"]["message"] == f"Backoff for {delay_s:g} seconds"
        bench.look(after_s=delay_s)
        waited.append(delay_s)

    assert waited == [10, 30, 60]
    assert "message" not in bench.nodes["w"]


def test_backoff_has_an_end() -> None:
    """MaxDuration counts from the first try."""
    bench = tried(limit="5", backoff={"duration": "10", "maxDuration": "5s"})
    bench.end("w(0)", 1)
    bench.look()

    assert bench.status["message"] == "Backoff would exceed max duration limit"
