"""Images made by hand are what tools expect of an archive."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from tests.cluster.images import Image, shown_folders, write_archive
from tests.cluster.places import REPOSITORY


def test_an_archive_names_its_image_and_holds_its_layer(tmp_path: Path) -> None:
    """The digests are those of what is in it, and folders stand before what is in them."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    image = Image(
        name="localhost/trial:1",
        programs={"bin/program": str(program)},
        texts={"etc/passwd": "root\n"},
        links={"usr": "/host/usr"},
        folders=("tmp", "var/tmp"),
        command=("program",),
    )

    write_archive(image, tmp_path / "trial.tar")

    with tarfile.open(tmp_path / "trial.tar") as archive:
        content = {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr] # files only
    (manifest,) = json.loads(content["manifest.json"])
    config, layer = content[manifest["Config"]], content[manifest["Layers"][0]]
    assert manifest["RepoTags"] == ["localhost/trial:1"]
    assert manifest["Config"] == f"{hashlib.sha256(config).hexdigest()}.json"
    assert json.loads(config)["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert json.loads(config)["config"]["Cmd"] == ["program"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as inner:
        found = [(each.name, each.mode, each.linkname) for each in inner]
    assert found == [
        ("tmp", 0o1777, ""),
        ("var", 0o755, ""),
        ("var/tmp", 0o1777, ""),
        ("bin", 0o755, ""),
        ("etc", 0o755, ""),
        ("usr", 0o644, "/host/usr"),
        ("etc/passwd", 0o644, ""),
        ("bin/program", 0o755, ""),
    ]


def test_pods_see_the_repository_and_the_environment() -> None:
    """Each folder once: none lies in another."""
    found = shown_folders()

    assert any(REPOSITORY.is_relative_to(folder) for folder in found)
    assert not any(one in other.parents for one in found for other in found)
