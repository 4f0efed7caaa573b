"""The static program, for machines whose C library is no glibc, or unknown: one file."""


def make(release, arch, program):
    path = release.out / f"iolite-push-{release.version}-linux-{arch.name}"
    path.write_bytes(program.read_bytes())
    path.chmod(0o755)
    return [path]
