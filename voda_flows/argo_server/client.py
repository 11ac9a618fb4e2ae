"""Calls of an argo-server through the package ``argo-workflows``: raw documents in and out.

The package is generated for Argo 3.7, and its models know no other fields: documents pass it by as plain values, in
and out (docs/adr/0015). Its exceptions, and those of urllib3 under it, end here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final
from urllib.parse import quote

import argo_workflows
from argo_workflows.api.workflow_service_api import WorkflowServiceApi
from argo_workflows.api.workflow_template_service_api import WorkflowTemplateServiceApi
from urllib3.exceptions import HTTPError

from scheduler_core.errors import Conflict, Forbidden, InvalidValue, NotFound, Unreachable, VodaError
from voda_flows.argo_server.address import Address
from voda_flows.objects import Object

#: Connecting, and an answer that does not go on: the server answers from a cluster's API, within seconds.
_LIMITS_S: Final = (3.0, 30.0)
#: An answer that goes on may be silent; who waits looks again meanwhile.
_SILENT_S: Final = (3.0, 3600.0)
_HEADERS: Final = {"Accept": "application/json", "Content-Type": "application/json"}
_ERRORS: Final[dict[int, type[VodaError]]] = {
    400: InvalidValue,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: InvalidValue,
}


class Client:
    """Calls of one argo-server; usable from all threads.

    Args:
        where: The server and who asks.
    """

    def __init__(self, where: Address) -> None:
        configuration = argo_workflows.Configuration(host=where.url)
        configuration.api_key = {"BearerToken": where.token}
        configuration.verify_ssl = where.verified
        api = argo_workflows.ApiClient(configuration)
        self._server = where.url
        self._api = api
        self._workflows = WorkflowServiceApi(api)
        self._templates = WorkflowTemplateServiceApi(api)

    def get(self, namespace: str, name: str) -> Object:
        """A Workflow.

        Raises:
            NotFound: There is none.
        """
        return self._document("get workflow", self._workflows.get_workflow, namespace, name)

    def template(self, namespace: str, name: str) -> Object:
        """A WorkflowTemplate.

        Raises:
            NotFound: There is none.
        """
        return self._document("get workflow template", self._templates.get_workflow_template, namespace, name)

    def list(self, namespace: str, selector: str) -> list[Object]:
        """Workflows with such labels, of one namespace or (where it is empty) of all."""
        more = {"list_options_label_selector": selector} if selector else {}
        found = self._document("list workflows", self._workflows.list_workflows, namespace, **more)
        return list(found.get("items") or ())

    def create(self, namespace: str, document: Object) -> Object:
        """Create a Workflow.

        Raises:
            Conflict: The name is taken.
            InvalidValue: The server refuses it.
        """
        return self._send("create workflow", "POST", f"/{_word(namespace)}", {"workflow": document})

    def lint(self, namespace: str, document: Object) -> None:
        """Ask whether it would take a Workflow.

        Raises:
            InvalidValue: It would not.
        """
        self._send("lint workflow", "POST", f"/{_word(namespace)}/lint", {"workflow": document})

    def shut_down(self, namespace: str, name: str, *, terminate: bool) -> Object:
        """Stop a Workflow, with its exit handlers or without.

        Raises:
            NotFound: There is none.
        """
        verb = "terminate" if terminate else "stop"
        return self._send(f"{verb} workflow", "PUT", f"/{_word(namespace)}/{_word(name)}/{verb}", {})

    def logs(self, namespace: str, name: str, pod: str, **options: str | bool) -> Iterator[str]:
        """What a pod's main container prints, line by line with the time before it."""
        more = {"pod_name": pod, "log_options_container": "main", "log_options_timestamps": True}
        chosen = {f"log_options_{key}": value for key, value in options.items()}
        for row in self._rows("read logs", self._workflows.workflow_logs, namespace, name, **more, **chosen):
            yield str(row.get("content") or "")

    def changes(self, namespace: str) -> Iterator[Object]:
        """Changes of Workflows as they come, each with the Workflow."""
        yield from self._rows("watch workflows", self._workflows.watch_workflows, namespace)

    def close(self) -> None:
        """Let go of connections; whoever waits for lines is woken."""
        self._api.rest_client.pool_manager.clear()
        self._api.close()

    def _send(self, what: str, method: str, path: str, body: Object) -> Object:
        """Send a document, which the package's own calls take as models only."""
        return self._document(
            what, self._api.call_api, f"/api/v1/workflows{path}", method, header_params=dict(_HEADERS), body=body,
            auth_settings=["BearerToken"], _return_http_data_only=True,
        )  # fmt: skip

    def _document(self, what: str, call: Callable[..., Any], *words: Any, **more: Any) -> Object:  # noqa: ANN401 - the package's
        answer = self._call(what, call, *words, _request_timeout=_LIMITS_S, **more)
        try:
            found = json.loads(answer.data)
        except (HTTPError, OSError, ValueError) as wrong:
            raise Unreachable(f"{what}: expected a document of {self._server}, got {wrong}") from wrong
        return found if isinstance(found, dict) else {}

    def _rows(self, what: str, call: Callable[..., Any], *words: Any, **more: Any) -> Iterator[Object]:  # noqa: ANN401 - the package's
        """The results of an answer that goes on: a JSON document a line, or an event a line."""
        answer, rest = self._call(what, call, *words, _request_timeout=_SILENT_S, **more), b""
        with closing(answer):
            try:
                for part in answer.stream(amt=None):
                    *whole, rest = (rest + part).split(b"\n")
                    yield from (row for line in whole if (row := _result(line)))
            except (HTTPError, OSError, ValueError, AttributeError) as lost:  # the last two: closed by another thread
                raise Unreachable(f"{what}: the answer of {self._server} was cut off: {lost}") from lost
        if row := _result(rest):
            yield row

    def _call(self, what: str, call: Callable[..., Any], *words: Any, **more: Any) -> Any:  # noqa: ANN401 - the package's
        try:
            return call(*words, _preload_content=False, **more)
        except argo_workflows.ApiException as refused:
            raise self._error(what, refused) from refused
        except argo_workflows.OpenApiException as wrong:
            raise InvalidValue(f"{what}: the package argo-workflows refuses it: {wrong}") from wrong
        except (HTTPError, OSError) as lost:
            raise Unreachable(
                f"{what}: expected an answer of argo-server {self._server}, got {type(lost).__name__}: {lost}\n"
                "see --argo-server; ARGO_SECURE=false is for a server without TLS"
            ) from lost

    def _error(self, what: str, refused: argo_workflows.ApiException) -> VodaError:
        """An error of ours for an answer that is no success."""
        try:
            said = str(json.loads(refused.body)["message"])
        except (TypeError, ValueError, KeyError):
            said = str(refused.body or refused.reason)[:500]
        kind: type[VodaError] = _ERRORS.get(int(refused.status or 0), VodaError)
        return kind(f"{what}: argo-server {self._server} answered {refused.status}: {said}")


def _word(name: str) -> str:
    """A name as part of a path."""
    return quote(name, safe="")


def _result(line: bytes) -> Object:
    """What a line of an answer that goes on holds, empty for none."""
    text = line.removeprefix(b"data:").strip()
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    result = found.get("result") if isinstance(found, dict) else None
    return result if isinstance(result, dict) else {}
