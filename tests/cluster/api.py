"""A small client of the API server: requests, server-side apply, watches; raw objects in and out.

It is what bringing a cluster up needs and no more, so that nothing has to be installed for it.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from tests.cluster.faults import ClusterError
from voda_flows.objects import Object

LIMIT_S = 30.0
#: A CRD of Argo's is 2.7 MB of schema: seconds of work for the server, on a busy computer many.
APPLY_LIMIT_S = 300.0
BUSY = {http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE, http.client.GATEWAY_TIMEOUT}
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
FIELD_MANAGER = "voda-cluster"
#: Path of each kind that is applied here, up to the namespace.
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class RefusedError(ClusterError):
    """The API server answered with an error.

    Attributes:
        status: The HTTP status.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """Speaks with one server as the holder of one certificate.

    Args:
        url: ``https://address:port``.
        certificates: Folder with ``ca.crt`` and the holder's certificate and key.
        name: Whose certificate it is.
    """

    def __init__(self, url: str, certificates: Path, name: str) -> None:
        self._address = urlsplit(url).netloc
        self._context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        self._context.load_cert_chain(certificates / f"{name}.crt", certificates / f"{name}.key")

    def text(self, path: str) -> str:
        """What a GET answers, as text."""
        return self._request("GET", path).decode()

    def get(self, path: str) -> Object:
        """Read an object or a list."""
        found: Object = json.loads(self._request("GET", path))
        return found

    def post(self, path: str, document: Object) -> Object:
        """Create an object."""
        made: Object = json.loads(self._request("POST", path, json.dumps(document).encode(), "application/json"))
        return made

    def patch(self, path: str, patch: Object) -> Object:
        """Change an object by a merge patch."""
        changed: Object = json.loads(self._request("PATCH", path, json.dumps(patch).encode(), MERGE))
        return changed

    def delete(self, path: str) -> None:
        """Delete an object; one that is not there is no error."""
        try:
            self._request("DELETE", path)
        except RefusedError as refused:
            if refused.status != http.client.NOT_FOUND:
                raise

    def apply(self, document: Object) -> None:
        """Make an object what a document says (server-side apply); of the kinds in ``PATHS``."""
        path = PATHS[document["kind"]].format(document["metadata"].get("namespace"))
        self.apply_text(f"{path}/{document['metadata']['name']}", yaml.safe_dump(document).encode())

    def apply_text(self, path: str, text: bytes) -> None:
        """The same with a document that need not be parsed for it."""
        deadline_s = time.monotonic() + APPLY_LIMIT_S
        while True:
            try:
                self._request("PATCH", f"{path}?fieldManager={FIELD_MANAGER}&force=true", text, APPLY, APPLY_LIMIT_S)
            except RefusedError as refused:
                # The server gives up on a patch after 34 s whatever it is told; the next one finds it less busy.
                if refused.status not in BUSY or time.monotonic() > deadline_s:
                    raise
            else:
                return

    def create_text(self, path: str, text: bytes) -> None:
        """Create an object from a document that need not be parsed for it; one that is there already stays as it is.

        For a large document that is far less work for the server than ``apply_text``, which looks at every field of it.
        """
        deadline_s = time.monotonic() + APPLY_LIMIT_S
        while True:
            try:
                self._request("POST", path, text, "application/yaml", APPLY_LIMIT_S)
            except RefusedError as refused:
                if refused.status == http.client.CONFLICT:  # perhaps our own, whose answer came too late
                    return
                if refused.status not in BUSY or time.monotonic() > deadline_s:
                    raise
            else:
                return

    def watch(self, path: str, version: str, limit_s: float, *, name: str | None = None) -> Iterator[Object]:
        """Objects under a path as they change, until ``limit_s`` is over or the server ends it: list again then.

        Args:
            path: Of a list.
            version: The list's resourceVersion.
            limit_s: Seconds after which the server ends it.
            name: Of the only object that is asked for.
        """
        selected = "" if name is None else f"&fieldSelector=metadata.name%3D{name}"
        with contextlib.suppress(ClusterError):  # who lists again is told so
            for _, found in self.events(f"{path}?watch=1{selected}", version, limit_s):
                yield found

    def events(self, path: str, version: str, limit_s: float) -> Iterator[tuple[str, Object]]:
        """What a watch tells, until ``limit_s`` is over or the server ends it: the kind of each change, the object.

        Args:
            path: Of a list, with ``?watch=1`` and perhaps more.
            version: The list's resourceVersion.
            limit_s: Seconds after which the server ends it.

        Raises:
            RefusedError: The server refuses to go on from there: list again.
            ClusterError: The server is gone.
        """
        asked = f"{path}&resourceVersion={version}&timeoutSeconds={max(1, round(limit_s))}"
        connection = self._connect(limit_s + LIMIT_S)
        try:
            connection.request("GET", asked)
            for line in connection.getresponse():
                event = json.loads(line)
                if event.get("type") in {None, "ERROR"}:  # the version is too old, or the watch was refused
                    code = int((event.get("object") or event).get("code") or http.client.GONE)
                    raise RefusedError(code, f"GET https://{self._address}{asked}: {line[:500]!r}")
                yield event["type"], event["object"]
        except (OSError, http.client.HTTPException, ValueError) as fault:  # the last: half a line
            raise ClusterError(f"GET https://{self._address}{asked}: expected it to go on, got {fault!r}") from fault
        finally:
            connection.close()

    def wait(self, path: str, name: str, is_so: Callable[[Object], bool], limit_s: float = LIMIT_S) -> Object:
        """Wait until an object is as it should be; returns it.

        Args:
            path: Of the list that it is in.
            name: Of the object.
            is_so: What it should be.
            limit_s: Seconds.

        Raises:
            ClusterError: It was not so in time; with its last status.
        """
        deadline_s = time.monotonic() + limit_s
        while True:
            listed = self.get(f"{path}?fieldSelector=metadata.name%3D{name}")
            rest_s = deadline_s - time.monotonic()
            changes = self.watch(path, listed["metadata"]["resourceVersion"], rest_s, name=name) if rest_s > 0 else ()
            for found in itertools.chain(listed["items"], changes):
                if is_so(found):
                    return dict(found)
            if rest_s <= 0:
                seen = [item.get("status") for item in listed["items"]]
                raise ClusterError(
                    f"{path}/{name}: expected another state within {limit_s:.0f} s, its status is {seen}"
                )

    def wait_until_gone(self, path: str, name: str, limit_s: float = LIMIT_S) -> None:
        """Wait until there is no object of this name under a path.

        Raises:
            ClusterError: There still is one after ``limit_s``.
        """
        deadline_s = time.monotonic() + limit_s
        while (listed := self.get(f"{path}?fieldSelector=metadata.name%3D{name}"))["items"]:
            rest_s = deadline_s - time.monotonic()
            if rest_s <= 0:
                raise ClusterError(f"{path}/{name}: expected it to be gone within {limit_s:.0f} s, it is still there")
            next(iter(self.watch(path, listed["metadata"]["resourceVersion"], rest_s, name=name)), None)

    def _connect(self, limit_s: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._address, timeout=limit_s, context=self._context)

    def _request(
        self, method: str, path: str, body: bytes | None = None, kind: str = "", limit_s: float = LIMIT_S
    ) -> bytes:
        connection = self._connect(limit_s)
        try:
            connection.request(method, path, body, {"Content-Type": kind} if kind else {})
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as fault:
            raise ClusterError(f"{method} https://{self._address}{path}: expected an answer, got {fault!r}") from fault
        finally:
            connection.close()
        if response.status >= http.client.BAD_REQUEST:
            said = f"{response.status}: {answer[:2000].decode(errors='replace')}"
            raise RefusedError(response.status, f"{method} https://{self._address}{path}: {said}")
        return answer
