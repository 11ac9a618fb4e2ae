"""The job's driver: ``python -m voda_flows.runtime.driver``, the process of a driver pod.

It waits for an allocation document that is for this very pod, makes the segment's folder its own, has the agents of
the granted workers start ranks, follows every further document, and ends when training is done (0), stopped at a
checkpoint (0) or failed (1). ``end.json`` in the segment's folder and the exit code say which.
"""

from __future__ import annotations

import os
import signal
import sys

from voda_flows.runtime.channel import read_key
from voda_flows.runtime.driver_board import Board
from voda_flows.runtime.driver_events import EventQueue, Terminated
from voda_flows.runtime.driver_http import serve
from voda_flows.runtime.driver_loop import Driver
from voda_flows.runtime.driver_watch import Watch
from voda_flows.runtime.environment import DRIVER_PORT, read_driver
from voda_flows.runtime.errors import RuntimeFault
from voda_flows.runtime.log import open_log
from voda_flows.runtime.segment_folder import FAILED, write_end

LOG = open_log("driver")
GOODBYE_LIMIT_S = 3.0


def main() -> int:
    """Drive one segment; the exit code."""
    queue = EventQueue()
    signal.signal(signal.SIGTERM, lambda _number, _frame: queue.put(Terminated()))
    try:
        environment = read_driver(os.environ)
        key = read_key(environment.key_file)
        watch = Watch(environment.stall_timeout_s)
        board = Board()
        LOG.info("driver job=%s segment=%d uid=%s", environment.job, environment.segment, environment.pod_uid)
        driver = Driver(environment, key, board, queue)
        http = serve(board, environment.pod_ip, DRIVER_PORT)
        end = driver.run(watch.beat)
    except RuntimeFault as fault:
        LOG.error("cannot go on: %s", fault)  # noqa: TRY400 - the message says it all
        return 1
    watch.close()
    kept = write_end(environment.segment_folder, environment.pod_uid, end)
    LOG.info("end outcome=%s step=%d epoch=%g kept=%s message=%s", end.outcome, end.step, end.epoch, kept, end.message)
    driver.say_goodbye(GOODBYE_LIMIT_S)
    http.shutdown()
    return 1 if end.outcome == FAILED else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of the launcher may wait for ever for ranks that are gone
