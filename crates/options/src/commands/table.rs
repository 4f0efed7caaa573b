//! The table of all subcommands: their words, options and help.

use super::{Command, fio, switch, word};

/// All subcommands.
pub static ALL: &[Command] = &[
    Command {
        name: "ai",
        operand: "dataset|reader|checkpoint|kv target",
        choices: &["dataset", "reader", "checkpoint", "kv"],
        files: true,
        takes_job_options: false,
        help: "What AI asks of storage: samples for accelerators, checkpoints, caches",
        details: "The target is a directory, or a URL: s3://BUCKET/PREFIX, nfs://HOST/EXPORT. dataset writes the samples of a \
                  published model (--preset), or of any size, and they stay. reader reads them for accelerators that compute \
                  with a batch for a given time: how busy they are (AU), samples per second, the share of waiting; with \
                  --accelerators=max, the largest number that the storage keeps busy. checkpoint lets ranks write, sync and \
                  read back; the slowest rank is the figure. kv is a cache of keys and values: tenants ask for blocks at \
                  rates, some of which are found and read, while the others are written and old ones evicted; time to the \
                  first block, and p99. With --client or --mpi the same runs on several machines. --show-job prints the jobs. \
                  The patterns are those of MLPerf Storage 2.0, and results are no submissions to it. docs/standard-tests.md \
                  has the details.",
        options: &[
            word(
                "preset",
                "name",
                "A published model: unet3d, resnet50, cosmoflow; for checkpoint: llama3-8b, -70b, -405b, -1t; list describes them",
            ),
            word("samples", "number", "dataset: how many samples"),
            word("sample-size", "bytes", "dataset: the mean size of a sample, without a preset"),
            word("deviation", "bytes", "dataset: the standard deviation of that size (default 0)"),
            word("per-file", "number", "dataset: samples in a file (default 1)"),
            word(
                "writers",
                "number",
                "dataset: workers that write it (default: one per processor, at most 8)",
            ),
            word(
                "accelerators",
                "number|max",
                "reader: accelerators; max searches the largest number (default 1)",
            ),
            word(
                "gpu",
                "a100|h100",
                "reader: the accelerator whose computing time is published (default h100)",
            ),
            word("batch", "number", "reader: samples in a batch of one accelerator"),
            word("compute", "time", "reader: how long it computes with a batch: 323ms"),
            word(
                "readers",
                "number",
                "reader: readers for each accelerator (default 4, or that of the model)",
            ),
            word("prefetch", "number", "reader: batches that are read ahead (default 2)"),
            word("epochs", "number", "reader: how often the dataset is read (default 1)"),
            word(
                "seconds",
                "time",
                "reader: read the dataset over and over for this time; kv: how long (default 30); in seconds, or with a unit",
            ),
            word("shuffle", "files|records", "reader: what comes in random order (default: files)")
                .one_of(&["files", "records"]),
            word(
                "least",
                "percent",
                "reader: how busy accelerators have to be (default 90, or that of the model)",
            ),
            word("ranks", "number", "checkpoint: ranks; on several machines: of each"),
            word(
                "size",
                "bytes",
                "checkpoint: bytes of each rank; kv: bytes of each tenant's cache (default 256m)",
            ),
            word("scale", "factor", "checkpoint: takes this part of the bytes, such as 0.01"),
            word(
                "layout",
                "files|shared",
                "checkpoint: ranks have files of their own, or share one (default: files)",
            )
            .one_of(&["files", "shared"]),
            word("files", "number", "checkpoint: files of each rank (default 1)"),
            word("block", "bytes", "kv: bytes of a block, 64k to 4m (default 1m)"),
            word("rates", "list", "kv: requests per second of each tenant (default 10,10,10,10)"),
            word("blocks", "number", "kv: blocks of a request (default 8)"),
            word("hits", "percent", "kv: blocks that are found (default 80)"),
            word(
                "evict",
                "unlink|trim|overwrite",
                "kv: how old blocks go (default: unlink; objects and devices: trim; NFS: overwrite)",
            )
            .one_of(&["unlink", "trim", "overwrite"]),
            word(
                "destroy",
                "serial",
                "kv on a device: all its data may be lost; repeats its serial number (or its name)",
            ),
            word("direct", "", "Go around the page cache"),
            word(
                "client",
                "host",
                "Run on this machine, where an agent is (iolite --server); may be repeated",
            ),
            word(
                "mpi",
                "means",
                "Run on all ranks of mpirun or srun: auto, or pmix, pmi2, dir:PATH as --mpi of runs (--accelerators=max needs dir:PATH)",
            ),
            word("output", "file", "Also write the result to this file: NAME.json or NAME.html"),
            word("output-format", "text|json", "How to answer (default: text)").one_of(&["text", "json"]),
            word("save", "", "Keep the result in the store of runs"),
            word("label", "label", "The label under which --save keeps it (default: ai)"),
            word("store", "file", "The store of --save (default: that of the user)"),
            word(
                "resume",
                "",
                "dataset: keep what is written when interrupted, and go on with it; reader with --accelerators=max: go on with the search that --output=NAME.json has kept",
            ),
            word("show-job", "", "Measure nothing: print the jobs as a job file, for iolite FILE"),
            word("clean", "", "Measure nothing: remove what killed tests have left in the target"),
        ],
    },
    Command {
        name: "compare",
        operand: "base new...",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "Compares stored results: the differences, and how certain they are",
        details: "Each word is a side: a directory of results (its *.json), one result, or several with commas between \
                  them; base/*.json vs new/*.json works as well; and runs of the store: run:12,14-18, or label:NAME, \
                  which is all runs with that label. Results are reports in JSON (--output-format=json or json+), of \
                  iolite or of fio 3; if a file has several reports (--status-interval), the last one counts. Each \
                  further side is compared with the first. A result is one run, and a verdict (better, worse) needs at \
                  least five runs per side; with fewer there are figures only. If the sides are equal, any verdict at \
                  all appears in at most 5% of comparisons (6.5% if the runs of one side vary far more than those of \
                  the other). A limit is [JOB.][DIRECTION.]FIGURE < CHANGE% or > \
                  CHANGE%, with the figures iops, p50, p99, device, server, software, queue, bw, mean, p90, p95, \
                  p99.9 and cpu. The exit status is 1 if \
                  the whole interval of a change is beyond a limit, else 3 if an interval straddles a limit or is \
                  unknown, else 0. Runs that differ in rw, bs, iodepth, ioengine, device and the like are not \
                  comparable, unless --allow names the difference. Two results of iolite pts are compared cell by cell, and two \
                  of iolite ai or iolite meta figure by figure, without verdicts. docs/comparing.md describes the method.",
        options: &[
            word(
                "output-format",
                "table|json|csv|html",
                "How to answer (default: table); html is a page with curves",
            )
            .one_of(&["table", "json", "csv", "html"]),
            word(
                "fail-if",
                "limit",
                "Exit with 1 if a change is beyond this, such as 'read.iops < -5%'; may be repeated",
            ),
            word("fail-inconclusive", "", "Exit with 1, not 3, if a limit cannot be decided"),
            word(
                "allow",
                "list",
                "Options that may differ between the sides: bs, iodepth, ioengine, device, ...",
            ),
            word("output", "file", "Write the answer to this file (default: standard output)"),
            word("store", "file", "The store of run: and label: (default: that of the user)"),
        ],
    },
    Command {
        name: "completion",
        operand: "bash|zsh|fish",
        choices: &["bash", "zsh", "fish"],
        files: false,
        takes_job_options: false,
        help: "Prints the completion script for a shell",
        details: "For bash, put it into ~/.local/share/bash-completion/completions/iolite; for zsh, into a file \
                  _iolite in a directory of $fpath; for fish, into ~/.config/fish/completions/iolite.fish.",
        options: &[],
    },
    Command {
        name: "dedupe",
        operand: "file",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "How much of a file occurs more than once, and how it compresses",
        details: "Answers as fio-dedupe does, exactly as long as its table has room: it keeps about 40 bytes for each \
                  distinct block, of at most seven million. Beyond that it continues with a half, a quarter, … of the \
                  blocks, chosen by their content, and says that the numbers are estimates; they are within about a \
                  tenth of a percent. An incomplete block at the end is left out.",
        options: &[
            fio('b', "block-size", "bytes", "Size of a block (default 4096)"),
            fio('t', "threads", "number", "Threads (default: one per processor)"),
            switch('d', "duplicates", "List blocks that occur more than once, and their places"),
            switch('o', "direct", "Read around the page cache (O_DIRECT)"),
            switch('c', "collisions", "Compare blocks with the same hash byte by byte"),
            switch(
                'B',
                "little-memory",
                "Use little memory: a table of a hundred thousand blocks (default 0)",
            ),
            switch('p', "progress", "Show progress on standard error (default: if it is a terminal)"),
            switch(
                'C',
                "compress",
                "Compress each distinct block and show by how much it shrinks (default 0)",
            ),
        ],
    },
    Command {
        name: "device",
        operand: "device",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "Describes a device and its features, with jobs that try them",
        details: "Describes a block device, a character device that holds data (/dev/ng0n1, /dev/sg0), or the device \
                  below a file: model, firmware, serial number, capacity, LBA formats with metadata and protection \
                  information, zones and their limits, atomic writes, data placement and streams, limits of the queue, \
                  scheduler, cache, power states, wear and temperature; with a job for each feature. Sysfs is readable \
                  by everybody; commands to the device, which only read, need permission. Queries that fail are \
                  listed. Devices that are built on others (dm, md, loop) are followed by those. --output-format=jobs \
                  prints only the job file, in which jobs that change data are commented out. docs/device.md describes \
                  the facts.",
        options: &[
            word("output-format", "table|json|jobs", "How to answer (default: table)")
                .one_of(&["table", "json", "jobs"]),
            word("json", "", "Answer in JSON, as --output-format=json"),
        ],
    },
    Command {
        name: "keys",
        operand: "new|show|renew|revoke...",
        choices: &["new", "show", "renew", "revoke"],
        files: true,
        takes_job_options: false,
        help: "Keys by which machines of --client and --server authenticate each other",
        details: "new [DIR] makes a set of keys in a directory (default: $XDG_CONFIG_HOME/iolite, else \
                  ~/.config/iolite): coordinator.keys for the machine that calls --client; agents.keys, to be copied \
                  to every machine with a --server; and authority.keys, which stays there and makes the others. Both \
                  ends look for their file in that directory of their user, or at --keys or IOLITE_KEYS; a file that \
                  other users can read is refused (chmod 600). show [DIR|FILE]... lists the keys, until when they are \
                  valid, which are revoked, and their ids. renew [DIR] makes new keys for both ends, which work \
                  together with the old ones until these expire. revoke [DIR] KEY... revokes keys: coordinator and \
                  agents mean the current ones, others are named by their ids; replacements are made. After renew and \
                  revoke, copy the files again: an end refuses revoked keys once it has its new file, and a server \
                  reads its file for every connection.",
        options: &[word("days", "number", "How long new keys are valid, 1 to 3650 days (default: 365)")],
    },
    Command {
        name: "log2csv",
        operand: "file",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "Latencies as comma-separated values, from json+ reports and histogram logs",
        details: "A report made with --output-format=json+ becomes a table of its bins: how many I/Os of each job and \
                  direction had each latency, and the share of all that had at most that. With --output there is a file for \
                  each job, with the columns of fio_jsonplus_clat2csv. Histogram logs (write_hist_log), compressed or \
                  not, become a table with a row for each window and direction: the number of I/Os, their least and \
                  largest latency, and percentiles. Logs of several workers are added together.",
        options: &[
            word("percentiles", "list", "Percentiles of histogram logs (default 50,90,95,99,99.9,99.99)"),
            word(
                "together",
                "ms",
                "Combine windows to this many milliseconds (default: none; for several logs, 1000)",
            ),
            word("all", "", "Add all directions together"),
            word("unit", "ns|us|ms", "Unit of the latencies of histogram logs (default ns)")
                .one_of(&["ns", "us", "ms"]),
            word("output", "file.csv", "Write a report's tables to file_job0.csv, file_job1.csv, ..."),
        ],
    },
    Command {
        name: "meta",
        operand: "directory|s3://bucket/prefix",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "Measures operations on names in a directory, as mdtest and IO500 do",
        details: "Each worker creates directories and files, looks them up, reads, links, renames and removes them, one kind of \
                  operation after the other. The result has for each phase the operations per second (until the first worker \
                  had ended, as mdtest's stonewall, and over all), their latencies, and the slowest worker. All workers begin \
                  a phase together, also on several machines: with agents (--client, once for each), or under mpirun and \
                  srun with --mpi; all of them have to see the directory. Everything is in a directory of the test's own, \
                  which is removed at the end; what a killed test has left is removed by the next one, or by --clean. \
                  --preset=io500 runs the twelve phases of IO500 and computes its score: the same pattern, not a \
                  submission. On s3://bucket/prefix, objects are written, looked up, read, listed and removed. \
                  docs/standard-tests.md describes the phases.",
        options: &[
            word(
                "tasks",
                "number",
                "Workers on each machine (default: one per processor of this one, at most 16)",
            ),
            word(
                "files",
                "number",
                "Files, and directories, of each worker (default: 1000; with a time limit 1000000)",
            ),
            word("size", "bytes", "Bytes of each file (default: 4k)"),
            word("shared", "", "All workers use one directory (default: one for each)"),
            word(
                "depth",
                "levels",
                "Spread files over a tree of directories with so many levels (default: 0)",
            ),
            word("breadth", "number", "Directories in each directory of the tree (default: 2)"),
            word(
                "phases",
                "list",
                "These of mkdir, dirstat, create, stat, read, setxattr, getxattr, link, readdir, rename, unlink, rmdir, in this order",
            ),
            word("time", "time", "End a phase that creates something then, such as 30s (IO500: 300s)"),
            word(
                "shift",
                "number",
                "Look up and read what the worker, or machine, so many places further made (IO500: 1)",
            ),
            word("data", "bytes", "IO500: the most data of each worker in ior-easy, and in ior-hard"),
            word("preset", "io500", "Run the phases of IO500").one_of(&["io500"]),
            word("client", "address", "Run on this agent (iolite --server); may be repeated"),
            word("mpi", "", "Run on all ranks of mpirun or srun, which all call this command"),
            word("verify", "", "Check the whole tree after each phase: names, sizes, links, attributes"),
            word("output", "file", "Also write the result to this file: NAME.json, NAME.md or NAME.html"),
            word("save", "", "Keep the result in the store of runs"),
            word("label", "label", "The label under which --save keeps it (default: meta)"),
            word("store", "file", "The store of --save (default: that of the user)"),
            word("show-job", "", "Measure nothing: print the phases as job files"),
            word("clean", "", "Measure nothing: remove what killed tests have left in the directory"),
        ],
    },
    Command {
        name: "pts",
        operand: "device",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "Qualifies a device by SNIA's Performance Test Specification",
        details: "Destroys the data of the device. Follows the public text of version 2.0.2. Each test purges the device, writes twice its capacity in order, \
                  and runs rounds until the device is in a steady state: five rounds that differ by at most 20% of \
                  their average, and whose fitted line changes by at most 10% of it, within at most 25 rounds; a steady \
                  state that is not reached is told as such. The tests: iops (7 mixes by 8 block sizes), tp (throughput), \
                  lat (latency with one I/O in flight), wsat (write saturation), hir (host idle recovery), xsr (cross \
                  stimulus recovery), dirth (demand variation and response times), ecw (composite workload). All data of \
                  the device is lost: --destroy repeats its serial number, and a device in use is refused. A cell takes a \
                  minute, and a procedure hours. What each cell measured is kept in a directory (--output); after an \
                  interruption, a kill or a reboot, the same command with --resume goes on there, and repeats only the \
                  cell that was interrupted, or the test if the device was written meanwhile. The result is result.json \
                  and result.html in that directory; iolite compare puts two results side by side. What does not conform \
                  to the specification is marked. docs/standard-tests.md describes the tests, and what is chosen here \
                  where the text leaves a choice.",
        options: &[
            word(
                "destroy",
                "serial",
                "All data of the device may be lost; repeats its serial number (or its name)",
            ),
            word("test", "list", "The tests: iops,tp,lat,wsat (default), hir,xsr,dirth,ecw, or all"),
            word(
                "class",
                "enterprise|client",
                "Write cache off and the whole device (default), or on and 75% of it",
            )
            .one_of(&["enterprise", "client"]),
            word("range", "size|percent", "Use this much of the device, from its beginning"),
            word("threads", "number", "Workers (default: that of each test; lat has one)"),
            word(
                "depth",
                "number",
                "I/Os in flight of each worker (default: that of each test; lat has one)",
            ),
            word("pattern", "data", "What is written: random (default), zeroes or compress:PERCENT"),
            word(
                "purge",
                "way",
                "auto (default), format, sanitize, discard, run:COMMAND (with $DEVICE), or none",
            ),
            word(
                "cell",
                "time",
                "How long a cell takes (default: 60s); otherwise the result does not conform",
            ),
            word("quick", "", "Try it out: short cells and a range of 1 GiB; the result does not conform"),
            word("allow-file", "", "Try it out on a file; the result does not conform"),
            word("output", "directory", "Where results go (default: DEVICE-SERIAL.pts)"),
            word("resume", "", "Continue an interrupted procedure"),
            word("save", "", "Keep the result in the store of runs"),
            word("label", "label", "The label under which --save keeps it (default: pts)"),
            word("store", "file", "The store of --save (default: that of the user)"),
            word("show-job", "", "Run nothing: print the cases as a job file"),
        ],
    },
    Command {
        name: "report",
        operand: "result.json",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "Shows a stored result as a page, a summary, Markdown or CSV",
        details: "Reads a report in JSON (--output-format=json or json+), of iolite or of fio 3. On a terminal, it shows \
                  the summary; otherwise it makes one self-contained HTML file. md is a table for issue trackers, csv has a \
                  line for each direction of each job, with its options in columns. The distribution of latency needs the histograms of json+, and \
                  curves over time need reports of iolite. If a file has several reports (--status-interval), the last \
                  one counts. - is standard input; run:12 and label:NAME are runs of the store. With --logs, pictures \
                  are drawn from the logs of the run (write_bw_log, write_iops_log, write_lat_log, write_hist_log), of \
                  iolite or of fio, instead of its samples: PREFIX is the value of the option, DIRECTORY stands for \
                  all logs that the result names. docs/results.md describes the page.",
        options: &[
            word("output", "page.html", "Write to this file (default: standard output)"),
            word(
                "output-format",
                "html|summary|md|csv",
                "How to answer (default: html; summary on a terminal)",
            )
            .one_of(&["html", "summary", "md", "csv"]),
            word("csv", "", "The same as --output-format=csv"),
            word("color", "when", "Colour the summary: always, never or auto (default: on a terminal)")
                .one_of(&["always", "never", "auto"]),
            word(
                "logs",
                "prefix",
                "Draw the logs PREFIX_*.log, a LOG or those in a DIRECTORY; several with commas, or repeated",
            ),
            word("store", "file", "The store of run: and label: (default: that of the user)"),
        ],
    },
    Command {
        name: "runs",
        operand: "[list|show|label|remove|export|import|limits|check]...",
        choices: &["list", "show", "label", "remove", "export", "import", "limits", "check"],
        files: true,
        takes_job_options: false,
        help: "The store of runs that were kept with --save",
        details: "list (the default) has a line for each run; show shows one run as text, or as a page \
                  (--output=page.html). label RUN LABEL names a run; remove, export and import take runs out or in: \
                  results in JSON, of iolite or of fio 3. A RUN is its number, a list such as run:12,14-18, or \
                  label:NAME, which is all runs with that label. Patterns may have * and ?. Times are dates \
                  (2026-11-20), or ages (7d, 12h). limits shows and sets how much is kept: when it is used up, the \
                  oldest runs are dropped, those without a label first, with a message. check checks whether the store \
                  is intact. docs/results.md has the details.",
        options: &[
            word("store", "file", "The store (default: iolite/runs.db in the user's data directory)"),
            word(
                "label",
                "pattern",
                "Only runs with such a label; for import: the label of the imported runs",
            ),
            word("host", "pattern", "Only runs on such a machine"),
            word("job", "pattern", "Only runs with a job of such a name"),
            word(
                "status",
                "ended|interrupted|failed|unknown",
                "Only runs that ended so (unknown: fio's, and those of older versions)",
            )
            .one_of(&["ended", "interrupted", "failed", "unknown"]),
            word("since", "time", "Only runs that began then or later"),
            word("before", "time", "Only runs that began earlier"),
            word("last", "number", "Only the newest, this many"),
            word(
                "output-format",
                "format",
                "How to answer: table (the default), json, or html, md and csv of one run",
            )
            .one_of(&["table", "json", "html", "md", "csv"]),
            word("output", "file", "Write the output to this file; for several runs, a directory"),
            word("quota", "bytes", "limits: the most bytes of all reports together (default 1g)"),
            word("most", "number", "limits: the most runs (default 10000)"),
            word("days", "number", "limits: the most days that runs are kept (default 0: unlimited)"),
            word("drop", "", "limits: drop the runs that are beyond new limits"),
        ],
    },
    Command {
        name: "sweep",
        operand: "[job.fio]",
        choices: &[],
        files: true,
        takes_job_options: true,
        help: "Runs a job with many values of some options, and shows where it saturates",
        details: "Any job option with several values makes an axis: --iodepth=1..256x2 (doubled each time), --numjobs=1..8+1 \
                  (one more each time), --bs=4k,64k (a list; a comma within a value is \\,). All combinations are run, \
                  each as a separate run; the values override those of each job. The jobs are those of a job file, or of \
                  the command line: --iodepth=1,4 --name=a --filename=f --size=1g. Reports go to a directory; after an \
                  interrupt, the same command continues there, and when all points are done, it begins anew in another \
                  one. At the end there is a table, and in the directory the page result.html, result.json and \
                  result.csv: IOPS and latency over the depth with the knee, the Universal Scalability Law, and a map \
                  of two options. Presets bring their own jobs, 30 s each on a file of 1 GiB in the current directory \
                  that is removed at the end; --size, --runtime, --directory and others change that. --preset=storage \
                  --directory=/a,/b compares the targets, and so does --target='disk: directory=/a' --target='nfs: \
                  ioengine=nfs nfs_url=nfs://server/export filename=f'. docs/sweeps.md has the details.",
        options: &[
            word(
                "output",
                "directory",
                "Where reports and results go (default: the job file's name, with .sweep)",
            ),
            word("output-format", "table|json|csv", "How to answer (default: table)")
                .one_of(&["table", "json", "csv"]),
            word("one-at-a-time", "", "Vary each option alone, while the others have their first values"),
            word(
                "target",
                "name: options",
                "A target that differs in several options from the others; may be repeated",
            ),
            word(
                "preset",
                "name",
                "Run these jobs: oltp, log, vm-boot, streaming, backup, storage; list describes them",
            )
            .one_of(&["oltp", "log", "vm-boot", "streaming", "backup", "storage", "list"])
            .checked_by_command(),
        ],
    },
    Command {
        name: "test",
        operand: "target...",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "Measures a directory, a file, a device or a server, and says what that means",
        details: "Needs no options: iolite test /mnt/data. Measures the bandwidth of sequential reads and writes at the \
                  block size and depth at which it is highest, the latency of random reads and writes of 4 KiB one at a \
                  time, random reads over the depth, a mix of 70% reads, the cost of durable writes (fdatasync), and in \
                  a directory the cost of making, looking up and removing small files. It ends with a table, and with \
                  sentences about what the figures mean and what they depend on (caches, limits, levels, stalls, \
                  settings), each with its evidence. In a directory, all files are in one directory of the test's own, \
                  which takes at most a tenth of the free space and is removed at the end; what a killed test has left \
                  is removed by the next one, or by --clean. An existing file or a device is only read, unless \
                  --destroy repeats its name, and a device in use (mounted, swap, part of another) is never written to. \
                  A URL names storage of a server: s3://, http://, https://, nfs://, nbd://, iscsi://, rados:, rbd:. \
                  Several targets are measured in turns and compared. A limit of --expect is \
                  [TARGET:]CASE.FIGURE<VALUE or >VALUE, with the figures iops, bw, p50, p99, p99.9, max and mean, and \
                  values such as 20k, 500MB/s, 100us, 2ms. The exit status is 1 if a limit does not hold, or something \
                  could not be measured. docs/testing-storage.md describes what is measured, and each sentence.",
        options: &[
            word("quick", "", "Take about 15 seconds: rough figures"),
            word("thorough", "", "Take about 10 minutes: each case until it is in a steady state"),
            word(
                "destroy",
                "device",
                "Also write to this device or existing file, whose data is lost; repeats the name of the target",
            ),
            word(
                "expect",
                "limits",
                "Exit with 1 unless these hold, such as 'randread.p99<2ms,write.bw>500MB/s'; may be repeated",
            ),
            word("output", "file", "Also write the result to this file: NAME.json, NAME.md or NAME.html"),
            word("save", "", "Keep the result in the store of runs"),
            word("label", "label", "The label under which --save keeps it (default: test)"),
            word("store", "file", "The store of --save (default: that of the user)"),
            word("show-job", "", "Measure nothing: print the cases as a job file, for iolite FILE"),
            word("clean", "", "Measure nothing: remove what killed tests have left in a directory"),
        ],
    },
    Command {
        name: "trace",
        operand: "file",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "Describes a trace: mix, sizes, order, hot ranges, pace, depth",
        details: "Reads a text log (write_iolog) or a binary trace of blktrace, in memory that does not grow with it. \
                  A damaged trace is an error that names the line or record. - is standard input. An I/O is sequential \
                  if it begins where the one before in the same file and direction ended; the depth is that of the \
                  device, which only block traces contain. A job file made with --to-job has the mix, sizes, order, \
                  hot tenths, mean rate and depth of the trace; to repeat a trace exactly, use read_iolog.",
        options: &[
            word("json", "", "Answer in JSON"),
            word("to-job", "", "Print a job file that imitates the trace"),
            word("to-log", "2|3", "Print the trace as a text log of this version").one_of(&["2", "3"]),
        ],
    },
    Command {
        name: "verify-state",
        operand: "file",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "Shows the writes of an interrupted job, and those that a check demands",
        details: "Reads the state file that a job with verify_state_save leaves when it is interrupted or killed: how \
                  many writes were issued and acknowledged, which were in flight, and for each file how many of them a \
                  later run with verify_state_load demands, under either verify_policy. A damaged file is an error.",
        options: &[
            word("json", "", "Answer in JSON"),
            word("list", "", "List each demanded write, with the numbers that are accepted"),
            word("policy", "completed|fsynced", "The verify_policy to apply (default: completed)")
                .one_of(&["completed", "fsynced"]),
        ],
    },
    Command {
        name: "version",
        operand: "",
        choices: &[],
        files: false,
        takes_job_options: false,
        help: "Shows what this program is: commit, compiler, features; processor and kernel",
        details: "What a report of a defect needs: version, commit, compiler, target, profile and features of the build; \
                  how this processor gives the time, random data and checksums; and which interfaces of the kernel are \
                  used here. iolite --version -v answers the same.",
        options: &[word("json", "", "Answer in JSON")],
    },
    Command {
        name: "web",
        operand: "[directory]",
        choices: &[],
        files: true,
        takes_job_options: false,
        help: "Stored results in a browser: a list, the page of each, comparisons",
        details: "Serves the runs of the store (--save keeps them), or the results in JSON in a directory (its \
                  *.json), of iolite or of fio 3, until it is ended. The address is printed on standard error, with a \
                  secret in it. With --allow-run, the holder of another address, which is printed as well, can write \
                  jobs in a page, which are checked as they are typed, and run them, one at a time. That is remote \
                  execution, so jobs can only use what --serve-only names, and run no programs; the runs are kept in \
                  the store. Without that option, nothing can be changed from there. Other machines are served only \
                  with --tls. docs/results.md describes the security.",
        options: &[
            word("listen", "address:port", "The address to listen on (default: 127.0.0.1 and any port)"),
            word(
                "tls",
                "files",
                "Encrypt the pages, as required for other machines: certificate,key (in PEM), or new (a key is made)",
            ),
            word("store", "file", "The store (default: that of the user)"),
            word(
                "metrics",
                "address:port",
                "Serve metrics of the jobs that are started there, for Prometheus (only with --allow-run)",
            ),
            word("allow-run", "", "Allow writing and starting jobs there (only with --serve-only)"),
            word(
                "serve-only",
                "paths",
                "Files and directories that those jobs may use, with commas; may be given several times",
            ),
        ],
    },
    Command {
        name: "zipf",
        operand: "",
        choices: &[],
        files: false,
        takes_job_options: false,
        help: "Shows which share of the accesses a random_distribution gives to which blocks",
        details: "Draws as many accesses as there are blocks, counts them, and shows the blocks that were hit in \
                  rows from the most to the least popular, as fio-genzipf does. Needs 4 bytes of memory per block.",
        options: &[
            fio('t', "law", "name", "zipf (default), pareto or normal").one_of(&["zipf", "pareto", "normal"]),
            fio(
                'i',
                "parameter",
                "number",
                "zipf's theta (default 1.2), pareto's power (0.3), or normal's deviation in percent (0)",
            ),
            fio('b', "block-size", "bytes", "Size of a block (default 4096)"),
            fio('g', "size", "gigabytes", "Size of the data in GiB (default 500)"),
            fio('o', "rows", "number", "Rows to show (default 20)"),
            fio('p', "hits", "percent", "Also show how much data gets this share of the hits"),
            fio('c', "csv", "", "Print rank and count of each block that was hit, separated by commas"),
        ],
    },
];
