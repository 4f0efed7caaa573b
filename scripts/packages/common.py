"""What all parts of scripts/package share: the checkout, its version and time, the architectures, and how programs are run."""

import atexit
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "target/packages"
# Trees of packages, until the script ends; what cargo makes, and programs that are installed for the packages.
WORK = pathlib.Path(tempfile.mkdtemp(prefix="iolite-packages-"))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
BUILD = OUT / "build"
TOOLS = (ROOT / "target/package-tools").resolve()


class Skipped(Exception):
    """A kind that cannot be made here: the reason and the remedy. It is said in the table, and the others are made."""


class Failed(Exception):
    """What was made is wrong, or cannot be made: nothing more is."""


class Arch:
    """A processor, under the names that each kind of package has for it."""

    def __init__(self, name, rust, rpm):
        self.name = name  # Debian's and OCI's
        self.rust = rust
        self.rpm = rpm  # also the kernel's and Python's
        self.gnu = f"{rust}-unknown-linux-gnu"
        self.musl = f"{rust}-unknown-linux-musl"


ARCHES = {"amd64": Arch("amd64", "x86_64", "x86_64"), "arm64": Arch("arm64", "aarch64", "aarch64")}


class Release:
    """The version, as each kind of package writes it, the moment that all packages carry, and where they go."""

    def __init__(self, version=None, out=OUT):
        self.out = out
        if not version:
            manifest = (ROOT / "Cargo.toml").read_text()
            version = re.search(r'^\[workspace\.package\]\n(?:.+\n)*?version = "(.+)"', manifest, re.M)[1]
        parts = re.fullmatch(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?", version)
        if not parts:
            raise Failed(f'the version "{version}" has no form for all packages: 1.2.3, or 1.2.3-rc.1 (alpha, beta, rc)')
        number, stage, count = parts.groups()
        self.version = version
        # A release is newer than its candidates: Debian and rpm know that by a tilde, Python by a letter.
        self.system = number + (f"~{stage}{count}" if stage else "")
        self.python = number + ({"alpha": "a", "beta": "b", "rc": "rc"}[stage] + count if stage else "")
        self.epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or self.commit_time())

    @property
    def commit(self):
        """The commit, which the caller may name; None = it is not known."""
        if "IOLITE_COMMIT" in os.environ or not is_checkout():
            return os.environ.get("IOLITE_COMMIT")
        return ask("git", "rev-parse", "HEAD") + (" (changed)" if ask("git", "status", "--porcelain", "--untracked-files=no") else "")

    @staticmethod
    def commit_time():
        if not is_checkout():
            raise Failed("this is no checkout of git: say the time of the sources, SOURCE_DATE_EPOCH=$(date +%s)")
        return ask("git", "log", "-1", "--format=%ct")


def run(*words, env=None, cwd=ROOT, **options):
    """Runs a program, and fails with its output if it does."""
    words = [str(word) for word in words]
    print("+", " ".join(words), flush=True)
    done = subprocess.run(words, env={**os.environ, **(env or {})}, cwd=cwd, **options)
    if done.returncode:
        said = (done.stdout or b"") + (done.stderr or b"")
        raise Failed(f"{words[0]} has failed ({done.returncode}) {said.decode(errors='replace')}")
    return done.stdout


def ask(*words):
    """What a program says; None = it has failed, or is not there."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def is_checkout():
    """Whether git knows these sources. (Unpacked ones may lie in the checkout of something else.)"""
    if not (ROOT / ".git").exists():
        return False
    if ask("git", "rev-parse", "HEAD") is None:
        raise Failed("there is a .git here, and git cannot use it: what does `git status` say?")
    return True


def need(program, package):
    """Skips a kind whose maker is not installed."""
    found = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not found:
        raise Skipped(f"{program} is missing (Debian: apt-get install {package})")
    return found


def fresh(directory):
    """An empty directory."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
