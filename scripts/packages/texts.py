"""What packages say about Iolite."""

import os

SUMMARY = "I/O tester: does the I/O of a job file, and tells what the storage did"
ABOUT = [
    "Iolite performs the I/O that a job file describes against files, block devices, object stores, NFS, iSCSI or Ceph, "
    "and reports IOPS, bandwidth and latency with its distribution. It understands the job files and options of fio, "
    "has most engines in one program, verifies data, and loads storage from many machines.",
    "Engines of vendors' libraries (Ceph, libnbd, libiscsi, RDMA) load these when they are used. They are suggested, not required.",
]
FIO_SUMMARY = "Iolite under the name fio"
FIO_ABOUT = [
    "This package has the link fio, with which scripts that call fio use Iolite. "
    "Called by that name, it follows fio's command line and output to the letter. Whoever removes it installs fio again.",
]
LICENCE = "Apache-2.0 OR MIT"
# Who answers for packages: whoever makes them may say so.
MAINTAINER = os.environ.get("IOLITE_MAINTAINER", "The Iolite authors <maintainers@iolite.example>")
# The release of fio whose behaviour the name `fio` has.
FIO_VERSION = "3.42"
