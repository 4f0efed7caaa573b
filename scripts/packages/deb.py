"""Debian's packages: `iolite`, and `iolite-fio`, which is the name fio."""

import email.utils
import gzip
import textwrap

import texts
import tree
import vendors
from common import ROOT, WORK, fresh, need, run
from tree import File


def zipped(data):
    return gzip.compress(data, 9, mtime=0)


def folded(paragraphs):
    """An extended description, as control files have it."""
    return "\n .\n".join(textwrap.indent(textwrap.fill(text, 76), " ") for text in paragraphs)


def changelog(release, package):
    date = email.utils.formatdate(release.epoch)
    return zipped(
        f"{package} ({release.system}) unstable; urgency=medium\n\n"
        f"  * Version {release.version}. CHANGELOG.md of the package iolite says what is new.\n\n"
        f" -- {texts.MAINTAINER}  {date}\n".encode()
    )


def copyright_file():
    mit = (ROOT / "LICENSE-MIT").read_text().split("\n\n", 2)[2]
    field = "\n".join(f" {line}" if line else " ." for line in mit.rstrip().splitlines())
    return (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n"
        "Files: *\nCopyright: 2026 The Iolite authors\nLicense: Apache-2.0 or MIT\n"
        "Comment: The program contains libraries of others, under licences that permit that.\n"
        f" Their texts are in /usr/{tree.DOC}/{tree.THIRD_PARTY.name}.\n\n"
        "License: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n\n"
        f"License: MIT\n{field}\n"
    ).encode()


def installed(files):
    """The files below /usr as Debian wants them: manual compressed, no second copy of licences."""
    for file in files:
        if file.path.startswith("share/man/"):
            yield File(f"{file.path}.gz", zipped(file.data))
        elif file.path.removeprefix(f"{tree.DOC}/") not in tree.LICENCES:
            name = file.path.replace("zsh/site-functions", "zsh/vendor-completions")
            yield File(name, file.data, program=file.mode == 0o755)


def build(release, arch, package, files, fields, scripts=(), conffiles=()):
    """Writes the tree of a package, and has dpkg-deb pack it."""
    top = fresh(WORK / f"deb/{package}")
    documentation = f"usr/share/doc/{package}"
    extra = [
        File(f"{documentation}/changelog.gz", changelog(release, package)),
        File(f"{documentation}/copyright", copyright_file()),
    ]
    overrides = ROOT / f"deploy/deb/{package}.lintian-overrides"
    if overrides.exists():
        extra.append(File(f"usr/share/lintian/overrides/{package}", overrides.read_bytes()))
    tree.lay([*files, *extra], top)
    size = sum(-(-len(file.data) // 1024) for file in [*files, *extra])
    control = {
        "Package": package,
        "Version": release.system,
        "Architecture": arch,
        "Maintainer": texts.MAINTAINER,
        "Installed-Size": size,
        **fields,
    }
    text = "".join(f"{name}: {value}\n" for name, value in control.items())
    tree.lay([File("DEBIAN/control", text.encode())], top)
    tree.lay([File(f"DEBIAN/{name}", data, program=True) for name, data in scripts], top)
    if conffiles:
        tree.lay([File("DEBIAN/conffiles", "".join(f"/{path}\n" for path in conffiles).encode())], top)
    path = release.out / f"{package}_{release.system}_{arch}.deb"
    # xz, as Debian's own packages: dpkg reads zstd only since Debian 12.
    env = {"SOURCE_DATE_EPOCH": str(release.epoch), "DPKG_DEB_THREADS_MAX": "1"}
    run("dpkg-deb", "--root-owner-group", "-Zxz", "-z9", "--build", top, path, env=env)
    return path


def make(release, arch, files):
    need("dpkg-deb", "dpkg")
    all_files = tree.system(installed(files))
    settings = [file.path for file in all_files if file.path.startswith("etc/")]
    fields = {
        "Section": "utils",
        "Priority": "optional",
        # passwd: the services have a user.
        "Depends": "libc6 (>= 2.17), passwd",
        "Suggests": ", ".join(vendors.packages("debian")),
        "Description": f"{texts.SUMMARY}\n{folded(texts.ABOUT)}",
    }
    main = build(release, arch.name, "iolite", all_files, fields, tree.scripts("deb"), settings)

    names = [File("usr/bin/fio", link="iolite"), File("usr/share/man/man1/fio.1.gz", link="iolite.1.gz")]
    fields = {
        "Section": "utils",
        "Priority": "optional",
        "Depends": f"iolite (>= {release.system})",
        "Provides": f"fio (= {texts.FIO_VERSION})",
        "Conflicts": "fio",
        "Replaces": "fio",
        "Description": f"{texts.FIO_SUMMARY}\n{folded(texts.FIO_ABOUT)}",
    }
    return [main, build(release, "all", "iolite-fio", names, fields)]
