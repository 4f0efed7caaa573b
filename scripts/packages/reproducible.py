"""Whether two people get the same bytes: everything is made in two directories, under different circumstances."""

import shutil

import build
from common import OUT, ROOT, TOOLS, Failed, fresh, need, run, sha256

# What differs between people, besides the time: where the checkout is, their time zone, language, names and umask.
PEOPLE = [
    ("a", {"TZ": "UTC", "LC_ALL": "C", "USER": "one", "HOSTNAME": "one"}, "022"),
    ("second/a-longer-name", {"TZ": "Pacific/Chatham", "LC_ALL": "C.UTF-8", "USER": "two", "HOSTNAME": "two"}, "077"),
]


def check(arches, kinds):
    need("diffoscope", "diffoscope-minimal")
    top = fresh(OUT / "reproducible")
    results = []
    for name, circumstances, umask in PEOPLE:
        checkout = top / name
        checkout.parent.mkdir(parents=True, exist_ok=True)
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, checkout)
        (checkout / "target").mkdir()
        # Tools are in pinned versions: the same for all.
        build.tools()
        (checkout / "target/package-tools").symlink_to(TOOLS)
        arch = "--arch=" + ",".join(arch.name for arch in arches)
        script = f'umask {umask} && exec "$@"'
        run("sh", "-c", script, "sh", "scripts/package", arch, *kinds, cwd=checkout, env=circumstances)
        results.append(checkout / "target/packages")
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
