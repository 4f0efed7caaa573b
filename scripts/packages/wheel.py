"""The wheel for pip: the program as a script of the environment, for Linux with glibc 2.17 (manylinux2014)."""

import base64
import hashlib
import io
import time
import zipfile

import build
import texts
from common import ROOT, Failed, run
from tree import LICENCES, THIRD_PARTY


def record(data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest},{len(data)}"


def make(release, arch, files):
    tags = [f"py3-none-manylinux_2_17_{arch.rpm}", f"py3-none-manylinux2014_{arch.rpm}"]
    information = f"iolite-{release.python}.dist-info"
    data = f"iolite-{release.python}.data"
    licences = [(path.name, path.read_bytes()) for path in [*(ROOT / name for name in LICENCES), THIRD_PARTY]]
    metadata = [
        "Metadata-Version: 2.4",
        "Name: iolite",
        f"Version: {release.python}",
        f"Summary: {texts.SUMMARY}",
        f"License-Expression: {texts.LICENCE}",
        *(f"License-File: {name}" for name, _ in licences),
        "Requires-Python: >=3.6",
        "Description-Content-Type: text/markdown",
        "",
        (ROOT / "README.md").read_text(),
    ]
    wheel = ["Wheel-Version: 1.0", "Generator: iolite", "Root-Is-Purelib: false", *(f"Tag: {tag}" for tag in tags), ""]
    # With the program only what the environment can use: manual and completions.
    shared = ("share/man/", "share/bash-completion/", "share/zsh/", "share/fish/")
    members = [
        *((f"{data}/scripts/{file.path[4:]}", file.data, 0o755) for file in files if file.path.startswith("bin/")),
        *((f"{data}/data/{file.path}", file.data, 0o644) for file in files if file.path.startswith(shared)),
        *((f"{information}/licenses/{name}", text, 0o644) for name, text in licences),
        (f"{information}/METADATA", "\n".join(metadata).encode(), 0o644),
        (f"{information}/WHEEL", "\n".join(wheel).encode(), 0o644),
    ]
    lines = [f"{name},{record(content)}" for name, content, _ in members] + [f"{information}/RECORD,,", ""]
    members.append((f"{information}/RECORD", "\n".join(lines).encode(), 0o644))

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content, mode in members:
            # Times in zip files begin in 1980.
            entry = zipfile.ZipInfo(name, time.gmtime(max(release.epoch, 315532800))[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, content)
    path = release.out / f"iolite-{release.python}-py3-none-manylinux_2_17_{arch.rpm}.manylinux2014_{arch.rpm}.whl"
    path.write_bytes(packed.getvalue())
    check(path, arch)
    return [path]


def check(path, arch):
    """auditwheel says for which systems the wheel is."""
    said = run("auditwheel", "show", path, env=build.tools(), capture_output=True).decode()
    if f"manylinux_2_17_{arch.rpm}" not in said:
        raise Failed(f"auditwheel does not find {path.name} fit for manylinux2014:\n{said}")
