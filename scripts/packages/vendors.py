"""The packages of the libraries that engines load when they are used: as the program names them in its errors."""

import re

from common import ROOT, Failed


def packages(system):
    """The names that the sources have for a system (`debian`, `rhel`), sorted."""
    found = set()
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        for names in re.findall(rf'^\s+{system}: "(.+)",$', path.read_text(), re.M):
            found.update(re.split(r", | and ", names))
    if not found:
        raise Failed(f'no source names a package of {system} (looked for `{system}: "…"` in crates/*/src)')
    return sorted(found)
