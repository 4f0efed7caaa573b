"""What a program needs of the system that it is started on, read from the file itself."""

import re
import subprocess

from common import Failed

OLDEST_GLIBC = (2, 17)
# glibc's own libraries: all that a program may need, as each Linux with glibc has them.
GLIBC = re.compile(r"(libc|libm|libdl|libpthread|librt|libutil)\.so\.\d+|ld-linux[-\w]*\.so\.\d+")


def readelf(path, *options):
    done = subprocess.run(["readelf", "--wide", *options, path], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"readelf cannot read {path}: {done.stderr}")
    return done.stdout


def libraries(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", readelf(path, "--dynamic"))


def newest_glibc(path):
    """The newest version of glibc's symbols that the program refers to."""
    wanted = re.findall(r"Name: GLIBC_(\S+)", readelf(path, "--version-info"))
    named = [version for version in wanted if not re.fullmatch(r"[\d.]+", version)]
    if named:
        raise Failed(f"{path} needs GLIBC_{named[0]}, which has no place in the order of versions")
    return max((tuple(map(int, version.split("."))) for version in wanted), default=(0,))


def check_dynamic(path):
    """Refuses a program that does not start on a system with glibc 2.17."""
    others = [name for name in libraries(path) if not GLIBC.fullmatch(name)]
    if others:
        raise Failed(f"{path} needs libraries beyond glibc: {', '.join(others)}")
    newest = newest_glibc(path)
    if newest > OLDEST_GLIBC:
        raise Failed(
            f"{path} needs GLIBC_{'.'.join(map(str, newest))}, and packages promise 2.17: "
            "call that function by its number (crates/os/src/by_number.rs)"
        )


def check_static(path):
    """Refuses a program that needs a loader or a library."""
    if "INTERP" in readelf(path, "--program-headers") or libraries(path):
        raise Failed(f"{path} is not static")
