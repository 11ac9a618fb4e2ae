"""What is built, from what, and that nothing in the repository says where it comes from."""

from __future__ import annotations

import re

import pytest

from tests.cluster import programs
from tests.cluster.programs import GROUPS, GROUPS_FOLDER, Group, Programs, digest


def test_versions_are_pinned() -> None:
    """Those that this project is tested with, and the name of a version in code is that of go.mod."""
    modules = {group.name: (GROUPS_FOLDER / group.name / "go.mod").read_text() for group in GROUPS}

    assert re.search(rf"k8s.io/kubernetes {programs.KUBERNETES_VERSION}\b", modules["kubernetes"])
    assert re.search(r"go.etcd.io/etcd/server/v3 v3.6.16\b", modules["etcd"])
    assert re.search(rf"{programs.ARGO_MODULE} {programs.ARGO_VERSION}\b", modules["argo"])


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_checksums_name_modules_only(group: Group) -> None:
    """Each line is module, version, hash: no address of a registry or proxy."""
    lines = (GROUPS_FOLDER / group.name / "go.sum").read_text().splitlines()

    assert [line for line in lines if not re.fullmatch(r"\S+ v\S+ h1:[\w+/]+=*", line)] == []
    assert [line for line in lines if "://" in line] == []


def test_a_digest_changes_with_what_is_built() -> None:
    """With flags and packages as with versions, so that a kept program is never an old one."""
    pause = next(group for group in GROUPS if group.name == "pause")
    flagged = Group(name="pause", packages=pause.packages, link="-s")

    assert len({digest(pause), digest(flagged)}) == 2
    assert digest(pause) == digest(Group(name="pause", packages=dict(pause.packages)))


def test_a_program_is_found_by_its_name() -> None:
    """In the folder of its group."""
    built = Programs(folders={group.name: GROUPS_FOLDER / group.name for group in GROUPS})

    assert built.path("kubectl") == str(GROUPS_FOLDER / "kubernetes" / "bin" / "kubectl")
