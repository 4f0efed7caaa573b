"""The image for containers: the static program, nothing else but what it reads, for all processors in one index.

An OCI layout is a few files of JSON beside archives; they are written here, since builders of images store times and random
names, and want a base image. skopeo, podman and umoci read the result.
"""

import gzip
import hashlib
import io
import json
import tarfile
import time

import archive
import texts
import tree
from tree import File

USER = 65532  # nobody's, as images that are not root's commonly have it


def compact(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


class Layout:
    """The directory of an image: blobs by their digests."""

    def __init__(self):
        self.files = [File("oci-layout", compact({"imageLayoutVersion": "1.0.0"}))]

    def add(self, data, kind, **more):
        digest = hashlib.sha256(data).hexdigest()
        path = f"blobs/sha256/{digest}"
        if all(file.path != path for file in self.files):
            self.files.append(File(path, data))
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data), **more}


def layer(files, epoch):
    """The root of the container: the program, users, a place for work, examples and licences."""
    wanted = ("bin/", f"{tree.DOC}/examples/", f"{tree.DOC}/LICENSE", f"{tree.DOC}/THIRD-PARTY")
    inside = [File(f"usr/{file.path}", file.data, file.mode == 0o755) for file in files if file.path.startswith(wanted)]
    inside += [
        File("usr/bin/fio", link="iolite"),
        File("etc/passwd", f"root:x:0:0::/:/sbin/nologin\niolite:x:{USER}:{USER}::/work:/sbin/nologin\n".encode()),
        File("etc/group", f"root:x:0:\niolite:x:{USER}:\n".encode()),
    ]
    data = io.BytesIO(archive.tar(inside, epoch))
    with tarfile.open(fileobj=data, mode="a", format=tarfile.GNU_FORMAT) as tar:
        for name, mode, owner in [("tmp", 0o1777, 0), ("work", 0o755, USER)]:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.mtime, entry.uid, entry.gid = tarfile.DIRTYPE, mode, epoch, owner, owner
            tar.addfile(entry)
    return data.getvalue()


def make(release, files_of_arch):
    """One archive for all processors: `files_of_arch` has the files of each."""
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch))
    labels = {
        "org.opencontainers.image.title": "iolite",
        "org.opencontainers.image.description": texts.SUMMARY,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": texts.LICENCE,
        "org.opencontainers.image.created": created,
        **({"org.opencontainers.image.revision": release.commit} if release.commit else {}),
    }
    layout, manifests = Layout(), []
    for arch, files in files_of_arch:
        tar = layer(files, release.epoch)
        config = {
            "architecture": arch.name,
            "os": "linux",
            "created": created,
            "config": {
                "User": f"{USER}:{USER}",
                "Entrypoint": ["/usr/bin/iolite"],
                "WorkingDir": "/work",
                "Env": ["PATH=/usr/bin"],
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]},
            "history": [{"created": created, "created_by": "scripts/package"}],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": layout.add(compact(config), "config.v1+json"),
            "layers": [layout.add(gzip.compress(tar, 9, mtime=0), "layer.v1.tar+gzip")],
            "annotations": labels,
        }
        platform = {"architecture": arch.name, "os": "linux"}
        manifests.append(layout.add(compact(manifest), "manifest.v1+json", platform=platform))
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}
    named = layout.add(compact(index), "index.v1+json", annotations={"org.opencontainers.image.ref.name": f"iolite:{release.version}"})
    layout.files.append(File("index.json", compact({"schemaVersion": 2, "manifests": [named]})))
    path = release.out / f"iolite-{release.version}-oci.tar"
    path.write_bytes(archive.tar(layout.files, release.epoch))
    return [path]
