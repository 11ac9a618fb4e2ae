"""An installation is taken away also where much of it, or Argo itself, has gone before."""

from __future__ import annotations

import pytest

from scheduler_core.errors import NotFound
from tests.unit.install.server import Server
from voda_flows.install.applying import Manner, apply
from voda_flows.install.overlays import Wanted, documents
from voda_flows.install.removing import check_no_jobs, remove

DOCUMENTS = documents(Wanted())


@pytest.mark.parametrize("is_trial", [False, True])
def test_it_is_taken_away_where_argos_definitions_have_gone(is_trial: bool) -> None:
    """With them went all their objects: no jobs, no runs, no templates. The rest is there, and goes."""
    server = Server()
    list(apply(server.api, DOCUMENTS, Manner()))
    server.lacks = "/apis/argoproj.io/"

    check_no_jobs(server.api, DOCUMENTS, everywhere=True)
    removed = list(remove(server.api, DOCUMENTS, is_trial=is_trial))

    gone = {each.key.kind for each in removed if each.what == "deleted"}
    kinds = {body["kind"] for body in DOCUMENTS} - {"CronWorkflow", "WorkflowTemplate", "Namespace"}
    assert gone == kinds


def test_a_server_that_does_not_know_kubernetes_own_kinds_is_none() -> None:
    """It is not said that all of Voda is gone because something else answers there."""
    server = Server(lacks="/")

    with pytest.raises(NotFound, match="expected the API server to know"):
        list(remove(server.api, DOCUMENTS, is_trial=False))


def test_installing_still_needs_argo() -> None:
    """That its kinds are not known is said before anything is changed."""
    server = Server(lacks="/apis/argoproj.io/")

    with pytest.raises(NotFound, match="install Argo Workflows"):
        list(apply(server.api, DOCUMENTS, Manner()))

    assert server.changes() == []
