"""The packages of RHEL, Fedora and SUSE: `iolite`, and `iolite-fio`, which is the name fio."""

import gzip
import pathlib
import re
import textwrap
import time

import texts
import tree
import vendors
from common import WORK, fresh, need, run
from tree import File


def installed(files):
    for file in files:
        if file.path.startswith("share/man/"):
            yield File(f"{file.path}.gz", gzip.compress(file.data, 9, mtime=0))
        elif file.path.removeprefix(f"{tree.DOC}/") not in tree.LICENCES:
            yield file
        else:
            yield File(f"share/licenses/iolite/{file.path.split('/')[-1]}", file.data)


def listed(files):
    """The section %files: every file by name, with what it is."""
    kinds = [(r"/usr/share/doc/", "%doc "), (r"/usr/share/licenses/", "%license "), (r"/etc/", "%config(noreplace) ")]
    for file in files:
        path = f"/{file.path}"
        kind = next((word for start, word in kinds if path.startswith(start)), "")
        rights = "" if file.link else f"%attr({file.mode:04o}, root, root) "
        yield f"{kind}{rights}{path}"
    # Directories that are the package's own, and those of shells that may not be installed.
    parents = {str(parent) for file in files for parent in pathlib.PurePath(f"/{file.path}").parents}
    for directory in sorted(parents):
        if re.match(r"/usr/share/((doc|licenses)/iolite|zsh|fish)|/etc/iolite", directory):
            yield f"%dir {directory}"


def spec(release, package, summary, about, fields, files, scripts):
    lines = [
        f"Name: {package}",
        f"Version: {release.system}",
        "Release: 1",
        f"Summary: {summary}",
        # The words of SPDX, as Fedora has them.
        f"License: {texts.LICENCE}",
        "Group: System/Benchmark",
        f"Packager: {texts.MAINTAINER}",
        *(f"{name}: {value}" for name, value in fields),
        "%description",
        "\n\n".join(textwrap.fill(text, 76) for text in about),
        *(f"%{name}\n{text}" for name, text in scripts),
        "%files",
        *listed(files),
        "%changelog",
        f"* {time.strftime('%a %b %d %Y', time.gmtime(release.epoch))} {texts.MAINTAINER} - {release.system}-1",
        f"- Version {release.version}. CHANGELOG.md of the package iolite says what is new.",
    ]
    return "\n".join(lines) + "\n"


# Nothing is built or changed here. xz is what the rpm of RHEL 7 reads, too.
MACROS = {
    "_binary_payload": "w9.xzdio",
    "_build_id_links": "none",
    "_buildhost": "localhost",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0",
    "__os_install_post": "%{nil}",
    "debug_package": "%{nil}",
    "_rpmfilename": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
    # Debian's rpm has none of this in its database.
    "_missing_build_ids_terminate_build": "0",
}


def build(release, arch, package, files, *spec_parts):
    top = fresh(WORK / f"rpm/{package}")
    tree.lay(files, top / "files")
    (top / "package.spec").write_text(spec(release, package, *spec_parts[:3], files, spec_parts[3]))
    defines = {**MACROS, "_topdir": top, "_rpmdir": release.out, "_dbpath": top / "db"}
    options = [word for name, value in defines.items() for word in ("--define", f"{name} {value}")]
    # What rpmbuild packs is a copy that it may remove.
    words = ["rpmbuild", "-bb", "--quiet", "--target", f"{arch}-linux", "--buildroot", top / "files", "--noclean"]
    # (An empty home: settings in ~/.rpmmacros would change the package.)
    env = {"SOURCE_DATE_EPOCH": str(release.epoch), "HOME": str(top)}
    run(*words, *options, top / "package.spec", env=env)
    return release.out / f"{package}-{release.system}-1.{arch}.rpm"


def make(release, arch, files):
    need("rpmbuild", "rpm")
    all_files = tree.system(installed(files))
    fields = [
        ("AutoReqProv", "no"),
        ("Requires", "libc.so.6(GLIBC_2.17)(64bit)"),
        # The services have a user.
        ("Requires(post)", "/usr/sbin/useradd"),
        *(("Suggests", name) for name in vendors.packages("rhel")),
    ]
    scripts = [(name, text.decode()) for name, text in tree.scripts("rpm")]
    main = build(release, arch.rpm, "iolite", all_files, texts.SUMMARY, texts.ABOUT, fields, scripts)
    names = [File("usr/bin/fio", link="iolite"), File("usr/share/man/man1/fio.1.gz", link="iolite.1.gz")]
    fields = [
        ("AutoReqProv", "no"),
        ("BuildArch", "noarch"),
        ("Requires", f"iolite >= {release.system}"),
        ("Provides", f"fio = {texts.FIO_VERSION}"),
        ("Conflicts", "fio"),
    ]
    return [main, build(release, "noarch", "iolite-fio", names, texts.FIO_SUMMARY, texts.FIO_ABOUT, fields, [])]
