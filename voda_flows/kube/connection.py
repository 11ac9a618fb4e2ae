"""The connection to an API server: whom to speak with, as whom, and HTTP itself.

The ``kubernetes`` package reads kubeconfigs and service accounts, keeps their tokens fresh and prepares TLS and
proxies; requests and bodies are ours, as raw JSON (docs/adr/0011). Its exceptions and those of urllib3 end here.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.client.rest import RESTClientObject
from urllib3 import exceptions as fault

from scheduler_core.errors import InvalidValue, NotFound, VodaError
from voda_flows.config import near_miss
from voda_flows.kube.cluster import Cluster
from voda_flows.kube.transport import Answer, AnswerLost, Bound, NotSent, Request

#: A server in the same network accepts in milliseconds, and a slow proxy answers within 5 s. One that is silent for
#: so long is asked once more (``retrying.Patience``): its answer may have been lost on the way.
CONNECT_S: Final = 3.0
ANSWER_S: Final = 5.5
_OK = 200
#: Large enough for a scheduler's threads: a watch each, and whoever reads or writes.
_CONNECTIONS = 16
#: What is read at once of an answer with a bound, bytes.
_PART = 65536
_DEFAULT = "~/.kube/config"
_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_ADVICE = "give one by --kubeconfig or KUBECONFIG, or run in a pod with a service account"


def connect(cluster: Cluster, environment: Mapping[str, str] = os.environ) -> HttpTransport:
    """A connection to a cluster; nothing is sent yet.

    Raises:
        NotFound: There is no kubeconfig, or no such context in it.
        InvalidValue: It cannot be read.
    """
    made = client.Configuration()
    found = cluster.kubeconfig or environment.get("KUBECONFIG") or ""
    if found or cluster.context or _some(_DEFAULT):
        _read_kubeconfig(found or _DEFAULT, cluster.context, made)
    elif _TOKEN.exists():
        _read_service_account(made)
    else:
        raise NotFound(f"expected a cluster to speak with, found neither {_DEFAULT} nor a service account\n{_ADVICE}")
    return HttpTransport(made)


def namespace_of(cluster: Cluster, environment: Mapping[str, str] = os.environ) -> str:
    """The namespace that a context names, or that of the pod one runs in; ``default`` where there is none.

    Args:
        cluster: Which cluster, as for ``connect``, which is called first.
        environment: Of this process.
    """
    found = cluster.kubeconfig or environment.get("KUBECONFIG") or ""
    if found or cluster.context or _some(_DEFAULT):
        contexts, current = config.list_kube_config_contexts(found or _DEFAULT)
        chosen = next((one for one in contexts if one["name"] == cluster.context), current)
        return str((chosen.get("context") or {}).get("namespace") or "default")
    place = _TOKEN.with_name("namespace")
    return place.read_text().strip() if place.exists() else "default"


def _read_kubeconfig(paths: str, context: str, into: client.Configuration) -> None:
    if not _some(paths):
        raise NotFound(f"expected a kubeconfig at {paths}, there is no such file\n{_ADVICE}")
    try:
        contexts, _ = config.list_kube_config_contexts(paths)
        known = [str(one["name"]) for one in contexts]
        if context and context not in known:
            raise NotFound(
                f"kubeconfig {paths}: expected context {context!r} in it, found none{near_miss(context, known)}"
            )
        config.load_kube_config(paths, context=context or None, client_configuration=into, persist_config=False)
    except (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, KeyError) as wrong:
        raise InvalidValue(
            f"kubeconfig {paths}: expected a file that kubectl understands, found: {wrong}; see `kubectl config view`"
        ) from wrong


def _read_service_account(into: client.Configuration) -> None:
    try:
        config.load_incluster_config(client_configuration=into)
    except (config.ConfigException, OSError) as wrong:
        raise InvalidValue(
            f"expected a whole service account in {_TOKEN.parent}, found: {wrong}; "
            "see automountServiceAccountToken of this pod"
        ) from wrong


def _some(paths: str) -> bool:
    """Whether one of the files is there."""
    return any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep) if path)


class HttpTransport:
    """``Transport`` by HTTP.

    Args:
        configuration: Address, certificates and credentials.
    """

    def __init__(self, configuration: client.Configuration) -> None:
        configuration.connection_pool_maxsize = _CONNECTIONS
        configuration.keep_alive = True
        self.server = str(configuration.host)
        self._configuration = configuration
        self._credentials = threading.Lock()
        try:
            self._pool: urllib3.PoolManager = RESTClientObject(configuration).pool_manager
        except (fault.HTTPError, OSError, ValueError) as wrong:
            raise InvalidValue(
                f"{self.server}: expected certificates and keys that can be used, found: {wrong}"
            ) from wrong

    def send(self, request: Request) -> Answer:
        """See ``Transport.send``."""
        began_s = time.monotonic()
        limit_s = ANSWER_S if request.limit_s is None else min(ANSWER_S, request.limit_s)
        timeout = urllib3.Timeout(connect=CONNECT_S, read=limit_s, total=limit_s)  # connecting and first bytes together
        got = self._request(request, timeout)
        try:
            return _answer(got, got.data if request.bound is None else _bounded(got, request.bound, began_s))
        except (fault.HTTPError, OSError) as lost:
            raise AnswerLost(_words(lost)) from lost
        finally:
            got.release_conn()

    def stream(self, request: Request, silence_s: float) -> HttpStream:
        """See ``Transport.stream``."""
        return HttpStream(self._request(request, urllib3.Timeout(connect=CONNECT_S, read=silence_s)))

    def close(self) -> None:
        """See ``Transport.close``."""
        self._pool.clear()

    def _request(self, request: Request, timeout: urllib3.Timeout) -> Any:  # noqa: ANN401 - urllib3's response, by any version
        url = f"{self.server}{request.path}" + (f"?{urlencode(request.query)}" if request.query else "")
        headers = {"Accept": "application/json", "User-Agent": "voda", **self._authorization()}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        try:
            return self._pool.request(
                request.method,
                url,
                body=None if request.body is None else request.body.encode(),
                headers=headers,
                timeout=timeout,
                retries=False,  # what is repeated, and when, is decided by those who know what is at stake
                redirect=False,
                preload_content=False,
            )
        except fault.SSLError as wrong:
            if any(isinstance(one, ssl.SSLCertVerificationError) for one in (*wrong.args, wrong.__cause__)):
                raise self._untrusted(wrong) from wrong
            raise AnswerLost(_words(wrong)) from wrong  # cut off, perhaps after it was sent
        except (
            fault.ReadTimeoutError
        ) as silent:  # one of the errors of pools, whose others come before anything is sent
            raise AnswerLost(_words(silent)) from silent
        except (fault.NewConnectionError, fault.ConnectTimeoutError, fault.ProxyError, fault.PoolError) as refused:
            raise NotSent(_words(refused)) from refused
        except (fault.HTTPError, OSError) as lost:
            raise AnswerLost(_words(lost)) from lost

    def _authorization(self) -> dict[str, str]:
        """The header that says who we are; a token that has run out is read anew, by one thread at a time."""
        with self._credentials:
            try:
                settings: dict[str, Any] = dict(self._configuration.auth_settings())
            except (config.ConfigException, OSError) as wrong:
                raise VodaError(f"{self.server}: expected credentials that can be renewed, found: {wrong}") from wrong
        return {row["key"]: row["value"] for row in settings.values() if row["in"] == "header" and row["value"]}

    def _untrusted(self, wrong: fault.SSLError) -> VodaError:
        return VodaError(
            f"{self.server}: expected a server whose certificate can be trusted: {wrong}; see certificate-authority "
            "of this context in the kubeconfig"
        )


class HttpStream:
    """``Stream`` of one response."""

    def __init__(self, got: Any) -> None:  # noqa: ANN401 - urllib3's response, by any version
        self._got = got
        self._is_over = False
        self.answer = _answer(got, b"")
        if self.answer.status != _OK:
            self._is_over = True
            try:
                self.answer = _answer(got, got.data)
            except (fault.HTTPError, OSError) as lost:
                raise AnswerLost(_words(lost)) from lost
            finally:
                got.release_conn()

    def lines(self) -> Iterator[bytes]:
        """See ``Stream.lines``."""
        rest = b""
        try:
            for part in self._got.stream(None, decode_content=True):
                *whole, rest = (rest + part).split(b"\n")
                yield from whole
            self._is_over = True
            if rest:
                yield rest
        except (fault.HTTPError, OSError, ValueError, AttributeError) as lost:  # the last two: closed by another thread
            raise AnswerLost(_words(lost)) from lost
        finally:
            if not self._is_over:
                self._got.close()

    def close(self) -> None:
        """See ``Stream.close``."""
        if self._is_over:  # its connection may be another request's by now
            return
        try:
            self._got.shutdown()
        except (fault.HTTPError, OSError, ValueError, RuntimeError):
            self._got.close()


def _answer(got: Any, body: bytes) -> Answer:  # noqa: ANN401 - urllib3's response, by any version
    headers = {str(name).lower(): str(value) for name, value in got.headers.items()}
    return Answer(status=int(got.status), headers=headers, body=body)


def _bounded(got: Any, bound: Bound, began_s: float) -> bytes:  # noqa: ANN401 - urllib3's response, by any version
    """A body as it comes, not unpacked: a small one may unpack to any size.

    Raises:
        AnswerLost: It is beyond its bound.
    """
    body = bytearray()
    while part := got.read1(_PART, decode_content=False):
        body += part
        is_late = time.monotonic() - began_s > bound.most_s
        if is_late or len(body) > bound.most_bytes:
            got.close()  # what is left of it is not to be read by whoever has the connection next
            raise AnswerLost(
                f"expected a whole answer within {bound.most_s:g} s, it goes on"
                if is_late
                else f"expected an answer of at most {bound.most_bytes} bytes, it is larger"
            )
    return bytes(body)


def _words(wrong: Exception) -> str:
    """An exception of the network in few words."""
    return f"{type(wrong).__name__}: {wrong}"[:300]
