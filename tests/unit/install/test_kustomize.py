"""Kustomizations are read as kustomize reads them, as far as ours go; the rest is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_core.errors import InvalidValue, NotFound, VodaError
from voda_flows.install.json_patch import json_patch
from voda_flows.install.kustomize import read, render
from voda_flows.objects import Object

ROLE = """\
kind: ServiceAccount
metadata: {name: a}
---
kind: ClusterRoleBinding
metadata: {name: b}
subjects:
  - {kind: ServiceAccount, name: a}
  - {kind: ServiceAccount, name: other, namespace: elsewhere}
  - {kind: Group, name: a}
---
kind: Namespace
metadata: {name: before}
"""


def folder(root: Path, **files: str) -> Path:
    """A folder with these files; underscores in names stand for dots."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return root


def test_a_namespace_is_where_everything_goes(tmp_path: Path) -> None:
    """Accounts of the kustomization are moved where they are subjects; those of others stay, and so do groups."""
    made = folder(tmp_path, kustomization_yaml="namespace: ml\nresources: [role.yaml]", role_yaml=ROLE)

    assert render(read(made)) == [
        {"kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "ml"}},
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "b"},
            "subjects": [
                {"kind": "ServiceAccount", "name": "a", "namespace": "ml"},
                {"kind": "ServiceAccount", "name": "other", "namespace": "elsewhere"},
                {"kind": "Group", "name": "a"},
            ],
        },
        {"kind": "Namespace", "metadata": {"name": "ml"}},
    ]


def test_a_target_can_name_group_and_version(tmp_path: Path) -> None:
    """Then only a document of both is meant, as kustomize has it."""
    made = folder(
        tmp_path,
        kustomization_yaml="resources: [a.yaml]\npatches: [{path: p.yaml, target: "
        "{group: rbac.authorization.k8s.io, version: v1, kind: Role, name: a}}]",
        a_yaml="{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: []}\n---\n"
        "{apiVersion: v1, kind: Role, metadata: {name: a, namespace: n}, rules: []}",
        p_yaml="[{op: add, path: /rules/-, value: 1}]",
    )

    assert [body["rules"] for body in render(read(made))] == [[1], []]


def test_folders_are_read_and_patches_carried_out_in_order(tmp_path: Path) -> None:
    """A kustomization of another folder comes with its own patches."""
    folder(
        tmp_path / "base",
        Kustomization="resources: [one.yaml]\npatches: [{path: gone.yaml}]",
        one_yaml="{kind: Role, metadata: {name: a}, rules: []}\n---\n{kind: Role, metadata: {name: b}}",
        gone_yaml="{$patch: delete, kind: Role, metadata: {name: b}}",
    )
    top = folder(
        tmp_path / "top",
        kustomization_yaml="resources: [../base]\npatches: [{path: p.yaml, target: {kind: Role, name: a}}]",
        p_yaml="[{op: add, path: /rules/-, value: 1}, {op: add, path: /rules/0, value: 0}]",
    )

    assert render(read(top)) == [{"kind": "Role", "metadata": {"name": "a"}, "rules": [0, 1]}]


@pytest.mark.parametrize(
    ("files", "error", "said"),
    [
        ({"kustomization_yaml": "resource: [a.yaml]"}, InvalidValue, "'resource'; did you mean 'resources'?"),
        ({"kustomization_yaml": "images: []"}, InvalidValue, "use `kubectl apply -k`"),
        ({"other_yaml": "a: 1"}, NotFound, "expected a kustomization there"),
        ({"kustomization_yaml": "resources: [none.yaml]"}, NotFound, "none.yaml: expected a file to read"),
        ({"kustomization_yaml": "resources: [a.yaml]", "a_yaml": "a: ]"}, InvalidValue, "a.yaml: expected YAML"),
        ({"kustomization_yaml": "resources: [a.yaml]", "a_yaml": "[1]"}, InvalidValue, "expected documents that are"),
        (
            {"kustomization_yaml": "patches: [{path: a.yaml}]", "a_yaml": "{kind: Role, metadata: {name: a}}"},
            InvalidValue,
            "expected a JSON patch with a target, or `$patch: delete`",
        ),
        (
            {"kustomization_yaml": "patches: [{path: a.yaml, target: {kind: Role, name: a}}]", "a_yaml": "[]"},
            InvalidValue,
            "expected a document that it is for, found none",
        ),
        (
            {"kustomization_yaml": "resources: [a.yaml, b.yaml]"}
            | dict.fromkeys(("a_yaml", "b_yaml"), "{kind: Role, metadata: {name: a}}"),
            InvalidValue,
            "expected each document once",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(
    tmp_path: Path, files: dict[str, str], error: type[VodaError], said: str
) -> None:
    """Nothing is left out silently."""
    made = folder(tmp_path, **files)

    with pytest.raises(error) as refused:
        render(read(made))

    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (
            "path: a.yaml, target: {kind: Role, name: a, namespace: n}",
            "fields that Voda reads, got 'namespace'; known are group, version, kind, name; or use `kubectl apply -k`",
        ),
        (
            "path: a.yaml, target: {kind: Role, name: a, labelSelector: b}",
            "in the target of a.yaml: expected fields that Voda reads, got 'labelSelector'",
        ),
        ("path: a.yaml, target: {kind: Role, name: a, annotationSelector: b}", "got 'annotationSelector'"),
        (
            "path: a.yaml, target: {kind: Role}",
            "in the target of a.yaml: expected kind and name, got {'kind': 'Role'}; or",
        ),
        ("path: a.yaml, target: Role", "in the target of a.yaml: expected kind and name, got 'Role'; or use `kubectl"),
        (
            "path: a.yaml, target: {kind: Role, name: a}, options: {}",
            "in a patch: expected fields that Voda reads, got 'op",
        ),
        ("patch: '[]', target: {kind: Role, name: a}", "in a patch: expected fields that Voda reads, got 'patch'"),
        ("", "expected patches with a path, got {}; or use"),
        (
            "path: gone.yaml, target: {kind: Role, name: a}",
            "expected a JSON patch with a target, or `$patch: delete` with",
        ),
    ],
)
def test_a_patch_that_would_be_for_others_than_meant_is_refused(tmp_path: Path, patch: str, said: str) -> None:
    """What we do not read of it may choose between documents."""
    made = folder(
        tmp_path,
        kustomization_yaml=f"resources: [b.yaml]\npatches: [{{{patch}}}]",
        a_yaml="[]",
        b_yaml="{kind: Role, metadata: {name: a}}",
        gone_yaml="{$patch: delete, kind: Role, metadata: {name: a}}",
    )

    with pytest.raises(InvalidValue) as refused:
        render(read(made))

    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("operation", "left"),
    [
        ({"op": "add", "path": "/b", "value": 1}, {"a": [1, {"c/d": 2}], "b": 1}),
        ({"op": "add", "path": "/a/1", "value": 9}, {"a": [1, 9, {"c/d": 2}]}),
        ({"op": "replace", "path": "/a/1/c~1d", "value": 3}, {"a": [1, {"c/d": 3}]}),
        ({"op": "remove", "path": "/a/0"}, {"a": [{"c/d": 2}]}),
        ({"op": "test", "path": "/a/0", "value": 1}, {"a": [1, {"c/d": 2}]}),
    ],
)
def test_an_operation_changes_a_copy(operation: Object, left: Object) -> None:
    """As RFC 6902 has it; the document that was given stays."""
    document = {"a": [1, {"c/d": 2}]}

    assert json_patch(document, [operation], where="x") == left
    assert document == {"a": [1, {"c/d": 2}]}


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ({"op": "move", "path": "/a"}, "x: expected op out of add, remove, replace, test and a path"),
        ({"op": "add", "path": "a", "value": 1}, "x: expected op out of"),
        ({"op": "replace", "path": "/b", "value": 1}, "x: expected /b to be in the document"),
        ({"op": "remove", "path": "/a/7"}, "x: expected /a/7 to be in the document"),
        ({"op": "add", "path": "/a/7", "value": 1}, "x: expected /a/7 to be in the document"),
        ({"op": "test", "path": "/a/0", "value": 2}, "x: expected 2 at /a/0, found 1"),
    ],
)
def test_an_operation_that_fits_nothing_is_refused(operation: Object, said: str) -> None:
    """A patch that was written for another document must not change this one."""
    with pytest.raises(InvalidValue) as refused:
        json_patch({"a": [1]}, [operation], where="x")

    assert str(refused.value).startswith(said)
