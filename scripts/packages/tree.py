"""What is installed, and where: one list, below a prefix (`/usr` of packages, or the directory of the archive).

`share/doc/iolite` looks as the checkout does, so the links between the pages lead somewhere.
"""

import os
import pathlib

from common import ROOT, WORK, ask, fresh, is_checkout, run

DOC = "share/doc/iolite"
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]
# Made by scripts/licences, which scripts/package runs: the licences of all dependencies.
THIRD_PARTY = ROOT / "target/licences/THIRD-PARTY.txt"
COMPLETIONS = {
    "bash": "share/bash-completion/completions/iolite",
    "zsh": "share/zsh/site-functions/_iolite",
    "fish": "share/fish/vendor_completions.d/iolite.fish",
}
# Of deploy/systemd.
SERVICES = {
    "iolite-agent.service": "usr/lib/systemd/system/iolite-agent.service",
    "iolite-web.service": "usr/lib/systemd/system/iolite-web.service",
    "iolite.sysusers": "usr/lib/sysusers.d/iolite.conf",
    "agent.conf": "etc/iolite/agent.conf",
    "web.conf": "etc/iolite/web.conf",
}


class File:
    """A file of a package: its path there, its bytes, whether it is a program; or a link."""

    def __init__(self, path, data=b"", program=False, link=None):
        self.path = path
        self.data = data
        self.mode = 0o755 if program else 0o644
        self.link = link


def completions():
    """The script of each shell. (Made by the tables of options alone: the program may be for another processor.)"""
    directory = fresh(WORK / "completions")
    run("cargo", "run", "--quiet", "--locked", "-p", "iolite-options", "--example", "completions", directory)
    return {shell: (directory / shell).read_bytes() for shell in COMPLETIONS}


def tracked(*tops):
    """The files of the sources below directories: those that git knows, or all, where the sources came without it."""
    if is_checkout():
        return [pathlib.PurePath(name) for name in ask("git", "ls-files", "-z", "--", *tops).split("\0") if name]
    found = (path.relative_to(ROOT) for top in tops for path in (ROOT / top).rglob("*") if path.is_file())
    # (Keys that someone has made below deploy/kubernetes must not get into packages.)
    return sorted(path for path in found if path.suffix != ".keys")


def common(shells):
    """Everything but the program, sorted by path."""
    files = [File("share/man/man1/iolite.1", (ROOT / "docs/iolite.1").read_bytes())]
    files += [File(path, shells[shell]) for shell, path in COMPLETIONS.items()]
    files.append(File("include/iolite-engine.h", (ROOT / "include/iolite-engine.h").read_bytes()))
    for name in ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", *LICENCES]:
        files.append(File(f"{DOC}/{name}", (ROOT / name).read_bytes()))
    files.append(File(f"{DOC}/{THIRD_PARTY.name}", THIRD_PARTY.read_bytes()))
    for path in tracked("docs", "examples", "deploy"):
        # The manual and the services are where the system looks for them.
        if path.suffix == ".1" or path.parts[1] in ("systemd", "deb", "rpm"):
            continue
        script = os.access(ROOT / path, os.X_OK)
        files.append(File(f"{DOC}/{path}", (ROOT / path).read_bytes(), program=script))
    return sorted(files, key=lambda file: file.path)


def examples_of_services():
    """The services of systemd, to be copied by hand from where there is no package of the system."""
    return [File(f"{DOC}/deploy/systemd/{name}", (ROOT / "deploy/systemd" / name).read_bytes()) for name in SERVICES]


def services():
    """The services of systemd with their user and settings, by their places in the system."""
    return [File(place, (ROOT / "deploy/systemd" / name).read_bytes()) for name, place in SERVICES.items()]


def system(files):
    """The files of a package of a system: those below /usr, and the services."""
    return [File(f"usr/{file.path}", file.data, file.mode == 0o755) for file in files] + services()


def scripts(kind):
    """The maintainer scripts of a kind of package: the name of each, and its bytes."""
    names = ["preinst", "pre", "postinst", "post", "prerm", "preun", "postrm", "postun"]
    paths = [ROOT / f"deploy/{kind}/{name}" for name in names]
    return [(path.name, path.read_bytes()) for path in paths if path.exists()]


def lay(files, below):
    """Writes files below a directory, with the rights that they have in packages."""
    for file in files:
        path = below / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.link:
            path.symlink_to(file.link)
        else:
            path.write_bytes(file.data)
            path.chmod(file.mode)
    for directory, names, _ in os.walk(below):
        os.chmod(directory, 0o755)
