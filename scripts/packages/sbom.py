"""The bill of materials (CycloneDX), which scripts/licences has made of Cargo.lock."""

import shutil

import tree


def make(release):
    [made] = tree.THIRD_PARTY.parent.glob("*.cdx.json")
    path = release.out / f"iolite-{release.version}.cdx.json"
    shutil.copyfile(made, path)
    return [path]
