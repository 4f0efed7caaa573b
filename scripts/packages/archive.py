"""Tar archives with nothing of this machine in them: sorted, of root, of one moment. And the archive `iolite-….tar.zst`."""

import io
import subprocess
import tarfile

import tree
from common import Failed, need


def tar(files, epoch, prefix=""):
    """The bytes of a tar archive of files with their directories."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as archive:
        known = set()

        def add(name, mode, kind=tarfile.REGTYPE, content=b"", link=""):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.type, entry.mtime, entry.linkname = mode, kind, epoch, link
            entry.uname = entry.gname = "root"
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))

        for file in sorted(files, key=lambda file: file.path):
            path = prefix + file.path
            steps = path.split("/")
            for depth in range(1, len(steps)):
                directory = "/".join(steps[:depth])
                if directory not in known:
                    known.add(directory)
                    add(directory, 0o755, tarfile.DIRTYPE)
            if file.link:
                add(path, 0o777, tarfile.SYMTYPE, link=file.link)
            else:
                add(path, file.mode, content=file.data)
    return data.getvalue()


def files(path):
    """What `make` has packed, but the examples of services."""
    done = subprocess.run(["zstd", "-dc", path], capture_output=True)
    if done.returncode:
        raise Failed(f"{path} cannot be unpacked: {done.stderr.decode(errors='replace').strip()}")
    left_out = {file.path for file in tree.examples_of_services()}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for entry in archive:
            name = entry.name.partition("/")[2]
            if entry.isfile() and name not in left_out:
                yield tree.File(name, archive.extractfile(entry).read(), program=entry.mode == 0o755)


def compressed(data):
    # One thread: zstd's bytes depend on how the work is divided.
    return subprocess.run(["zstd", "-19", "--single-thread", "-c"], input=data, capture_output=True, check=True).stdout


def make(release, arch, files):
    """The archive that runs where it is unpacked."""
    need("zstd", "zstd")
    name = f"iolite-{release.version}-linux-{arch.name}"
    path = release.out / f"{name}.tar.zst"
    files = [*files, *tree.examples_of_services()]
    path.write_bytes(compressed(tar(files, release.epoch, f"{name}/")))
    return [path]
