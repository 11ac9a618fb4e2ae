"""The driver's loop: documents, agents' messages and the launcher's decisions in; orders to agents and launcher out.

One thread takes events from one queue; after each it *converges*: compares the workers that are wanted and ready with
the world that trains, and has the launcher change it when they differ. The newcomers of a change stand at the door
before the others hear of it, so training stands still only for the change of the world itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

from voda_flows.runtime.channel import Party
from voda_flows.runtime.document import Addressee, Allocation, DocumentFile, parse, why_ignored
from voda_flows.runtime.driver_crew import Crew
from voda_flows.runtime.driver_events import (
    Admit,
    EventQueue,
    LauncherEnded,
    LauncherEvents,
    Resetting,
    ResetWanted,
    Terminated,
    WorldDecided,
)  # fmt: skip
from voda_flows.runtime.driver_link import AgentLink, Heard, LinkDown, LinkTerms, LinkUp
from voda_flows.runtime.driver_resizes import STOP, Resize, Resizes, kind_of
from voda_flows.runtime.driver_roster import CONNECTING, DRAINING, GONE, READY, RUNNING, STARTING, Life, Roster
from voda_flows.runtime.driver_story import Story
from voda_flows.runtime.driver_world import World
from voda_flows.runtime.errors import BadDocument
from voda_flows.runtime.launch import Launcher, Member, open_launcher
from voda_flows.runtime.log import open_log
from voda_flows.runtime.segment_folder import STOPPED, End, append_line, claim

if TYPE_CHECKING:
    from voda_flows.runtime.driver_board import Board
    from voda_flows.runtime.environment import DriverEnvironment
    from voda_flows.runtime.lines import Message

LOG = open_log("driver")
POLL_S = 0.02  # between looks at the document's file
END_GRACE_S = 5.0  # for ranks that outlive the end of the others
_KILLED = -9
_LEFT = 1  # the exit code that a rank is taken for that ended with 0 and without a word


class Driver:
    """One segment of a job, from its first document to its end."""

    def __init__(self, environment: DriverEnvironment, key: bytes, board: Board, queue: EventQueue) -> None:
        self._environment, self._board, self._queue = environment, board, queue
        self._me = Addressee(job=environment.job, driver_uid=environment.pod_uid, segment=environment.segment)
        party = Party(job=environment.job, segment=environment.segment, driver_uid=environment.pod_uid)
        terms = LinkTerms(key=key, party=party, timeout_s=environment.agent_timeout_s, tell=queue.put)
        self._document = DocumentFile(environment.allocation_file)
        self._roster = Roster(environment.restart_limit)
        self._crew = Crew(self._roster, terms, environment.command, self._rank_environment)
        self._world = World()
        self._story = Story(environment, board)
        self._resizes = Resizes(lambda record: append_line(environment.segment_folder / "resizes.jsonl", record))
        self._allocation: Allocation | None = None
        self._document_s = 0.0
        self._launcher: Launcher | None = None
        self._links: dict[str, AgentLink] = {}  # by host, of lives that were in a world; read by launcher threads
        self._begun = False
        self._stopping = False
        self._stop_s = 0.0
        self._told: frozenset[str] | None = None  # hosts of the change that ranks were last told of
        self._crashed_s: float | None = None
        self._give_up_s: float | None = None
        self._end: End | None = None
        self._handlers: dict[type, Callable[[Any], None]] = {
            LinkUp: self._link_up, LinkDown: self._link_down, Heard: self._heard, WorldDecided: self._decided,
            Admit: self._admit, ResetWanted: self._tell_reset, Resetting: self._resetting,
            LauncherEnded: self._launcher_ended, Terminated: self._terminated,
        }  # fmt: skip
        self._words: dict[str, Callable[[Life, Message], None]] = {
            "from": self._rank_says, "exited": self._rank_exited, "leaving": self._agent_leaves,
        }  # fmt: skip
        self._publish()

    def run(self, beat: Callable[[], None]) -> End:
        """Live through the segment, telling each turn by ``beat``; how it ended."""
        while self._end is None:
            beat()
            event = self._queue.next(POLL_S)
            text = self._document.changed()
            if text is not None:
                self._read(text)
            if event is not None:
                self._handlers[type(event)](event)
            if self._end is None:
                self._converge()
                self._keep_limits(time.monotonic())
            if event is not None or text is not None:
                self._publish()
        self._story.end(self._end)
        self._publish()
        return self._end

    def say_goodbye(self, limit_s: float) -> None:
        """End all agents and the launcher, now that the end is written down; agents end what ranks are left."""
        self._story.settle()
        self._crew.say_goodbye(limit_s)
        if self._launcher is not None:
            self._launcher.stop()

    # the document

    def _read(self, text: str) -> None:
        try:
            allocation = parse(text)
        except BadDocument as fault:
            LOG.error("%s", fault)  # noqa: TRY400 - the message says it all
            return
        seen = self._allocation.generation if self._allocation else -1
        reason = why_ignored(allocation, self._me, seen)
        if reason is not None:
            LOG.info("document ignored because=%s", reason)
            return
        LOG.info("document generation=%d workers=%s stop=%s", allocation.generation,
                 ",".join(worker.id for worker in allocation.workers), allocation.stop)  # fmt: skip
        self._take(allocation)

    def _take(self, allocation: Allocation) -> None:
        self._allocation, self._document_s = allocation, time.time()
        if self._launcher is None:
            fresh = claim(self._environment.checkpoint_root, self._environment.segment, self._environment.pod_uid)
            LOG.info("segment folder=%s fresh=%s", self._environment.segment_folder, fresh)
            slots = min((worker.slots for worker in allocation.workers), default=1)
            events = LauncherEvents(self._queue, self._mark_removed)
            self._launcher = open_launcher(self._environment, allocation.min_workers * slots, events)
        why = self._roster.why_stop(allocation, begun=self._begun)
        if why is not None:
            self._stop(why)
            return
        for worker_id in self._roster.departures(allocation):
            self._crew.drop(worker_id)
        for worker in self._roster.arrivals(allocation):
            self._crew.begin(worker, self._document_s)
        self._allow()

    def _allow(self) -> None:
        if self._launcher is not None:
            self._launcher.allow([life.worker.address for life in self._roster if life.phase != GONE])

    # ranks and their ends

    def _rank_environment(self, host: str, slot: int) -> dict[str, str]:
        assert self._launcher is not None, "ranks are started after the launcher"
        return {**self._story.rank_environment(), **self._launcher.environment(host, slot)}

    def _rank_ended(self, life: Life, slot: int, code: int, *, lost: str = "") -> None:
        """A rank has ended, or is as good as that because its agent was ``lost``."""
        if slot in life.ended:
            return
        joined = life.phase == RUNNING
        if life.phase in (STARTING, READY) or (joined and slot not in life.said_end):
            life.failure = life.failure or self._story.left(life.host, code, joined=joined, lost=lost)
            code = code or _LEFT
        life.ended[slot] = code
        assert self._launcher is not None, "ranks are started after the launcher"
        if code and life.phase == RUNNING:
            LOG.warning("crash host=%s slot=%d code=%d", life.host, slot, code)
            self._crashed_s = time.time()
            self._world.leave(time.monotonic())
            self._crew.tell_running({"type": "broken"})  # before a world without the crashed rank can be decided
        if life.phase in (RUNNING, DRAINING):
            self._launcher.exited(life.host, slot, code)
        if (code or life.phase != RUNNING) and life.living:
            self._crew.send(life, {"type": "kill", "host": life.host})  # a worker lives and dies as a whole
        if not life.living:
            self._crew.over(life)

    # agents

    def _link_up(self, event: LinkUp) -> None:
        for life in self._roster.on_link(event.link):
            LOG.info("agent worker=%s address=%s", life.worker.id, life.worker.address)
            self._crew.start_ranks(life)

    def _link_down(self, event: LinkDown) -> None:
        for life in self._roster.on_link(event.link):
            LOG.warning("agent gone worker=%s because=%s", life.worker.id, event.reason)
            if life.phase == CONNECTING:
                self._crew.never_reached(life, event.reason)
                continue
            for slot in life.living:
                self._rank_ended(life, slot, _KILLED, lost=event.reason)

    def _heard(self, event: Heard) -> None:
        message = event.message
        act = self._words.get(message["type"])
        lives = self._roster.on_link(event.link)
        host = message.get("host")
        for life in lives:
            if act is not None and host in (None, life.host):
                act(life, message)

    def _agent_leaves(self, life: Life, _message: Message) -> None:
        LOG.info("agent is told to end worker=%s", life.worker.id)
        self._crew.drop(life.worker.id)
        if self._allocation is not None and self._roster.num_standing() < self._allocation.min_workers:
            self._stop("too few workers would stay")

    # ranks

    def _rank_exited(self, life: Life, message: Message) -> None:
        self._rank_ended(life, int(message["slot"]), int(message["code"]))

    def _rank_says(self, life: Life, message: Message) -> None:
        slot, said = int(message["slot"]), message["message"]
        kind = said["type"]
        if kind == "ready":
            life.ready.add(slot)
            if life.phase == STARTING and len(life.ready) == len(life.slots):
                life.phase = READY
        elif kind == "joined" and self._world.join(life.host, slot):
            self._story.begin(said)
        elif kind == "progress" and self._world.is_first(life.host, slot):
            self._progress(said)
        elif kind == "resized":
            self._resizes.resized(said)
        elif kind == "row":
            self._board.add_row(said["row"])
        elif kind == "end":
            life.said_end.add(slot)
            life.failure = life.failure or self._story.rank_end(life.host, said)
            self._give_up_s = self._give_up_s or time.monotonic() + self._environment.reset_timeout_s

    def _progress(self, said: Message) -> None:
        self._story.progress(said)
        if not self._world.step():
            return
        self._told = self._crashed_s = None
        self._resizes.first_step(float(said["time_s"]))

    # the launcher

    def _decided(self, event: WorldDecided) -> None:
        old_hosts, from_size = self._world.hosts, self._resizes.from_size(self._world.size)
        self._world.decide(event.members)
        self._roster.leave_out(set(self._world.hosts))
        newcomers = [self._roster.by_host(host) for host in self._world.hosts - old_hosts]
        for life in newcomers:
            if life is not None:
                life.phase = RUNNING
        returned = [life.cause_s for life in newcomers if life is not None and life.after_crash]
        crashed_s = self._crashed_s or min(returned, default=None)
        generation = self._allocation.generation if self._allocation else 0
        self._resizes.begin(Resize(
            generation=generation,
            kind=kind_of(from_size, self._world.size, crashed=crashed_s is not None),
            from_size=from_size,
            to_size=self._world.size,
            document_s=crashed_s or self._document_s,
            decided_s=time.time(),
        ))  # fmt: skip
        LOG.info("world size=%d ranks=%s", self._world.size, ",".join(member.host for member in event.members))

    def _mark_removed(self, members: Sequence[Member]) -> None:
        """Tell agents whose ranks are left out, before those ranks hear it and abort (in the launcher's thread)."""
        hosts = {member.host for member in members}
        for host, link in list(self._links.items()):
            if host not in hosts:
                link.send({"type": "removed", "host": host})

    def _admit(self, event: Admit) -> None:
        life = self._roster.by_host(event.host)
        if life is None or life.link is None or event.slot in life.ended:
            assert self._launcher is not None, "only a launcher admits"
            self._launcher.exited(event.host, event.slot, _KILLED)
            return
        self._links[event.host] = life.link
        join = {"type": "join", "environment": dict(event.environment)}
        self._crew.send(life, {"type": "tell", "host": event.host, "slot": event.slot, "message": join})
        if self._stopping:
            self._crew.tell(life, {"type": "stop"})

    def _tell_reset(self, _event: ResetWanted) -> None:
        self._crew.tell_running({"type": "reset"})

    def _resetting(self, _event: Resetting) -> None:
        self._world.leave(time.monotonic())

    def _launcher_ended(self, event: LauncherEnded) -> None:
        LOG.info("launcher ended because=%s", event.message)
        self._give_up_s = time.monotonic() + END_GRACE_S

    def _terminated(self, _event: Terminated) -> None:
        self._stop("SIGTERM")

    def _stop(self, why: str) -> None:
        """Have all ranks checkpoint and end at one step."""
        if self._stopping:
            return
        LOG.info("stop because=%s", why)
        self._stopping, self._stop_s = True, time.monotonic()
        if not self._begun:
            self._end = self._story.nothing_done(f"stopped before it began: {why}")
        self._crew.tell_running({"type": "stop"})

    # what follows

    def _wanted_hosts(self) -> frozenset[str]:
        return frozenset(self._roster.wanted())

    def _converge(self) -> None:
        """Have the launcher make the world that is wanted, when it is another and its newcomers are there."""
        if self._launcher is None or self._allocation is None:
            return
        if not self._begun:
            self._begin(self._allocation)
            return
        wanted, unresolved = self._wanted_hosts(), self._roster.unresolved()
        if not self._world.making and wanted == self._world.hosts and not unresolved:
            self._story.acknowledge(self._allocation.generation)
        if self._world.making or wanted in (self._world.hosts, self._told) or not wanted & self._world.hosts:
            return
        if unresolved and wanted >= self._world.hosts:
            return  # only to grow: all newcomers together
        self._told = wanted
        self._launcher.update(self._roster.wanted())

    def _begin(self, allocation: Allocation) -> None:
        if self._roster.unresolved():
            return
        ready = [life for life in self._roster if life.phase == READY]
        if len(ready) < allocation.min_workers:
            self._end = self._story.too_few(len(ready), allocation.min_workers, self._roster)
            return
        assert self._launcher is not None, "made with the first document"
        self._begun = True
        for life in ready:
            life.phase = RUNNING
        self._world.leave(time.monotonic())
        self._launcher.start({life.host: life.worker.slots for life in ready})

    def _keep_limits(self, now_s: float) -> None:
        self._crew.end_late(now_s, self._environment.setup_timeout_s)
        if not self._begun or self._allocation is None:
            return
        running = [life for life in self._roster if life.phase == RUNNING]
        if not any(life.living for life in running) or (self._give_up_s is not None and now_s > self._give_up_s):
            self._end = self._story.all_ended(stopping=self._stopping)
        elif self._lost_too_many(self._allocation):
            self._end = self._story.failed("fewer workers than the job's least are left")
        elif self._roster.unresolved() and len(self._wanted_hosts()) < self._allocation.min_workers:
            self._world.resetting_since_s = None  # the others wait for a rank that is being replaced
        elif stuck := self._stuck(now_s):
            self._end = self._story.failed(stuck)
        if self._end is not None and self._stopping:
            self._resizes.stopped(self._stop_record(self._allocation))

    def _lost_too_many(self, allocation: Allocation) -> bool:
        """Whether fewer workers stand than the job needs; ranks that end one after the other are no loss."""
        too_few = self._roster.num_standing() < allocation.min_workers
        return too_few and not self._stopping and not self._story.is_done

    def _stuck(self, now_s: float) -> str:
        """What takes longer than it may, empty when nothing does."""
        since_s, limits = self._world.resetting_since_s, self._environment
        if since_s is not None and now_s - since_s > limits.reset_timeout_s:
            return f"a reset did not end within {limits.reset_timeout_s:g} s"
        if self._stopping and now_s - self._stop_s > limits.stop_timeout_s:
            return f"the ranks did not stop within {limits.stop_timeout_s:g} s (VODA_STOP_TIMEOUT)"
        return ""

    def _stop_record(self, allocation: Allocation) -> Resize:
        return Resize(
            generation=allocation.generation, kind=STOP, from_size=self._world.size, to_size=0,
            document_s=self._document_s, decided_s=time.time(), last_step_s=self._story.step_s,
        )  # fmt: skip

    def _publish(self) -> None:
        seen = self._allocation.generation if self._allocation else None
        self._board.publish({
            **self._story.status(),
            "seen_generation": seen,
            "state": self._state(),
            "world_size": self._world.size if self._end is None else 0,
            "workers": self._roster.describe(),
            "resizes": self._resizes.records(),
        })  # fmt: skip

    def _state(self) -> str:
        if self._end is not None:
            return "stopping" if self._end.outcome == STOPPED else self._end.outcome
        if not self._begun:
            return "waiting"
        if self._stopping or self._story.is_done:
            return "stopping"
        return "resetting" if self._world.making else "training"
