"""Whether two people get the same bytes: everything is made in two directories, under different circumstances."""

import os
import shutil

from common import OUT, ROOT, Failed, fresh, need, run, sha256

# What may differ between people: where the checkout is, their time zone, language, umask and names, and the day.
PEOPLE = [
    ("a", {"TZ": "UTC", "LC_ALL": "C", "USER": "one", "HOSTNAME": "one"}, "022", []),
    (
        "second/a-longer-name",
        {"TZ": "Pacific/Chatham", "LC_ALL": "C.UTF-8", "USER": "two", "HOSTNAME": "two"},
        "077",
        ["faketime", "-f", "+400d"],
    ),
]


def check(arches, kinds):
    need("diffoscope", "diffoscope-minimal")
    top = fresh(OUT / "reproducible")
    results = []
    for name, circumstances, umask, clock in PEOPLE:
        checkout = top / name
        checkout.parent.mkdir(parents=True, exist_ok=True)
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, checkout)
        licences = ROOT / "target/licences"
        if licences.exists():
            shutil.copytree(licences, checkout / "target/licences")
        # Another day, where a program for that is installed.
        words = clock if clock and shutil.which(clock[0]) else []
        if clock and not words:
            print(f"({clock[0]} is missing: both are made by today's clock)")
        arch = "--arch=" + ",".join(arch.name for arch in arches)
        script = f'umask {umask} && exec "$@"'
        env = {**circumstances, "HOME": os.environ["HOME"]}
        run("sh", "-c", script, "sh", *words, "scripts/package", arch, *kinds, cwd=checkout, env=env)
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
