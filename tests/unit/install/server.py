"""An API server for tests that keeps what it is told, as far as an installation asks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from urllib.parse import unquote

from tests.unit.kube.fake import FakeTransport, answer, api_of, refused
from voda_flows.kube.api import Api
from voda_flows.kube.transport import APPLY_PATCH, Answer, Request
from voda_flows.objects import Object, has_labels, merge_patch


@dataclass(slots=True)
class Server:
    """An API server.

    Attributes:
        objects: What it has, by path.
        lacks: Paths of kinds that it does not know, such as ``/apis/argoproj.io/``.
        transport: What was asked of it.
    """

    objects: dict[str, Object] = field(default_factory=dict)
    lacks: str = "/none/"
    transport: FakeTransport = field(default_factory=FakeTransport)

    @property
    def api(self) -> Api:
        """Calls to it."""
        self.transport.otherwise = self._answer
        return api_of(self.transport)

    def changes(self) -> list[Request]:
        """What was asked beyond reading and beyond trials."""
        return [
            request for request in self.transport.asked if request.method != "GET" and "dryRun" not in request.query
        ]

    def _answer(self, request: Request) -> Answer:
        path = unquote(request.path)
        if path.startswith(self.lacks):
            return refused(404, "NotFound", "the server could not find the requested resource")
        if request.method == "GET" and path not in self.objects and _is_collection(path):
            return answer(200, {"metadata": {}, "items": self._listed(path, request.query.get("labelSelector", ""))})
        match request.method:
            case "POST":
                return self._kept(f"{path}/{json.loads(request.body or '')['metadata']['name']}", request)
            case "PATCH" if request.content_type == APPLY_PATCH:
                return self._kept(path, request)
        if path not in self.objects:
            return refused(404, "NotFound", "it is not there", name=path.rsplit("/", 1)[-1])
        body = self.objects[path]
        if request.method == "PATCH":
            self.objects[path] = body = merge_patch(body, json.loads(request.body or ""))
        elif request.method == "DELETE":
            del self.objects[path]
        return answer(200, body)

    def _kept(self, path: str, request: Request) -> Answer:
        body, status = json.loads(request.body or ""), 200 if path in self.objects else 201
        body["metadata"] |= {"uid": f"uid of {path}", "resourceVersion": "1"}
        if "dryRun" not in request.query:
            self.objects[path] = merge_patch(self.objects.get(path), body)
        return answer(status, body)

    def _listed(self, path: str, selector: str) -> list[Object]:
        labels = dict(pair.split("=", 1) for pair in selector.split(",") if pair)
        root, _, plural = path.rpartition("/")
        places = [each for each in self.objects if each.startswith(f"{root}/") and each.split("/")[-2] == plural]
        return [self.objects[each] for each in places if has_labels(self.objects[each], labels)]


def _is_collection(path: str) -> bool:
    """Whether a path is that of a kind, and not of one object: the one ends with a plural, the other with its name."""
    parts = path.removeprefix("/apis").removeprefix("/api").strip("/").split("/")
    return (len(parts) - (1 if path.startswith("/api/") else 2)) % 2 == 1
