"""A training script for tests of whole jobs in local mode: many short steps, with a row for each, and a row per epoch.

``python train_life.py SAMPLES STEP_S [HOW]``: as many epochs as the job asks for. HOW makes it misbehave: ``raises``
before it joins, ``hangs`` before it joins, ``hangs-training`` at its fifth step. With ``hurries`` its steps take no
time once it goes on from a checkpoint.
"""

import os
import sys
import threading
import time

import torch

from voda_flows.runtime import session

SAMPLES, STEP_S = int(sys.argv[1]), float(sys.argv[2])
HOW = sys.argv[3] if len(sys.argv) > 3 else ""
if HOW == "hurries" and os.environ.get("VODA_SEGMENT", "0") != "0":
    STEP_S = 0.0
BATCH = 12
if HOW == "raises":
    raise RuntimeError("it never works")
if HOW == "hangs":
    threading.Event().wait()
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
samples = torch.randn(SAMPLES, 16)
sampler = session.Sampler(SAMPLES, batch=BATCH)
state = session.State(model=model, optimizer=optimizer, sampler=sampler)


@session.elastic(session.Options(commit_every=1, report_every=1, scale_lr="none"))
def train(state: session.State) -> None:
    """The job's epochs."""
    for _epoch in session.epochs(state, session.job_epochs(1)):
        for indices in sampler:
            if HOW == "hangs-training" and state.step == 5:
                threading.Event().wait()
            optimizer.zero_grad()
            loss = model(samples[indices]).pow(2).mean()
            loss.backward()
            optimizer.step()
            time.sleep(STEP_S)
            session.commit(state, loss)
        session.report(state)


train(state)
