"""The verbs that look at and end jobs, on a hand-made world."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.unit.cli.world import Said, World
from tests.unit.report.world import Building, resize
from voda_flows.control.settings import configure
from voda_flows.local.pod import write_whole


def running(name: str = "digits", **more: str) -> Building:
    """A job that trains on two slots of n0."""
    job = Building(name=name, asked=more)
    job.grant(1, ("w0", "n0"), ("w1", "n0")).publish("w0", "w1").progress(250, 1000)
    job.pods[f"{name}-worker-0w0"]["metadata"]["annotations"]["voda.dev/slots"] = "0"
    job.pods[f"{name}-worker-0w1"]["metadata"]["annotations"]["voda.dev/slots"] = "1"
    return job


def told(said: Said) -> tuple[str, str]:
    """What was said, by both ways."""
    return said.out, said.err


def test_a_verb_that_is_none_is_a_usage_error_with_a_suggestion(world: World) -> None:
    """Exit 2, and what was probably meant."""
    said = world.voda("sumbit")

    assert (said.code, said.out) == (2, "")
    assert said.err == "error: no such command `sumbit`; did you mean `submit`?\nhint: see `voda --help`\n"


def test_list_has_a_line_per_job(world: World) -> None:
    """Name, phase, GPUs of those asked for, progress."""
    world.add(running())
    world.add(Building(name="rigid", asked={"min-gpus": "2", "max-gpus": "2"}))

    lines = [line.split()[:4] for line in world.voda("list").out.splitlines()]

    assert lines == [
        ["NAME", "STATUS", "GPUS", "PROGRESS"],
        ["digits", "Running", "2/1-4", "25%"],
        ["rigid", "Queued", "0/2", "0%"],
    ]


def test_list_tells_age_and_duration_apart(world: World) -> None:
    """As kubectl and argo do: the age of a job goes on after its end, its duration does not."""
    world.add(Building(name="old").grant(1, ("w0", "n0")).publish("w0").finish(65))

    header, row = (line.split() for line in world.voda("list").out.splitlines())
    told = dict(zip(header, row, strict=True))

    assert told["DURATION"] == "1m05s"
    assert told["AGE"] not in ("1m05s", "-")


def test_list_filters_by_phase_label_and_namespace(world: World) -> None:
    """--status, -l and -n narrow the list; -o name prints names alone."""
    world.add(running())
    world.add(Building(name="rigid"))
    world.store.merge_patch("Workflow", "default", "rigid", {"metadata": {"labels": {"team": "a"}}})

    assert world.voda("list", "--status", "queued", "-o", "name").out == "rigid\n"
    assert world.voda("list", "-l", "team=a", "-o", "name").out == "rigid\n"
    assert world.voda("list", "-n", "elsewhere", "-o", "name").out == ""
    assert world.voda("list", "--status", "Failed").err == "no job fits these options\n"


def test_list_refuses_a_phase_that_is_none(world: World) -> None:
    """A typo is no empty list: exit 2, and the phases there are."""
    said = world.voda("list", "--status", "runing")

    assert (said.code, said.out) == (2, "")
    assert "'runing' is not one of 'queued', 'pending', 'starting', 'running'" in said.err.lower()


def test_list_as_json_is_a_list_of_the_objects(world: World) -> None:
    """As kubectl prints several objects."""
    world.add(running())

    found = world.json("list")

    assert (found["kind"], [body["metadata"]["name"] for body in found["items"]]) == ("List", ["digits"])


def test_get_shows_a_life(world: World) -> None:
    """Phase, what it asked for, what it has and where, and what happened."""
    world.add(running())

    said = world.voda("get", "digits")

    assert said.code == 0
    for line in ("Status:     Running", "Has:        2 GPUs: n0 slot 0,1", "Progress:   25%"):
        assert line in said.out
    assert "granted 2 GPUs on n0" in said.out


def test_get_says_why_a_job_is_tried_again(world: World) -> None:
    """What its driver said at the end, and where the rest stands; only until it trains again."""
    job = Building(name="digits").grant(1, ("w0", "n0")).publish("w0").stop(9, "lost", "w0")
    made = world.add(job.grant(10, ("w0", "n0")))
    folder = world.home / "volumes" / "voda" / "default" / made["metadata"]["uid"] / "train"
    (folder / "segment-0").mkdir(parents=True)
    (folder / "segment-0" / "end.json").write_text('{"outcome": "failed", "message": "exit code 1"}')
    message = "Message:    failed, is tried again: exit code 1; see: voda logs digits\n"
    assert message in world.voda("get", "digits").out

    (folder / "segment-1").mkdir()
    (folder / "segment-1" / "resizes.jsonl").write_text(json.dumps({**resize("start", 0, 1, 60), "at_s": 0}) + "\n")

    assert "Message" not in world.voda("get", "digits").out


@pytest.mark.parametrize("verb", [("get", "digits"), ("explain", "digits"), ("list", "-o", "wide")])
def test_a_job_that_failed_is_told_with_its_driver_s_reason(world: World, verb: tuple[str, ...]) -> None:
    """Argo only says which node failed first; the driver wrote down why."""
    job = Building(name="digits").grant(1, ("w0", "n0")).publish("w0").finish(10, "Failed")
    made = world.add(job)
    folder = world.home / "volumes" / "voda" / "default" / made["metadata"]["uid"] / "train" / "segment-0"
    folder.mkdir(parents=True)
    (folder / "end.json").write_text('{"outcome": "failed", "message": "exit code 1"}')

    assert "exit code 1" in world.voda(*verb).out


def test_get_wide_draws_the_nodes(world: World) -> None:
    """As `argo get` does."""
    world.add(running())

    assert "├─" in world.voda("get", "digits", "-o", "wide").out


def test_the_latest_job_has_a_name_of_its_own(world: World) -> None:
    """@latest is the Workflow that was created last."""
    world.add(running("first"))
    world.add(Building(name="second", submitted=50))

    assert world.voda("get", "@latest", "-o", "name").out == "second\n"


@pytest.mark.parametrize("verb", ["get", "logs", "wait", "stop", "delete", "explain"])
def test_a_job_that_is_not_there_is_not_found(world: World, verb: str) -> None:
    """Exit 3, and the name that was probably meant."""
    world.add(running())

    said = world.voda(verb, "digts")

    assert said.code == 3
    assert said.err.startswith("error: no job 'digts' in namespace 'default'; did you mean 'digits'?")


def test_without_a_world_every_verb_says_how_to_start_one(tmp_path: Path, world: World) -> None:
    """Exit 3, and nothing is made."""
    said = world.voda("list", "--home", str(tmp_path / "none"))

    assert said.code == 3
    assert "hint: start one with `voda up`" in said.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "verb",
    [("explain", "digits"), ("wait", "digits", "--timeout", "0"), ("watch", "--once"), ("list",), ("get", "digits")],
)
def test_who_waits_in_vain_is_told(world: World, verb: tuple[str, ...]) -> None:
    """While nothing runs jobs, those who ask when theirs will run hear it."""
    world.add(running())
    assert "voda up" not in "".join(told(world.voda(*verb)))

    world.stop()

    assert "nothing runs jobs here now; `voda up` starts it again\n" in "".join(told(world.voda(*verb)))


def test_an_engine_that_was_stopped_is_told(world: World) -> None:
    """It is there, and does nothing: who waits for it hears what wakes it."""
    world.add(running())
    with subprocess.Popen(["sleep", "600"]) as engine:
        engine.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, engine.pid, os.WSTOPPED | os.WNOWAIT)
        ticks = int(Path(f"/proc/{engine.pid}/stat").read_text().rpartition(")")[2].split()[19])
        write_whole(world.home / "engine.json", {"pid": engine.pid, "ticks": ticks})
        said = world.voda("list")
        engine.kill()

    assert said.err == (
        f"warning: nothing runs jobs here now: the engine (pid {engine.pid}) was stopped; `voda up` wakes it\n"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        ("--nodes", "2xx"),
        ("--set", "foo=1"),
        ("--set", "policy"),
        ("--set", "policy=nope"),
        ("--set", "decide_interval_s=soon"),
    ],
)
def test_a_wrong_option_of_up_leaves_no_world_behind(tmp_path: Path, world: World, wrong: tuple[str, str]) -> None:
    """Exit 2, and what follows still says that nothing was started."""
    said = world.voda("up", "--home", str(tmp_path / "none"), *wrong)

    assert (said.code, said.out) == (2, "")
    assert not (tmp_path / "none").exists()


def test_logs_mark_who_speaks(world: World) -> None:
    """Several pods: each line is marked; one pod: its lines alone. Ended pods count too."""
    world.add(running())
    world.log("digits-driver-0", "world size=2\n")
    world.log("digits-worker-0w0", "epoch 0\nepoch 1\nunfinished")

    everything = world.voda("logs", "digits")
    worker = world.voda("logs", "digits", "--worker", "w0", "--tail", "1")

    assert sorted(everything.out.splitlines()) == sorted(
        ["driver | world size=2", "w0 | epoch 0", "w0 | epoch 1", "w0 | unfinished"]
    )
    assert worker.out == "unfinished\n"


def test_logs_of_a_worker_that_never_was(world: World) -> None:
    """Exit 3 where no pod fits."""
    world.add(running())

    assert world.voda("logs", "digits", "--worker", "w7").code == 3


def test_following_logs_ends_with_the_workflow(world: World) -> None:
    """-f prints what comes and returns when the Workflow has ended."""
    world.add(running())
    world.log("digits-driver-0", "first\n")

    def finish() -> None:
        world.log("digits-driver-0", "first\nsecond\n")
        world.end_pods("digits")
        world.store.merge_patch("Workflow", "default", "digits", {"status": {"phase": "Succeeded"}})

    later = threading.Timer(0.2, finish)
    later.start()
    said = world.voda("logs", "digits", "-f", "--driver")
    later.join()

    assert (said.code, said.out) == (0, "first\nsecond\n")


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1), ("Error", 1)])
def test_wait_returns_what_became_of_the_job(world: World, phase: str, code: int) -> None:
    """0 when it succeeded, 1 when it failed, as soon as it has ended."""
    world.add(running())
    later = threading.Timer(
        0.1, lambda: world.store.merge_patch("Workflow", "default", "digits", {"status": {"phase": phase}})
    )
    later.start()

    said = world.voda("wait", "digits", "--timeout", "20s")

    assert (said.code, said.out, said.err) == (code, "", f"digits {phase}\n")


def test_wait_gives_up_in_time(world: World) -> None:
    """Exit 5 when the time is over first."""
    world.add(running())

    said = world.voda("wait", "digits", "--timeout", "0.05s")

    assert said.code == 5
    assert "expected digits to end within 0.05 s, not yet" in said.err


def test_a_timeout_that_is_none_is_refused(world: World) -> None:
    """Exit 2, and what a time looks like."""
    world.add(running())

    said = world.voda("wait", "digits", "--timeout", "soon")

    assert (said.code, said.err) == (2, "error: --timeout: expected a time such as 90s, 5m or 2h, found 'soon'\n")


def test_stop_asks_the_workflow_to_shut_down(world: World) -> None:
    """As `argo stop`: spec.shutdown; what has ended cannot be stopped (exit 4)."""
    world.add(running())
    world.add(Building(name="old").finish(5))

    assert world.voda("stop", "digits").out == "digits stopped\n"
    assert world.store.get("Workflow", "default", "digits")["spec"]["shutdown"] == "Stop"
    assert world.voda("stop", "old").code == 4


def test_delete_asks_for_deletion_and_needs_to_be_told_what(world: World) -> None:
    """Names, --all or -l, never by accident everything."""
    world.add(running())

    assert world.voda("delete").code == 2
    assert world.voda("delete", "digits", "--no-wait").out == "digits deleted\n"
    assert "deletionTimestamp" in world.store.get("Workflow", "default", "digits")["metadata"]


def test_delete_waits_for_nobody_where_nothing_runs_jobs(world: World) -> None:
    """A deletion that nobody carries out now is kept and said, not waited for."""
    world.add(running())
    world.stop()

    said = world.voda("delete", "digits")

    assert (said.code, said.out) == (0, "")
    assert "digits is marked for deletion" in said.err
    assert "voda up" in said.err
    assert "deletionTimestamp" in world.store.get("Workflow", "default", "digits")["metadata"]


def test_a_node_that_is_not_there_is_answered_with_those_that_are(world: World) -> None:
    """Exit 3, as for jobs."""
    said = world.voda("nodes", "nn0")

    assert (said.code, said.out, said.err) == (3, "", "error: no node 'nn0'; did you mean 'n0'?\n")


def test_nodes_show_who_holds_their_slots(world: World) -> None:
    """A slot is free or held by a job, by the job's name."""
    world.add(running())

    rows = [line.split(maxsplit=3) for line in world.voda("nodes").out.splitlines()]

    assert rows[1:] == [["n0", "2", "0", "digits, digits"], ["n1", "2", "2", "free, free"]]


def test_the_queue_is_in_order_of_class_then_arrival(world: World) -> None:
    """Higher classes first; within a class who came first."""
    world.add(Building(name="late", submitted=9))
    world.add(Building(name="early", submitted=1).say("waits for 2 GPUs"))
    world.add(Building(name="urgent", submitted=20, asked={"priority": "high"}))
    world.add(running())

    items = world.json("queue")["items"]

    assert [(item["place"], item["job"], item["message"]) for item in items] == [
        (1, "urgent", ""),
        (2, "early", "waits for 2 GPUs"),
        (3, "late", ""),
    ]


def test_the_queue_shows_what_each_queue_has(world: World) -> None:
    """Own GPUs, used ones, borrowed ones and the most it may have, for people and for programs."""
    queues = json.dumps({"default": {"nominal_gpus": {"": 1}, "borrow_limit": {"": 2}}, "lab": {}})
    configure(world.store, {"queues": queues}, where="a test")
    world.add(running())
    world.add(Building(name="late", asked={"min-gpus": "2"}))

    said = world.voda("queue").out.splitlines()

    assert [line.split() for line in said[-3:]] == [
        ["QUEUE", "TYPE", "NOMINAL", "USED", "BORROWED", "MOST", "WAITING"],
        ["default", "-", "1", "2", "1", "3", "1", "jobs,", "2", "GPUs"],
        ["lab", "-", "-", "0", "0", "-", "-"],
    ]
    assert world.json("queue")["queues"][0] == {
        "queue": "default",
        "gpuType": "",
        "nominalGpus": 1,
        "usedGpus": 2,
        "borrowedGpus": 1,
        "mostGpus": 3,
        "waitingJobs": 1,
        "waitingGpus": 2,
    }


def test_policies_are_listed_with_source_and_needs(world: World) -> None:
    """All of ours, and which of them is set."""
    configure(world.store, {"policy": "afs_l"}, where="a test")

    items = world.json("policies")["items"]

    assert [item["name"] for item in items] == [
        "afs_l",
        "elastic_fifo",
        "elastic_srjf",
        "elastic_tiresias",
        "ffdl",
        "fifo",
        "srjf",
        "tiresias",
    ]
    assert items[0] == {
        "name": "afs_l",
        "source": "AFS-L, NSDI 2021",
        "needs": ["speed tables", "remaining time"],
        "elastic": True,
        "summary": "each next worker to the job to which it is worth most, short jobs before long ones",
        "set": True,
    }
    assert world.voda("policies").out.splitlines()[1].split()[:2] == ["afs_l*", "yes"]


def test_explain_has_codes_for_programs(world: World) -> None:
    """The same sentences, each with what kind of thing it says."""
    world.add(running())
    world.add(Building(name="old").finish(5, "Failed"))

    (job,) = world.json("explain", "digits")["jobs"]

    assert [reason["text"] for reason in job["reasons"]] == job["because"]
    assert job["reasons"][0]["code"] == "starting"
    assert [reason["code"] for reason in world.json("explain", "old")["jobs"][0]["reasons"]] == ["ended"]


def test_watch_prints_a_line_where_there_is_no_terminal(world: World) -> None:
    """Slots and jobs in one line, for pipes."""
    world.add(running())

    said = world.voda("watch", "--once")

    assert said.out.split(" ", 1)[1] == "n0[digits|digits] n1[-|-]  digits Running on 2 25%\n"


def test_report_writes_a_page(world: World, tmp_path: Path) -> None:
    """The table on stdout, the page where it was asked for, its place on stderr."""
    world.add(running())
    page = tmp_path / "r.html"

    said = world.voda("report", "--html", str(page))

    assert said.code == 0
    assert said.out.splitlines()[1].split()[:2] == ["digits", "Running"]
    assert said.err == f"report: {page}\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_explain_calls_a_job_as_the_lists_do(world: World) -> None:
    """A Workflow that is one job goes by its own name."""
    world.add(running())

    assert world.voda("explain", "digits").out.startswith("digits starts on 2 GPUs of 1..4, ")


def test_explain_of_a_job_that_was_submitted_suspended_says_what_begins_it(world: World) -> None:
    """The engine has looked at it and does nothing, so nobody waits for the engine."""
    world.store.create(
        {
            "kind": "Workflow",
            "metadata": {"name": "later"},
            "spec": {"suspend": True, "workflowTemplateRef": {"name": "voda-elastic-job"}},
        }
    )

    assert world.voda("explain", "later").out == (
        "later was submitted suspended, it is not begun; see: voda resume later\n"
    )


def test_explain_says_how_a_job_ended(world: World) -> None:
    """A job that has ended needs no scheduler to be explained."""
    world.add(Building(name="old").finish(5, "Failed"))

    said = world.voda("explain", "old")

    assert said.code == 0
    assert "as Failed" in said.out


def test_a_shell_completes_names_of_jobs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What begins like the word is offered."""
    world.add(running())
    world.add(Building(name="text"))
    monkeypatch.setenv("VODA_HOME", str(world.home))
    ended = subprocess.run(
        [sys.executable, "-c", "from voda_flows.cli import main; main()"],
        env={**os.environ, "_VODA_COMPLETE": "bash_complete", "COMP_WORDS": "voda get di", "COMP_CWORD": "2"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.stdout.split() == ["plain,digits"]
