"""Names and ids are Argo's own, taken from what the real controller gave."""

from __future__ import annotations

import pytest

from voda_flows.local.argo import names


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("steps-fail-sibling", "steps-fail-sibling"),
        ("steps-fail-sibling[0].a", "steps-fail-sibling-829714027"),
        ("with-item-fails[0].a(1:1)", "steps-fail-sibling-2230439523"),
    ],
)
def test_node_id_is_the_hash_of_its_name(node: str, expected: str) -> None:
    """The root has the Workflow's name, others its name and FNV-32a of their own."""
    assert names.node_id("steps-fail-sibling", node) == expected


def test_pod_name_has_its_template_in_between() -> None:
    """Version 2 of pod names: workflow, template, hash; the root's pod is called as the Workflow."""
    assert names.pod_name("w", "w", "t") == "w"
    assert names.pod_name("w", "w[0].a", "t") == f"w-t-{names.fnv32a('w[0].a')}"
    assert len(names.pod_name("w" * 200, "x", "t" * 100)) <= 253


@pytest.mark.parametrize(
    ("node", "boundary", "shown"),
    [
        ("w", None, "w"),
        ("w[0]", "w", "[0]"),
        ("w[0].a", "w", "a"),
        ("w.a", "w", "a"),
        ("w[1].l[0].a(0:x)", "w[1].l", "a(0:x)"),
        ("w.onExit", None, "w.onExit"),
    ],
)
def test_display_name_leaves_out_what_is_around(node: str, boundary: str | None, shown: str) -> None:
    """The name of the node around and the number of the group are left out, a group keeps its number."""
    assert names.display_name(node, boundary) == shown


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("x", "a(0:x)"),
        (2.5, "a(0:2.5)"),
        (2.0, "a(0:2)"),
        (True, "a(0:true)"),
        ({"node": "n0", "id": "w0"}, "a(0:id:w0,node:n0)"),
        ({"gpus": 1, "id": "w0"}, "a(0:gpus:1,id:w0)"),
        ({"a": 1, "a-b": 2}, "a(0:a-b:2,a:1)"),
        (["x", 1], "a(0:[x 1])"),
        ([["x", 1], {"k": "v"}], 'a(0:[["x",1] {"k":"v"}])'),
        ("f(x) < 1", "a(0:fx < 1)"),
        ('say "a"', 'a(0:say \\"a\\")'),
    ],
)
def test_item_is_shown_in_the_name(item: object, name: str) -> None:
    """As Go prints it: a list's elements between blanks, text without its quotes, no parentheses."""
    assert names.item_name("a", 0, item) == name


def test_json_is_as_go_writes_it() -> None:
    """Compact, keys in order, what HTML could take for its own is escaped."""
    assert names.go_json({"b": "<&>", "a": ["ä", 1, None]}) == '{"a":["ä",1,null],"b":"\\u003c\\u0026\\u003e"}'
