"""Whether another person gets the same bytes: everything is made here, and again in a copy of the last commit, under other circumstances."""

import os
import pathlib
import shutil

import build
from common import OUT, ROOT, TOOLS, Failed, ask, fresh, need, run, sha256

# What differs for the other person, besides the time, the homes, and where the checkout is.
CIRCUMSTANCES = {"TZ": "Pacific/Chatham", "LC_ALL": "POSIX", "PYTHONUTF8": "0", "USER": "two", "HOSTNAME": "two"}


def check(arches, kinds):
    need("diffoscope", "diffoscope-minimal")
    changed = ask("git", "status", "--porcelain", "--untracked-files=no")
    if changed:
        raise Failed(f"the copy would have the last commit, and this checkout has changes: commit them first\n{changed}")
    words = ["scripts/package", "--arch=" + ",".join(arch.name for arch in arches), *kinds]
    top = fresh(OUT / "reproducible")
    # Packages of an earlier run, perhaps for more processors, stay where they are.
    run(*words, f"--to={top}/here")
    checkout = top / "another/long-name"
    run("git", "clone", "--quiet", "--no-hardlinks", ROOT, checkout)
    (checkout / "target").mkdir()
    # Tools are in pinned versions: the same for all.
    build.tools()
    (checkout / "target/package-tools").symlink_to(TOOLS)
    # Sources of dependencies lie elsewhere, too. (What is fetched again is compared with Cargo.lock.)
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    other = {**CIRCUMSTANCES, "CARGO_HOME": top / "cargo", "HOME": top / "home"}
    # The compiler is the same. Settings of rpmbuild in this home would change the packages if they were read.
    other["RUSTUP_HOME"] = os.environ.get("RUSTUP_HOME", pathlib.Path.home() / ".rustup")
    (top / "home").mkdir()
    (top / "home/.rpmmacros").write_text("%vendor Somebody\n%distribution Somebody's own\n%_binary_payload w1.gzdio\n")
    shutil.copytree(home / "registry/cache", top / "cargo/registry/cache")
    shutil.copytree(home / "registry/index", top / "cargo/registry/index")
    run("sh", "-c", 'umask 077 && exec "$@"', "sh", *words, cwd=checkout, env=other)
    results = [top / "here", checkout / "target/packages"]
    names = [sorted(line.split()[1] for line in (place / "SHA256SUMS").read_text().splitlines()) for place in results]
    if names[0] != names[1]:
        raise Failed(f"not the same files were made: {names[0]} and {names[1]}")
    different = [name for name in names[0] if sha256(results[0] / name) != sha256(results[1] / name)]
    for name in different:
        # (Its exit status is 1 for files that differ.)
        run("sh", "-c", 'diffoscope --text=- "$@" || true', "sh", results[0] / name, results[1] / name)
    if different:
        raise Failed(f"these differ: {', '.join(different)} (in {top})")
    shutil.rmtree(top)
    print(f"The same bytes twice: {', '.join(names[0])}")
    return 0
