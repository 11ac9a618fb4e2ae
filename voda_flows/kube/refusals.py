"""What the API server's refusals mean, as errors of ours: which right is missing, which field is wrong, who was first.

In: an answer that is no success and what was asked. Out: an error; nothing is sent from here. The texts of the API
server are read only where its codes and reasons do not tell cases apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus

from scheduler_core.errors import Conflict, Forbidden, InvalidValue, NotFound, VodaError
from voda_flows.kube.resources import ARGO_GROUP, Resource
from voda_flows.kube.retrying import said
from voda_flows.kube.transport import Answer
from voda_flows.objects import Key, Object
from voda_flows.store import absent, taken

#: `pods is forbidden: User "x" cannot list resource "pods" in API group "" at the cluster scope`
_LACKS = re.compile(r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource')
#: `... strict decoding error: unknown field "spec.templates[0].foo"`
_FIELD = re.compile(r'(?:unknown|duplicate) field "(?P<path>[^"]+)"')
_VERSION = re.compile(r"the object has been modified|Precondition failed|precondition", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked when the server refused.

    Attributes:
        verb: As roles name it: ``get``, ``list``, ``watch``, ``create``, ``patch``, ``update``, ``delete``; or
            ``apply``, for which they name ``patch`` and ``create``.
        resource: Of what kind.
        key: Of which object; of a list, the name is empty and so may be the namespace.
    """

    verb: str
    resource: Resource
    key: Key

    @property
    def words(self) -> str:
        """As messages begin."""
        if self.key.name:
            return f"{self.verb} {self.key}"
        where = f"namespace {self.key.namespace}" if self.key.namespace else "the whole cluster"
        return f"{self.verb} {self.resource.plural} of {where}"


def refusal(answer: Answer, asked: Asked) -> VodaError:
    """The error for an answer that is no success.

    Args:
        answer: The answer, of a status from 400 to 499.
        asked: What was asked.

    Returns:
        ``NotFound``, ``Conflict``, ``InvalidValue``, ``Forbidden``, or the plain error where nobody can tell.
    """
    found = answer.document()
    status = found if isinstance(found, dict) and found.get("kind") == "Status" else {}
    match answer.status:
        case HTTPStatus.NOT_FOUND:
            return _missing(status, asked)
        case HTTPStatus.CONFLICT:
            return _conflict(status, asked)
        case HTTPStatus.FORBIDDEN:
            return _denied(answer, status, asked)
        case HTTPStatus.UNAUTHORIZED:
            return Forbidden(
                f"{asked.words}: expected an account that the API server knows, it does not accept these credentials "
                f"({said(answer)}); log in again, or see the user of this context in the kubeconfig (a pod: its "
                "service account)"
            )
        case HTTPStatus.BAD_REQUEST | HTTPStatus.UNPROCESSABLE_ENTITY | HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return _invalid(answer, status, asked)
    return VodaError(f"{asked.words}: expected success, the API server answered {said(answer)}")


def _missing(status: Object, asked: Asked) -> VodaError:
    details = status.get("details") or {}
    if status and details.get("kind") == "namespaces" and asked.verb == "create":
        return NotFound(f"{asked.key}: expected namespace {asked.key.namespace!r} to exist; create it first")
    if status and details.get("name"):
        return absent(asked.key)
    resource = asked.resource
    advice = "install Argo Workflows (its custom resource definitions) there" if resource.group == ARGO_GROUP else ""
    return NotFound(
        f"{asked.words}: expected the API server to know {resource.plural} of {resource.api_version}, it does not; "
        f"{advice or 'it is too old, or no Kubernetes API server'}"
    )


def _conflict(status: Object, asked: Asked) -> VodaError:
    message = str(status.get("message") or "")
    if status.get("reason") == "AlreadyExists":
        return taken(asked.key)
    if asked.verb == "apply":  # somebody else's field: the server says whose, and reading anew changes nothing
        return Conflict(f"{asked.words}: {message}")
    if _VERSION.search(message):
        return Conflict(f"{asked.key}: it changed since it was read; read it again and repeat ({message})")
    return Conflict(f"{asked.words}: {message or 'something else is under way there'}; read it again and repeat")


def _denied(answer: Answer, status: Object, asked: Asked) -> VodaError:
    lacks = _LACKS.search(str(status.get("message") or ""))
    if lacks is None:  # a quota, a namespace on its way out, an admission plugin: the account's rights suffice
        return Forbidden(f"{asked.words}: the API server does not allow it: {said(answer)}")
    namespaced = asked.resource.namespaced and asked.key.namespace
    where = f"in namespace {asked.key.namespace!r}" if namespaced else "in the whole cluster"
    needed = "a Role and RoleBinding there" if namespaced else "a ClusterRole and ClusterRoleBinding"
    return Forbidden(
        f"{asked.words}: expected the right to {lacks['verb']} {asked.resource.right} {where}, account "
        f"{lacks['user']!r} lacks it; give it {needed}, or use another context"
    )


def _invalid(answer: Answer, status: Object, asked: Asked) -> VodaError:
    message = str(status.get("message") or said(answer))
    causes = [
        row for row in (status.get("details") or {}).get("causes") or () if row.get("field") not in (None, "", "[]")
    ]
    field = _FIELD.search(message)
    path = str(causes[0]["field"]) if causes else field["path"] if field else ""
    if answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        message = f"it is larger than the API server takes ({message})"
    if path == "metadata.uid" and asked.verb != "create":  # a guard; for the server, a change of what cannot change
        return Conflict(f"{asked.key}: another object took its name; read it again ({message})")
    if path == "metadata.name":  # as every store says it
        return InvalidValue(f"{asked.key}: expected a name, got {asked.key.name!r} (at $.metadata.name): {message}")
    return InvalidValue(f"{asked.words}: the API server refuses it: {message}", path=path)
