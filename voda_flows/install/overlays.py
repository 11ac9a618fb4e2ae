"""Which documents an installation consists of: an overlay of deploy/kustomize, for the namespaces that are asked for.

The files are those that ``kubectl apply -k`` takes. They lie in the source tree, and in an installed package beside
its templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from scheduler_core.errors import InvalidValue, VodaError
from voda_flows.config import DEFAULT_NAMESPACE, near_miss
from voda_flows.install.images import JOBS, PARTS, SCHEDULER, Part, with_image
from voda_flows.install.kustomize import Kustomization, find_file, read, render
from voda_flows.objects import Object

ONE_NAMESPACE: Final = "one-namespace"
CLUSTER: Final = "cluster"
TEST: Final = "test"
#: Overlays by name, and what they are for.
OVERLAYS: Final = {
    ONE_NAMESPACE: "scheduler and jobs in one namespace",
    CLUSTER: "jobs in several namespaces, the scheduler in one of its own",
    TEST: "the cluster of tests/cluster",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be installed.

    Attributes:
        overlay: Name of an overlay, or a folder with a kustomization.
        namespaces: Those of jobs; none for the overlay's own.
        image: Image of the scheduler; empty for the overlay's own.
        training_image: Image of jobs that name none; empty for the overlay's own.
    """

    overlay: str = ONE_NAMESPACE
    namespaces: tuple[str, ...] = ()
    image: str = ""
    training_image: str = ""

    @property
    def images(self) -> Mapping[Part, str]:
        """The images that are asked for, by what they are for."""
        asked = {SCHEDULER: self.image, JOBS: self.training_image}
        return {part: image for part, image in asked.items() if image}

    @property
    def staying(self) -> tuple[Part, ...]:
        """What keeps the image that it has."""
        return tuple(part for part in PARTS if part not in self.images)


def manifests() -> Path:
    """The folder with ``base``, ``jobs`` and ``overlays``.

    Raises:
        VodaError: The package is not whole.
    """
    package = Path(__file__).resolve().parents[1]
    places = [root / "deploy" / "kustomize" for root in (package, package.parent)]
    found = next((place for place in places if (place / "base").is_dir()), None)
    if found is None:
        raise VodaError(f"expected Voda's manifests in {places[0]} or {places[1]}, they are in neither: install again")
    return found


def documents(wanted: Wanted) -> list[Object]:
    """All documents of an installation.

    Raises:
        InvalidValue: There is no such overlay, it does not take these namespaces, or what an image is for is not in it.
    """
    found = _of_namespaces(wanted)
    for part, image in wanted.images.items():
        if not any(map(part.is_part, found)):
            raise InvalidValue(
                f"{part.option}: expected {part.kind} {part.name} among the documents of overlay {wanted.overlay!r}, "
                "found none; leave the option out"
            )
        found = [with_image(body, image) if part.is_part(body) else body for body in found]
    return found


def _of_namespaces(wanted: Wanted) -> list[Object]:
    root, names = manifests(), tuple(dict.fromkeys(wanted.namespaces))
    if wanted.overlay not in OVERLAYS:
        return _of_folder(wanted)
    overlay = read(root / "overlays" / wanted.overlay)
    if not names:
        return render(overlay)
    if wanted.overlay == CLUSTER:
        return render(replace(overlay, resources=("../../base",))) + [
            document for name in names for document in _with_jobs(root, name)
        ]
    if len(names) > 1:
        raise InvalidValue(
            f"-n: expected one namespace for overlay {wanted.overlay!r}, got {', '.join(names)}; jobs in several need "
            f"--overlay {CLUSTER}"
        )
    if wanted.overlay == TEST:
        raise InvalidValue(f"-n: expected none for overlay {TEST!r}, its volume is bound to {DEFAULT_NAMESPACE!r}")
    return render(replace(overlay, namespace=names[0]))


def _of_folder(wanted: Wanted) -> list[Object]:
    folder = Path(wanted.overlay)
    if find_file(folder) is None:
        raise InvalidValue(
            f"--overlay: expected an overlay or a folder with a kustomization, got {wanted.overlay!r}"
            f"{near_miss(wanted.overlay, OVERLAYS)}"
        )
    if wanted.namespaces:
        raise InvalidValue("-n: expected none with a kustomization of your own, which says itself where things go")
    return render(read(folder))


def _with_jobs(root: Path, namespace: str) -> list[Object]:
    """What a namespace needs for jobs to be in it."""
    return render(Kustomization(folder=root, resources=("jobs",), namespace=namespace))
