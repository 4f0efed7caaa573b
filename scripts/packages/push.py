"""The static program, for machines whose C library is no glibc, or unknown: one file. Its licences are beside it."""

import tree


def make(release, arch, program):
    path = release.out / f"iolite-push-{release.version}-linux-{arch.name}"
    path.write_bytes(program.read_bytes())
    path.chmod(0o755)
    licences = release.out / f"iolite-{release.version}-licences.txt"
    licences.write_bytes(tree.THIRD_PARTY.read_bytes())
    return [path, licences]
