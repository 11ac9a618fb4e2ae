"""A training script for tests of the driver: a tiny model whose step takes as long as it is told.

``python train_tiny.py STEPS STEP_S [FAILS_AT [LEAVES_AT]]``: one epoch of so many steps; it may fail at one of them, or
leave without a word. With ``TINY_HANGS`` set it never gets as far as joining, with
``TINY_HANGS_AT`` as far as the end of that step.
"""

import os
import sys
import threading
import time

import torch

from voda_flows.runtime import session

STEPS, STEP_S = int(sys.argv[1]), float(sys.argv[2])
FAILS_AT = int(sys.argv[3]) if len(sys.argv) > 3 else -1
LEAVES_AT = int(sys.argv[4]) if len(sys.argv) > 4 else -1
if "TINY_HANGS" in os.environ:
    threading.Event().wait()
HANGS_AT = int(os.environ.get("TINY_HANGS_AT", "-1"))
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
samples = torch.randn(STEPS * 12, 16)
sampler = session.Sampler(len(samples), batch=12)
state = session.State(model=model, optimizer=optimizer, sampler=sampler)


@session.elastic(session.Options(report_every=10))
def train(state: session.State) -> None:
    """One epoch of STEPS steps."""
    for _epoch in session.epochs(state, 1):
        for indices in sampler:
            if state.step == FAILS_AT:
                raise RuntimeError(f"fails at step {FAILS_AT}")
            if state.step == HANGS_AT:
                threading.Event().wait()
            if state.step == LEAVES_AT:
                os._exit(0)
            optimizer.zero_grad()
            loss = model(samples[indices]).pow(2).mean()
            loss.backward()
            optimizer.step()
            time.sleep(STEP_S)
            session.commit(state, loss)


train(state)
