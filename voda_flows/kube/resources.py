"""Where each kind of object is found in the Kubernetes API: one table, and the paths that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from scheduler_core.errors import InvalidValue
from voda_flows.objects import CLUSTER_SCOPED, Key

ARGO_GROUP = "argoproj.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind as the API server knows it.

    Attributes:
        kind: Its kind.
        plural: Its name in paths and in rights.
        group: Its API group, empty for the core's.
        version: The version of the group that we read and write.
    """

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"

    @property
    def api_version(self) -> str:
        """As ``apiVersion`` in documents."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def right(self) -> str:
        """As a role names it, such as ``workflows.argoproj.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def namespaced(self) -> bool:
        """Whether its objects are in namespaces."""
        return self.kind not in CLUSTER_SCOPED

    def collection(self, namespace: str = "") -> str:
        """The path of all its objects, or of those of one namespace."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        return f"{root}{inside}/{self.plural}"

    def path(self, key: Key) -> str:
        """The path of one object."""
        return f"{self.collection(key.namespace)}/{quote(key.name, safe='')}"


_RESOURCES: Mapping[str, Resource] = {
    resource.kind: resource
    for resource in (
        Resource(kind="Workflow", plural="workflows", group=ARGO_GROUP, version="v1alpha1"),
        Resource(kind="WorkflowTemplate", plural="workflowtemplates", group=ARGO_GROUP, version="v1alpha1"),
        Resource(kind="CronWorkflow", plural="cronworkflows", group=ARGO_GROUP, version="v1alpha1"),
        Resource(kind="Pod", plural="pods"),
        Resource(kind="Node", plural="nodes"),
        Resource(kind="ConfigMap", plural="configmaps"),
        Resource(kind="Secret", plural="secrets"),
        Resource(kind="PersistentVolumeClaim", plural="persistentvolumeclaims"),
        Resource(kind="Lease", plural="leases", group="coordination.k8s.io"),
    )
}


def resource_of(kind: str) -> Resource:
    """A kind's row of the table.

    Raises:
        InvalidValue: It has none.
    """
    if kind not in _RESOURCES:
        raise InvalidValue(f"expected a kind out of {', '.join(sorted(_RESOURCES))}, got {kind!r} (at $.kind)")
    return _RESOURCES[kind]
