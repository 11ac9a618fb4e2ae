"""What pods print, through the API server: whole, or as it grows, and across broken connections."""

from __future__ import annotations

from scheduler_core.errors import NotFound
from tests.unit.kube.fake import FakeTransport, api_of, pod, refused
from voda_flows.kube.pod_logs import FollowedLog, KubeLogs, timed_line
from voda_flows.kube.transport import Answer, AnswerLost
from voda_flows.objects import Object
from voda_flows.world import Line, PodLog

LOG = "GET /api/v1/namespaces/ns/pods/a/log"
A_S = 1_800_000_000.0


def stamped(second: int, text: str) -> bytes:
    """A line as the server gives it."""
    return f"2027-01-15T08:00:{second:02d}.500000000Z {text}".encode()


def opened(transport: FakeTransport, remarks: list[str], *, follow: bool, tail: int | None = None) -> PodLog:
    """The log of pod ``a``, whose main container is one of two."""
    body = {**pod("a", 1), "spec": {"containers": [{"name": "wait"}, {"name": "main"}]}}
    return KubeLogs(api=api_of(transport), remarks=remarks).open({}, body, tail=tail, follow=follow)


def test_a_line_has_the_time_of_its_writing() -> None:
    """To the fraction of a second; one without a time is kept as it is."""
    assert timed_line(stamped(1, "hello you\r")) == Line(text="hello you", from_s=A_S + 1.5, until_s=A_S + 1.5)
    assert timed_line(b"unable to retrieve logs").text == "unable to retrieve logs"


def test_a_whole_log_is_one_request_for_the_main_container() -> None:
    """With its last lines only where these are wanted."""
    transport = FakeTransport()
    transport.on(LOG, Answer(status=200, body=stamped(1, "one") + b"\n" + stamped(2, "two") + b"\n"))

    lines = opened(transport, [], follow=False, tail=2).read(last=True)

    assert [line.text for line in lines] == ["one", "two"]
    assert dict(transport.asked[0].query) == {"container": "main", "timestamps": "true", "tailLines": "2"}


def test_a_container_that_has_not_started_has_said_nothing() -> None:
    """That is no failure; a log that cannot be had is a remark."""
    transport, remarks = FakeTransport(), list[str]()
    waiting = refused(400, "BadRequest", 'container "main" in pod "a" is waiting to start: ContainerCreating')
    transport.on(LOG, waiting, refused(418, "Teapot", "no"))

    assert opened(transport, remarks, follow=False).read(last=True) == []
    assert remarks == []
    assert opened(transport, remarks, follow=False).read(last=True) == []
    assert remarks[0].startswith("a: its output cannot be read")


def until_read(log: PodLog, count: int) -> list[str]:
    """The texts of so many lines."""
    found: list[str] = []
    while len(found) < count:
        found += [line.text for line in log.read(last=False)]
    return found


def test_a_broken_connection_loses_and_repeats_no_line() -> None:
    """It goes on from the last line's second, and leaves out what it has of it."""
    transport = FakeTransport()
    transport.on(LOG, Answer(status=200, body=stamped(3, "three")))
    log = opened(transport, [], follow=True)
    assert isinstance(log, FollowedLog)
    first = transport.streams.get(timeout=30)
    first.given.put(stamped(1, "one"))
    first.given.put(stamped(2, "two"))
    before = until_read(log, 2)
    first.given.put(AnswerLost("reset"))
    second = transport.streams.get(timeout=30)
    for number, text in ((1, "one"), (2, "two"), (3, "three")):
        second.given.put(stamped(number, text))
    second.given.put(None)

    assert (before, [line.text for line in log.read(last=True)]) == (["one", "two"], ["three"])
    assert transport.watches[1].query["sinceTime"] == "2027-01-15T08:00:02.500000000Z"


def test_stamps_that_stand_still_or_go_back_lose_no_line() -> None:
    """What a program writes to its two outputs is stamped apart; only what comes again after a break is left out."""
    transport = FakeTransport()
    transport.on(LOG, Answer(status=200, body=stamped(4, "four")))
    log = opened(transport, [], follow=True)
    first = transport.streams.get(timeout=30)
    for number, text in ((2, "two"), (2, "two too"), (1, "one")):
        first.given.put(stamped(number, text))
    before = until_read(log, 3)
    first.given.put(AnswerLost("reset"))
    second = transport.streams.get(timeout=30)
    for number, text in ((1, "one"), (2, "two"), (2, "two too"), (4, "four"), (3, "three")):
        second.given.put(stamped(number, text))
    second.given.put(None)

    assert before == ["two", "two too", "one"]
    assert [line.text for line in log.read(last=True)] == ["four", "three"]


def test_a_container_that_has_not_started_is_asked_again() -> None:
    """Until it speaks, or its pod is gone."""
    transport = FakeTransport()
    transport.heads = [refused(400, "BadRequest", "waiting to start"), refused(404, "NotFound", "gone", name="a")]
    transport.on(LOG, refused(404, "NotFound", "gone", name="a"))
    log = opened(transport, remarks := list[str](), follow=True)

    assert log.read(last=True) == []
    assert len(transport.watches) == 2
    assert remarks == []


def test_what_a_connection_missed_of_an_ended_pod_is_read_at_the_end() -> None:
    """Once, where it ended before the last lines or said nothing at all."""
    transport = FakeTransport()
    transport.on(LOG, Answer(status=200, body=stamped(1, "one") + b"\n" + stamped(2, "two") + b"\n"))
    log = opened(transport, [], follow=True)
    transport.streams.get(timeout=30).given.put(None)

    assert [line.text for line in log.read(last=True)] == ["one", "two"]
    assert log.read(last=True) == []
    assert len(transport.asked) == 1


def workflow(**nodes: Object) -> Object:
    """A Workflow with these nodes."""
    return {"metadata": {"name": "w", "namespace": "ns"}, "status": {"nodes": nodes}}


def test_output_that_went_with_its_pod_is_remarked_upon_once() -> None:
    """Of those that ran; what was skipped never said anything."""
    ran = {"type": "Pod", "phase": "Succeeded", "finishedAt": "2027-01-15T08:00:00Z", "displayName": "say"}
    skipped = {"type": "Pod", "phase": "Omitted", "finishedAt": "2027-01-15T08:00:00Z", "displayName": "not"}
    there = {**pod("a", 1), "metadata": {"annotations": {"workflows.argoproj.io/node-id": "b"}}}
    logs = KubeLogs(api=api_of(FakeTransport()), remarks=(remarks := list[str]()))

    for _ in range(2):
        logs.gone(workflow(a=ran, b={**ran, "displayName": "here"}, c=skipped), [there])

    assert [said.split(";")[0] for said in remarks] == ["w: the output of say is gone with its pod (deleted)"]
    assert NotFound.exit_code == 3
