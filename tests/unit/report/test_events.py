"""Events and numbers of jobs, from hand-made lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.report.five_jobs import act, decision, five_jobs
from tests.unit.report.world import START_S, Building, at, node, resize, row
from voda_flows.report import table
from voda_flows.report.files import SegmentFiles
from voda_flows.report.history import decisions, words
from voda_flows.report.lives import lives
from voda_flows.report.record import Record, Sources, document, record
from voda_flows.report.summary import Summary

CONTRACTS = Path(__file__).resolve().parents[3] / "docs" / "contracts.md"


def of(*jobs: Building, now: float = 100.0, rounds: tuple[dict[str, object], ...] = ()) -> Record:
    """The record of some jobs on two nodes with two slots."""
    found = [life for job in jobs for life in lives(job.workflow(), job.pods.values())]
    files = {life.id: job.files for job, life in zip(jobs, found, strict=True)}
    nodes = (node("n1", 2), node("n0", 2))
    return record(found, Sources(now_s=START_S + now, nodes=nodes, files=files, rounds=rounds))


def test_a_life_reads_as_a_list_of_events() -> None:
    """Submission, grant, start, resizes, preemption, resumption and end, in order, each in words."""
    digits = five_jobs().jobs[0]

    assert [(round(event.at_s - START_S, 1), event.kind, event.text) for event in digits.happened] == [
        (0.0, "submit", "submitted, asks for 1-4 GPUs"),
        (0.0, "queue", "queued for 1s"),
        (1.0, "grant", "granted 4 GPUs on n0, n1"),
        (6.0, "start", "training starts on 4"),
        (31.0, "shrink", "shrinks in place 4 -> 2"),
        (70.0, "shrink", "shrinks in place 2 -> 1"),
        (94.5, "preempt", "preempted to a checkpoint"),
        (95.5, "checkpoint", "checkpoint of step 340 verified"),
        (96.0, "queue", "queued for 32s"),
        (128.0, "grant", "granted 2 GPUs on n0"),
        (131.0, "resume", "resumes from the checkpoint of step 340 on 2"),
        (154.0, "grow", "grows in place 2 -> 3"),
        (171.0, "end", "succeeded"),
    ]


def test_numbers_of_a_life() -> None:
    """Waiting is what gates took, running from grant to checkpoint, GPU seconds are holds times GPUs."""
    job = Building(name="a").grant(10, ("w0", "n0"), ("w1", "n0")).publish("w0", "w1").leave(20, "w1")
    job.stop(30, "resize", "w0").grant(41, ("w0", "n0")).publish("w0").stop(60, "done", "w0")
    job.wrote(0, resize("start", 0, 2, 12), resize("shrink", 2, 1, 19, still=0.2, lost=1), resize("stop", 1, 0, 29))
    job.wrote(1, resize("start", 0, 1, 43), rows=(row(50, 1, 20, accuracy=0.5), row(59, 2, 40, accuracy=0.75)))

    assert of(job).jobs[0].numbers == Summary(
        wait_s=20.0,
        run_s=20.5 + 19.5,
        jct_s=61.0,
        queue_s=10.0,
        preempted_s=10.5,
        starting_s=2.0 + 2.0,
        training_s=18.5 + 18.0,
        gpu_s=20.0 + 10.0 + 19.0,
        resizes={"preempt": 1, "resume": 1, "shrink": 1},
        still_s=0.2,
        steps_lost=1,
        metric="accuracy",
        value=0.75,
    )


def test_a_lost_driver_is_no_preemption() -> None:
    """A segment that ended as lost shows as lost, whatever the driver managed to write."""
    job = Building(name="a").grant(1, ("w0", "n0")).publish("w0").stop(9, "lost", "w0")

    assert [event.kind for event in of(job).jobs[0].happened] == ["submit", "queue", "grant", "lost", "queue", "retry"]
    assert of(job).jobs[0].happened[3].text == "lost its driver, goes back to its last checkpoint"


def test_a_segment_that_failed_says_why() -> None:
    """Where the driver wrote down why it failed, its word stands in the job's life."""
    job = Building(name="a").grant(1, ("w0", "n0")).publish("w0").stop(9, "lost", "w0")
    job.files[0] = SegmentFiles(end={"outcome": "failed", "message": "w0's command ended with exit code 1"})

    assert of(job).jobs[0].happened[3].text == "failed, is tried again: w0's command ended with exit code 1"


def test_a_preemption_says_for_whom_and_why() -> None:
    """The round that stopped the job gives the reason, the decision behind it says who got the GPUs."""
    text = five_jobs().jobs[1]

    (preempted,) = [event for event in text.happened if event.kind == "preempt"]

    assert preempted.text == "preempted to a checkpoint for urgent"
    assert preempted.reason == (
        "preempted: its GPUs are given to jobs before it; makes room for urgent (0 -> 3); "
        "decision 4, elastic_fifo: 0 for this job"
    )


def test_a_change_of_size_is_explained_by_who_lost_or_gained() -> None:
    """The newest decision that changed the job's number counts, also when later ones left it as it was."""
    job = Building(name="a").grant(1, ("w0", "n0")).publish("w0").grow(5, "w1", "n1")
    job.wrote(0, resize("start", 0, 1, 3), resize("grow", 1, 2, 8, still=0.1), resize("shrink", 2, 1, 30))
    rounds = (
        decision(1, 1, {"a/train": 1, "b/train": 2}, act("a", "Grant")),
        decision(5, 2, {"a/train": 2, "b/train": 1}, act("a", "Grow")),
        decision(6, 3, {"a/train": 2, "b/train": 1, "c/train": 1}),
        decision(7, 3, {"a/train": 2, "b/train": 1, "c/train": 1}, act("a", "Publish")),
        decision(29, 4, {"a/train": 1, "b/train": 1, "c/train": 1, "d/train": 1}, act("a", "Publish")),
    )

    reasons = {event.kind: event.reason for event in of(job, rounds=rounds).jobs[0].happened if event.reason}

    assert reasons == {
        "grant": "decision 1, elastic_fifo: 1 for this job",
        "grow": "takes what is left by b (2 -> 1); decision 2, elastic_fifo: 2 for this job",
        "shrink": "makes room for d (0 -> 1); decision 4, elastic_fifo: 1 for this job",
    }


def test_a_grant_after_a_pause_is_explained_by_the_decision_that_holds() -> None:
    """A job that comes back with what was left to it is not told of the gift with which it once began."""
    job = Building(name="a").grant(1, ("w0", "n0"), ("w1", "n1")).publish("w0", "w1").stop(29, "resize", "w0", "w1")
    job.grant(31, ("w0", "n0"))
    rounds = (
        decision(0, 1, {"b/train": 2}),
        decision(1, 2, {"a/train": 2}, act("a", "Grant")),
        decision(20, 3, {"a/train": 1, "c/train": 1}, act("a", "Publish")),
        decision(30, 3, {"a/train": 1, "c/train": 1}, act("a", "Release")),
        decision(31, 3, {"a/train": 1, "c/train": 1}, act("a", "Grant", segment=1)),
    )

    told = [event.reason for event in of(job, rounds=rounds).jobs[0].happened if event.kind == "grant"]

    assert told == [
        "takes what is left by b (2 -> 0); decision 2, elastic_fifo: 2 for this job",
        "decision 3, elastic_fifo: 1 for this job",
    ]


def test_a_round_of_an_earlier_job_of_that_name_explains_nothing() -> None:
    """Only rounds while the job lived are its own."""
    job = Building(name="a", submitted=50).grant(51, ("w0", "n0"))
    rounds = (decision(20, 1, {"a/train": 1}, act("a", "Grant")),)

    assert [event.reason for event in of(job, rounds=rounds).jobs[0].happened] == ["", "", ""]


def test_a_wait_tells_the_place_that_the_job_had() -> None:
    """While it waits its gate says it, afterwards the scheduler's account does."""
    waits = Building(name="a").say("queued: place 2, waits for 1 GPU")
    served = Building(name="b", uid="2").grant(30, ("w0", "n0"))
    rounds = (decision(1, 1, {}) | {"queued": {"b/train": "queued: place 1, waits for 1 GPU"}},)

    told = [
        [event.text for event in job.happened if event.kind == "queue"] for job in of(waits, served, rounds=rounds).jobs
    ]

    assert told == [["queued: place 2, waits for 1 GPU"], ["queued: place 1, waits for 1 GPU; waited 30s"]]


def test_a_broken_segment_is_told_with_what_it_costs_and_what_is_left() -> None:
    """Steps after the checkpoint are lost; attempts count while no new checkpoint comes; the end names the last."""
    job = Building(name="a", asked={"retry-limit": "1"}).grant(1, ("w0", "n0")).publish("w0").stop(9, "lost", "w0")
    job.grant(11, ("w0", "n0")).publish("w0").stop(19, "lost", "w0").grant(21, ("w0", "n0")).finish(30, "Failed")
    job.wrote(0, resize("start", 0, 1, 3), rows=(row(8, 1, 40),)).judged(0, 25, state="lost")
    job.judged(1, 25, state="lost", counted=True)
    job.judged(2, 25, state="failed", counted=True)

    happened = of(job).jobs[0].happened

    assert [(event.kind, event.text, event.steps_lost) for event in happened if event.kind != "queue"][3:] == [
        ("lost", "lost its driver, goes back to its last checkpoint", 15),
        ("checkpoint", "checkpoint of step 25 verified", 0),
        ("retry", "tried again as segment 1 (not counted as a failure)", 0),
        ("grant", "granted 1 GPU on n0", 0),
        ("lost", "lost its driver, goes back to its last checkpoint", 0),
        ("checkpoint", "checkpoint of step 25 verified", 0),
        ("retry", "tried again as segment 2 (failure 1 in a row, 1 are allowed)", 0),
        ("grant", "granted 1 GPU on n0", 0),
        ("end", "failed", 0),
    ]


def test_a_worker_that_breaks_while_its_driver_goes_on_is_told() -> None:
    """A worker's pod that failed under a driver at work; not one that only followed its driver."""
    job = Building(name="a").grant(1, ("w0", "n0"), ("w1", "n1")).publish("w0", "w1")
    job.end(f"{job.train}.worker(w1)", 8, "Failed")
    job.end(f"{job.train}.driver", 12, "Failed")
    job.end(f"{job.train}.worker(w0)", 13, "Failed")

    told = [(event.at_s - START_S, event.text) for event in of(job).jobs[0].happened if event.kind == "crash"]

    assert told == [(8.0, "worker w1 on n1 is gone")]


def test_a_crash_is_told_as_those_who_go_on_and_the_one_who_comes_back() -> None:
    """A driver writes both changes of the world; each says what it was."""
    job = Building(name="a").grant(1, ("w0", "n0"), ("w1", "n1")).publish("w0", "w1")
    job.wrote(0, resize("start", 0, 2, 3), resize("replace", 2, 1, 9, lost=1), resize("replace", 1, 2, 10))

    told = [(event.text, event.steps_lost) for event in of(job).jobs[0].happened if event.kind == "replace"]

    assert told == [
        ("a rank crashed, the others go on (2 -> 1)", 1),
        ("a crashed rank is replaced in place (1 -> 2)", 0),
    ]


def test_events_of_one_moment_stand_as_one_follows_from_the_other() -> None:
    """A checkpoint is verified before the next wait begins, and a wait before its grant."""
    job = Building(name="a").grant(1, ("w0", "n0")).publish("w0").stop(9, "resize", "w0").judged(0, 5)
    job.nodes[f"{job.outer}.gate"]["startedAt"] = at(9.5)
    job.grant(9.5, ("w0", "n0"))

    told = [event.kind for event in of(job).jobs[0].happened if event.at_s == START_S + 9.5]

    assert told == ["checkpoint", "queue", "grant"]


def test_what_only_the_scheduler_knows_is_told() -> None:
    """A worker that it gave up, a request that it refused."""
    job = Building(name="a").grant(1, ("w0", "n0"))
    rounds = (
        decision(9, 1, {}, act("a", "Evict", worker_id="w0", reason="not ready 8 s after its grant")),
        decision(10, 1, {}, act("a", "Refuse", reason="min-gpus above max-gpus")),
    )

    told = [(event.kind, event.text, event.reason) for event in of(job, rounds=rounds).jobs[0].happened[3:]]

    assert told == [
        ("evict", "worker w0 is given up", "not ready 8 s after its grant"),
        ("refuse", "refused at its gate", "min-gpus above max-gpus"),
    ]


def test_holds_without_slots_get_the_lowest_free_ones() -> None:
    """Two holds at one time never share a slot of a node; one that comes later takes what became free."""
    first = Building(name="a", uid="1").grant(0, ("w0", "n0"), ("w1", "n0")).leave(10, "w0")
    second = Building(name="b", uid="2", submitted=5).grant(12, ("w0", "n0"))

    made = of(first, second)

    assert [[held.slots for held in job.life.segments[0].holdings] for job in made.jobs] == [[(0,), (1,)], [(0,)]]


def test_utilisation_counts_holds_out_of_all_slots() -> None:
    """Held GPU seconds out of slots times time, from first submission to last end."""
    made = of(Building(name="a").grant(0, ("w0", "n0"), ("w1", "n0")).publish("w0", "w1").stop(49, "done", "w0", "w1"))

    assert made.to_s - made.from_s == 50
    assert made.utilisation == pytest.approx(2 * 49 / (4 * 50))
    assert made.busy() == ((START_S, 2), (START_S + 49, 0))


def test_the_table_has_a_line_per_job() -> None:
    """Waiting, running, resizes by kind, standing still, steps lost, last metric, as people read them."""
    assert table.rows(five_jobs())[:2] == [
        [
            "digits",
            "Succeeded",
            "33s",
            "2m17s",
            "2m51s",
            "1 grown, 2 shrunk, 1 preempted, 1 resumed",
            "0.44s",
            "0",
            "accuracy 97.8%",
        ],
        ["text", "Succeeded", "42s", "1m38s", "2m21s", "1 preempted, 1 resumed", "0.00s", "0", "accuracy 59.6%"],
    ]
    assert table.total(five_jobs()) == "3 of 5 jobs succeeded in 2m55s; GPUs held 82% of the time"


def test_the_record_as_json_has_everything_and_no_surprises() -> None:
    """One document: nodes, jobs with events, numbers and reports; its keys are what readers rely on."""
    made = document(five_jobs())

    assert sorted(made) == [
        *("busy", "from_s", "jobs", "nodes", "slots", "statistics", "taken_s", "to_s"),
        *("utilisation", "version", "waiting"),
    ]
    assert made["nodes"] == [{"name": name, "slots": 2, "from_s": None, "to_s": None} for name in ("n0", "n1")]
    assert sorted(made["statistics"]) == ["jct_s", "preempted_s", "queue_s", "starting_s", "training_s"]
    assert {"label", "phase", "events", "numbers", "reports", "segments", "asked"} <= set(made["jobs"][0])


def test_every_key_of_the_record_is_in_the_contracts() -> None:
    """Readers rely on what section 10 says: a key that is added is written there."""
    made = document(five_jobs())
    job = made["jobs"][0]
    segment = job["segments"][0]
    parts = (made, *made["nodes"], job, segment, *segment["holdings"], *job["events"], job["numbers"])
    keys = {key for part in parts for key in part} | set(made["statistics"]) | set(made["statistics"]["jct_s"])
    section = CONTRACTS.read_text(encoding="utf-8").partition("\n## 10. ")[2].partition("\n## ")[0]

    assert sorted(key for key in keys if f"`{key}`" not in section) == []


@pytest.mark.parametrize(
    ("row_", "said"),
    [
        (
            {"actions": [{"job": "a/train", "action": "Grant", "workers": [{"node": "n0", "gpus": 2}]}]},
            "a starts on 2 on n0",
        ),
        ({"actions": [{"job": "a/train", "action": "Publish", "worker_ids": ["w0", "w1"]}]}, "a trains on 2"),
        ({"actions": [{"job": "p/eval", "action": "Refuse", "reason": "too big"}]}, "p/eval is refused: too big"),
        ({"decision": 4, "gpus": {"a/train": 2}}, "decision 4: a 2"),
        ({"fault": "policy raised"}, "fault: policy raised"),
    ],
)
def test_rounds_in_words(row_: dict[str, object], said: str) -> None:
    """A round reads as what it did, else as what it decided."""
    assert words(row_) == said


def test_only_the_last_rounds_are_shown() -> None:
    """The newest come last."""
    rounds = [{"time_s": START_S + number, "fault": str(number)} for number in range(5)]

    assert [text.rpartition(" ")[2] for text in decisions(rounds, 2)] == ["3", "4"]
