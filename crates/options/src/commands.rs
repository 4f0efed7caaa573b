//! The subcommands: separate programs that are called through the same command line, `iolite dedupe FILE`.
//!
//! In the language, a first word without dashes is a job file, and subcommands do not change that: a subcommand is
//! called only if the first word is exactly its name and there is no job file of that name ([`Command::called_by`]).
//! A job file called `dedupe` is run, and the subcommand can be called from another directory. Other files of that
//! name (a trace called `trace`, say) do not count. Nothing else about the command line changes.
//!
//! An option is a word, `--policy=fsynced`, and has the same meaning in all subcommands that have it. A few have a
//! letter as well: that of the option of runs with the same name (`-o`, `--output`). A subcommand that replaces a program
//! of fio has the letters of that program with their meanings there, `-b 4096`, `-b4096`, because scripts call it with
//! them; these are the only letters that mean different things. Parsing, help, manual and completion are derived from
//! the table [`ALL`].

use crate::definition::Definition;
use crate::spelling::{closest, did_you_mean};
use crate::{registry, run_options};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

/// A subcommand.
#[derive(Debug)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// The words after its options, as its help shows them: in brackets if they are optional; empty = none.
    pub operand: &'static str,
    /// The words of which the first operand is one, if there is a choice.
    pub choices: &'static [&'static str],
    /// Its operands may be files (behind such a word, if there is a choice).
    pub files: bool,
    /// It takes options of jobs as well, each with one value or several.
    pub takes_job_options: bool,
    /// One line of help.
    pub help: &'static str,
    /// More about it, for the manual.
    pub details: &'static str,
    /// Its options.
    pub options: &'static [CommandOption],
}

/// An option of a subcommand.
#[derive(Debug)]
pub struct CommandOption {
    /// Its name, for `--word`.
    pub word: &'static str,
    /// Its letter in the program of fio that the subcommand replaces.
    fio: Option<char>,
    /// The name of its value; empty if it takes none.
    pub value: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// The values that it accepts; empty if they are more than a few words.
    pub choices: &'static [&'static str],
    /// The subcommand itself refuses other values.
    checks_values: bool,
}

/// Options of jobs, as the help of a subcommand that takes them shows them.
pub(crate) const JOB_OPTIONS: &str = "[--OPTION=VALUES]...";

/// The option that all subcommands have.
pub const HELP: &str = "help";

const fn word(word: &'static str, value: &'static str, help: &'static str) -> CommandOption {
    CommandOption { word, fio: None, value, help, choices: &[], checks_values: false }
}

/// An option that a program of fio has by this letter.
const fn fio(letter: char, word: &'static str, value: &'static str, help: &'static str) -> CommandOption {
    CommandOption { word, fio: Some(letter), value, help, choices: &[], checks_values: false }
}

/// An option of a program of fio that is switched on and off.
const fn switch(letter: char, word: &'static str, help: &'static str) -> CommandOption {
    fio(letter, word, "0|1", help).one_of(&["0", "1"])
}

impl CommandOption {
    const fn one_of(mut self, choices: &'static [&'static str]) -> Self {
        self.choices = choices;
        self
    }

    const fn checked_by_command(mut self) -> Self {
        self.checks_values = true;
        self
    }

    /// Its letter.
    pub fn letter(&self) -> Option<char> {
        let of_runs = || run_options::ALL.iter().find(|option| option.name == self.word);
        self.fio.or_else(|| of_runs().map(|option| option.short))
    }

    /// Takes a value, if it is one that the option accepts. `given`: the option with its value, as the user gave it.
    fn with(&self, given: &str, value: String) -> Result<(&'static str, String), String> {
        if self.checks_values || self.choices.is_empty() || self.choices.contains(&value.as_str()) {
            return Ok((self.word, value));
        }
        let meant = did_you_mean(closest(&value, self.choices.iter().copied()));
        Err(format!("{given}: not one of {}{meant}", self.choices.join(", ")))
    }

    /// Its spellings: `-j` if it has a letter, and `--json`.
    pub fn spellings(&self) -> impl Iterator<Item = String> {
        let letter = self.letter().map(|letter| format!("-{letter}"));
        letter.into_iter().chain(std::iter::once(format!("--{}", self.word)))
    }
}

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
                "number",
                "reader: read the dataset over and over for this time; kv: how long (default 30)",
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
                "kv: how old blocks go (default: unlink; objects: trim; NFS: overwrite)",
            )
            .one_of(&["unlink", "trim", "overwrite"]),
            word("direct", "", "Go around the page cache"),
            word(
                "client",
                "host",
                "Run on this machine, where an agent is (iolite --server); may be repeated",
            ),
            word(
                "mpi",
                "means",
                "Run on all ranks of mpirun or srun: auto, or pmix, pmi2, dir:PATH as --mpi of runs",
            ),
            word("output", "file", "Also write the result to this file: NAME.json or NAME.html"),
            word("output-format", "text|json", "How to answer (default: text)").one_of(&["text", "json"]),
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
                  CHANGE%, with the figures iops, p50, p99, bw, mean, p90, p95, p99.9 and cpu. The exit status is 1 if \
                  the whole interval of a change is beyond a limit, else 3 if an interval straddles a limit or is \
                  unknown, else 0. Runs that differ in rw, bs, iodepth, ioengine, device and the like are not \
                  comparable, unless --allow names the difference. Two results of iolite pts are compared cell by cell, \
                  without verdicts. docs/comparing.md describes the method.",
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
            word("show-job", "", "Run nothing: print the cases as a job file"),
        ],
    },
    Command {
        name: "meta",
        operand: "directory",
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
                  submission. docs/standard-tests.md describes the phases.",
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
            word("show-job", "", "Measure nothing: print the phases as job files"),
            word("clean", "", "Measure nothing: remove what killed tests have left in the directory"),
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

/// The options and operands that a subcommand was given.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The words of options and their values (empty for options that take none), in order.
    pub options: Vec<(&'static str, String)>,
    /// Job options and their values, of a subcommand that takes them.
    pub job_options: Vec<(String, String)>,
    /// The words after the options.
    pub operands: Vec<OsString>,
}

impl Asked {
    /// The last value given for an option.
    pub fn value(&self, word: &str) -> Option<&str> {
        self.values(word).last()
    }

    /// All values given for an option.
    pub fn values(&self, word: &str) -> impl Iterator<Item = &str> {
        self.options.iter().filter(move |(given, _)| *given == word).map(|(_, value)| value.as_str())
    }

    /// Whether an option was given.
    pub fn has(&self, word: &str) -> bool {
        self.value(word).is_some()
    }

    /// A number that is at least `least`; the suffixes of sizes are allowed.
    ///
    /// # Errors
    /// The value is not a number, or is smaller.
    pub fn number(&self, word: &str, least: u64) -> Result<Option<u64>, String> {
        let Some(text) = self.value(word) else { return Ok(None) };
        let mut notes = crate::values::Notes::default();
        let value = crate::values::integer(text, 1024, &mut notes)
            .map_err(|why| format!("--{word}={text}: {why}"))?;
        match u64::try_from(value) {
            _ if !notes.is_empty() => Err(format!("--{word}={text}: {}", notes.remove(0))),
            Ok(value) if value >= least => Ok(Some(value)),
            _ => Err(format!("--{word}={text}: must be at least {least}")),
        }
    }

    /// A number with a fraction, between the limits.
    ///
    /// # Errors
    /// The value is not a number, or is out of the limits.
    pub fn fraction(&self, word: &str, least: f64, most: f64) -> Result<Option<f64>, String> {
        let Some(text) = self.value(word) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
            Ok(_) => Err(format!("--{word}={text}: must be between {least} and {most}")),
            Err(_) => Err(format!("--{word}={text}: not a number")),
        }
    }
}

/// A number that may have a suffix, in the units of people: `20k` and `500MB` count in thousands, `4KiB` and `1GiB` in
/// powers of 1024.
///
/// # Errors
/// It is not a number, or it is negative.
pub fn amount(text: &str) -> Result<u64, String> {
    let mut notes = crate::values::Notes::default();
    let value = crate::values::integer(text, 1000, &mut notes)?;
    match u64::try_from(value) {
        _ if !notes.is_empty() => Err(notes.remove(0)),
        Ok(value) => Ok(value),
        Err(_) => Err("must not be negative".to_owned()),
    }
}

/// A time in microseconds; a number without a unit is in microseconds.
///
/// # Errors
/// It is not a time.
pub fn microseconds(text: &str) -> Result<u64, String> {
    let mut notes = crate::values::Notes::default();
    let value = crate::values::time(text, 1, &mut notes)?;
    if notes.is_empty() { Ok(value) } else { Err(notes.remove(0)) }
}

/// The subcommand that these words (those after the program's name) call, if any.
pub fn called_by(words: &[OsString]) -> Option<&'static Command> {
    let first = words.first()?;
    ALL.iter().find(|command| command.called_by(first))
}

/// The subcommand that `--version -v` stands for, as with other programs: more than the version. (Under the name `fio`,
/// that is the version.)
pub fn called_by_version(words: &[OsString]) -> Option<&'static Command> {
    let is_version = |word: &OsString| ["--version", "-version", "-v"].iter().any(|known| word == *known);
    let is_meant = words.len() == 2 && words.iter().all(is_version) && words.contains(&"-v".into());
    ALL.iter().find(|command| is_meant && command.name == "version")
}

/// The name and the value of `NAME=VALUE`.
fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))
}

/// A command line that runs this kind of workload.
pub fn with_workload(rw: &str) -> String {
    format!("iolite --name=a --rw={rw} --bs=4k --size=1g --filename=FILE")
}

/// A hint at the meaning of a word that is neither a subcommand nor a job file: `; did you mean "iolite sweep"?`, or an
/// option. Empty if there is none.
pub fn hint_at(word: &str) -> String {
    /// The word of the documentation for a machine with `--server`.
    const AGENT: &str = "agent";
    let option = match word {
        AGENT => Some("server"),
        _ => run_options::ALL.iter().map(|option| option.name).find(|name| *name == word),
    };
    let meant = option.map(|option| format!("iolite --{option}"));
    let command = || closest(word, ALL.iter().map(|command| command.name));
    let meant = meant.or_else(|| command().map(|command| format!("iolite {command}")));
    let workload = || {
        let keywords = registry::find_job("rw")?.keywords.iter().map(|(keyword, _)| *keyword);
        closest(word, keywords).filter(|keyword| *keyword != word && word.len() > 3)
    };
    did_you_mean(meant.or_else(|| workload().map(with_workload)))
}

/// The width of a help page.
const WIDTH: usize = 100;

/// How much of a file is read to find its first section.
const LOOKED_AT: u64 = 64 << 10;

/// Whether a file of this name could be a job file. A job file starts with a section or an `include`, after comments
/// only. A directory is not a job file. A file that cannot be read, or can be read only once, may be one: the parser of
/// job files will decide.
fn may_be_job_file(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else { return false };
    if !metadata.is_file() {
        return !metadata.is_dir();
    }
    let mut start = Vec::new();
    if std::fs::File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut start)).is_err() {
        return true;
    }
    let is_comment = |line: &[u8]| line.is_empty() || line.starts_with(b"#") || line.starts_with(b";");
    match start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !is_comment(line)) {
        Some(line) => line.starts_with(b"include") || (line.starts_with(b"[") && line.contains(&b']')),
        // Only comments so far: at least it is text.
        None => !start.is_empty(),
    }
}

impl Command {
    /// Whether this first word calls it: not if it is the name of a job file.
    pub fn called_by(&self, word: &OsStr) -> bool {
        word == self.name && !may_be_job_file(Path::new(word))
    }

    /// Parses the words after its name. If one of them asks for help, prints that even if there are mistakes.
    ///
    /// # Errors
    /// An option is unknown, lacks its value, or has a value that it does not take; or the first operand is none of the
    /// choices.
    pub fn read(&self, words: &[OsString]) -> Result<Asked, String> {
        let mut asked = Asked::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                asked.operands.extend(words.cloned());
                break;
            }
            let text = word.to_string_lossy();
            if let Some(long) = text.strip_prefix("--") {
                match self.job_option(long, &mut words)? {
                    Some(option) => asked.job_options.push(option),
                    None => asked.options.push(self.long(long, &mut words)?),
                }
                continue;
            }
            let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                asked.operands.push(word.clone());
                continue;
            };
            let mut letters = letters.chars();
            while let Some(letter) = letters.next() {
                let known = self.all_options().find(|option| option.letter() == Some(letter));
                let Some(option) = known else {
                    return Err(format!("unknown option -{letter}; iolite {} --help lists them", self.name));
                };
                let mut value = String::new();
                if !option.value.is_empty() {
                    value = letters.by_ref().collect();
                    if value.is_empty() {
                        value = self.next_value(&format!("-{letter}"), option.value, &mut words)?;
                    }
                }
                asked.options.push(option.with(&format!("-{letter} {value}"), value)?);
            }
        }
        if asked.has(HELP) {
            return Ok(asked);
        }
        match asked.operands.first() {
            Some(first) if first == HELP && !Path::new(first).exists() => {
                return Err(format!("iolite {} --help explains it", self.name));
            }
            Some(first) if !self.choices.is_empty() => self.check_choice(first, &asked)?,
            _ => {}
        }
        Ok(asked)
    }

    /// Refuses a first operand that is none of the choices.
    fn check_choice(&self, first: &OsStr, asked: &Asked) -> Result<(), String> {
        let first = first.to_string_lossy();
        if self.choices.contains(&&*first) {
            return Ok(());
        }
        let meant = match ALL.iter().find(|command| command.name == first) {
            // Runs of the store have other names there.
            Some(other) => {
                let operands = asked.operands[1..].iter().map(|word| {
                    let word = word.to_string_lossy();
                    if self.name == "runs" && word.starts_with(|c: char| c.is_ascii_digit()) {
                        format!(" run:{word}")
                    } else {
                        format!(" {word}")
                    }
                });
                did_you_mean(Some(format!("iolite {}{}", other.name, operands.collect::<String>())))
            }
            None => did_you_mean(closest(&first, self.choices.iter().copied())),
        };
        Err(format!("{first} is not one of {}{meant}", self.choices.join(", ")))
    }

    /// `--NAME=VALUES` of a job option, if this subcommand takes those, and has no option of that name. As on any
    /// command line, the value may be the next word, and some options need none.
    fn job_option<'a>(
        &self,
        text: &str,
        words: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<Option<(String, String)>, String> {
        let (name, value) = split(text);
        if !self.takes_job_options || name.is_empty() || self.option(name).is_some() {
            return Ok(None);
        }
        let found = registry::find_job(name)
            .or_else(|| registry::find_any_engine(name).first().map(|(_, definition)| *definition));
        let value = match (value, found) {
            (Some(value), _) => value.to_owned(),
            (None, Some(Definition { kind, .. })) if kind.value_is_optional() => "1".to_owned(),
            (None, Some(_)) => self.next_value(&format!("--{name}"), "its values", words)?,
            // An unknown option is an error, whatever its value.
            (None, None) => String::new(),
        };
        // A misspelt option of the subcommand itself is not taken for one of jobs.
        if found.is_none() && registry::suggest(name, "").is_none() {
            self.known(name)?;
        }
        Ok(Some((name.to_owned(), value)))
    }

    /// Its options, and the one for help.
    fn all_options(&self) -> impl Iterator<Item = &'static CommandOption> {
        static HELPING: CommandOption = word(HELP, "", "Print this page");
        self.options.iter().chain(std::iter::once(&HELPING))
    }

    /// The option of this name.
    fn option(&self, name: &str) -> Option<&'static CommandOption> {
        self.all_options().find(|option| option.word == name)
    }

    /// The option of this name, or the reason why there is none.
    fn known(&self, name: &str) -> Result<&'static CommandOption, String> {
        self.option(name).ok_or_else(|| {
            let names = self.all_options().map(|option| option.word);
            let meant = closest(name, names).filter(|_| !name.is_empty());
            let meant = did_you_mean(meant.map(|meant| format!("--{meant}")));
            format!("unknown option --{name}{meant}; iolite {} --help lists them", self.name)
        })
    }

    /// The option `--NAME`, `--NAME=VALUE` or `--NAME VALUE`.
    fn long<'a>(
        &self,
        text: &str,
        words: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(&'static str, String), String> {
        let (name, value) = split(text);
        let option = self.known(name)?;
        let value = match (value, option.value) {
            (Some(_), "") => return Err(format!("--{name} takes no value")),
            (None, "") => String::new(),
            (Some(value), _) => value.to_owned(),
            (None, what) => self.next_value(&format!("--{name}"), what, words)?,
        };
        option.with(&format!("--{name}={value}"), value)
    }

    /// The next word, as the value of an option. Another option is not a value: that one was forgotten.
    fn next_value<'a>(
        &self,
        option: &str,
        what: &str,
        words: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<String, String> {
        let is_option =
            |word: &str| word.strip_prefix("--").is_some_and(|long| self.option(split(long).0).is_some());
        match words.next().map(|word| word.to_string_lossy()) {
            Some(word) if !is_option(&word) => Ok(word.into_owned()),
            _ => Err(format!("{option} needs a value: {what}")),
        }
    }

    /// Its help page.
    pub fn usage(&self) -> String {
        let mut text = format!("{}.\n\nUsage: iolite {}", self.help, self.name);
        if !self.options.is_empty() {
            text.push_str(" [options]");
        }
        if self.takes_job_options {
            let _ = write!(text, " {JOB_OPTIONS}");
        }
        let _ = match self.operand {
            "" => Ok(()),
            optional if optional.starts_with('[') => write!(text, " {optional}"),
            needed => write!(text, " <{needed}>"),
        };
        text.push('\n');
        if !self.options.is_empty() {
            text.push_str("\nOptions:\n");
        }
        /// The widest left column. A longer text has a line of its own.
        const WIDEST: usize = 28;
        let left = |option: &CommandOption| {
            let spellings: Vec<String> = option.spellings().collect();
            format!("  {} {}", spellings.join(", "), option.value).trim_end().to_owned()
        };
        let widths = self.options.iter().map(|option| left(option).len() + 2);
        let column = widths.filter(|width| *width <= WIDEST).max().unwrap_or(WIDEST);
        for option in self.options {
            let mut left = left(option);
            if left.len() + 2 > column {
                let _ = writeln!(text, "{left}");
                left.clear();
            }
            for line in crate::wrap::wrapped(option.help, WIDTH - column).lines() {
                // Writing to a String does not fail.
                let _ = writeln!(text, "{left:<column$}{line}");
                left.clear();
            }
        }
        let _ = writeln!(text, "\n{}", crate::wrap::wrapped(self.details, WIDTH));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn command(name: &str) -> &'static Command {
        ALL.iter().find(|command| command.name == name).unwrap()
    }

    #[test]
    fn only_the_exact_first_word_calls() {
        assert_eq!(called_by(&words("dedupe f")).map(|command| command.name), Some("dedupe"));
        for line in ["", "job.fio dedupe", "--dedupe", "dedup f", "Dedupe f", "--name=dedupe"] {
            assert!(called_by(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn only_job_files_take_precedence() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        assert!(!may_be_job_file(&path), "there is nothing");
        for (content, expected) in [
            ("[global]\nbs=4k\n", true),
            ("; a comment\n\n  # another\n  [job]\n", true),
            ("include other.fio\n", true),
            ("# nothing else", true),
            ("fio version 3 iolog\n0 [x] add\n", false),
            ("\u{7}tae", false),
            ("[1, 2,\n 3]\n", false),
            ("", false),
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(may_be_job_file(&path), expected, "{content:?}");
        }
        assert!(!may_be_job_file(directory.path()));
        assert!(may_be_job_file(Path::new("/dev/null")), "it can be read only once, for all that is known");
    }

    #[test]
    fn words_are_letters_by_another_name() {
        let state = command("verify-state");
        let asked = state.read(&words("--json --policy=fsynced f --policy completed")).unwrap();
        assert_eq!((asked.value("json"), asked.value("policy")), (Some(""), Some("completed")));
        assert_eq!(asked.operands, words("f"));
        for (line, why) in [
            ("--jsn", "unknown option --jsn; did you mean \"--json\"?"),
            ("--policy --json", "--policy needs a value"),
            ("--policy=fsyncd", "--policy=fsyncd: not one of completed, fsynced; did you mean \"fsynced\"?"),
            ("--json=1", "takes no value"),
            ("--policy", "needs a value: completed|fsynced"),
            ("--=x", "unknown option --"),
        ] {
            let error = state.read(&words(line)).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn letters_and_values() {
        let asked = command("dedupe").read(&words("-b8k -C 1 file -d 0 -- -odd")).unwrap();
        assert_eq!(asked.number("block-size", 1), Ok(Some(8192)));
        assert_eq!(
            (asked.value("compress"), asked.value("duplicates"), asked.value("direct")),
            (Some("1"), Some("0"), None)
        );
        assert_eq!(asked.operands, ["file", "-odd"]);
        let asked = command("zipf").read(&words("-cp 50 -i1.1")).unwrap();
        assert_eq!(
            asked.options,
            [("csv", String::new()), ("hits", "50".into()), ("parameter", "1.1".into())]
        );
        assert_eq!(asked.fraction("parameter", 0.0, 10.0), Ok(Some(1.1)));
        for help in ["--help", "-h"] {
            assert!(command("zipf").read(&words(help)).unwrap().has(HELP));
        }
    }

    #[test]
    fn mistakes_name_the_option() {
        let dedupe = command("dedupe");
        assert!(dedupe.read(&words("-q")).unwrap_err().contains("-q"));
        assert!(dedupe.read(&words("-b")).unwrap_err().contains("-b needs a value"));
        let number = |line: &str| dedupe.read(&words(line)).unwrap().number("block-size", 512).unwrap_err();
        assert!(number("-b 4kk").contains("4kk"));
        assert!(number("-b 100x").contains("100x"));
        assert!(number("-b 5").contains("at least 512"));
        assert!(dedupe.read(&words("-d 2")).unwrap_err().contains("-d 2: not one of 0, 1"));
        assert!(command("zipf").read(&words("-i x")).unwrap().fraction("parameter", 0.0, 1.0).is_err());
    }

    #[test]
    fn amounts_are_in_the_units_of_people() {
        assert_eq!(
            [amount("20k"), amount("500MB"), amount("4KiB"), amount("7")],
            [Ok(20_000), Ok(500_000_000), Ok(4096), Ok(7)]
        );
        assert_eq!([microseconds("2ms"), microseconds("80us"), microseconds("3")], [Ok(2000), Ok(80), Ok(3)]);
        for bad in ["", "x", "5kk", "-3"] {
            assert!(amount(bad).is_err(), "{bad}");
        }
        assert!(microseconds("2 parsecs").is_err());
    }

    /// A letter has one meaning. Only the programs of fio have others.
    #[test]
    fn letters_mean_one_thing() {
        let all = ALL.iter().flat_map(|command| command.options.iter().map(move |option| (command, option)));
        for (command, option) in all {
            let is_of_fio = matches!(command.name, "dedupe" | "zipf");
            assert_eq!(option.fio.is_some(), is_of_fio, "{} --{}", command.name, option.word);
            let same = |other: &&CommandOption| {
                other.word == option.word
                    || other.letter().is_some_and(|letter| Some(letter) == option.letter())
            };
            assert_eq!(command.options.iter().filter(same).count(), 1, "{} --{}", command.name, option.word);
        }
    }

    #[test]
    fn misspelt_words_have_a_hint() {
        let error = |name: &str, line: &str| command(name).read(&words(line)).unwrap_err();
        for (name, line, why) in [
            (
                "runs",
                "compare 1 2",
                "compare is not one of list, show, label, remove, export, import, limits, check; did you mean \"iolite compare run:1 run:2\"?",
            ),
            ("runs", "report 12", "did you mean \"iolite report run:12\"?"),
            ("runs", "shwo 1", "did you mean \"show\"?"),
            ("keys", "revok agents", "did you mean \"revoke\"?"),
            ("completion", "bsh", "did you mean \"bash\"?"),
            ("sweep", "j --presett=oltp", "unknown option --presett; did you mean \"--preset\"?"),
        ] {
            let error = error(name, line);
            assert!(error.contains(why), "{name} {line}: {error}");
        }
        for (word, meant) in [
            ("swep", "; did you mean \"iolite sweep\"?"),
            ("log2cvs", "; did you mean \"iolite log2csv\"?"),
            ("agent", "; did you mean \"iolite --server\"?"),
            ("server", "; did you mean \"iolite --server\"?"),
            ("help", "; did you mean \"iolite --help\"?"),
            ("job.fio", ""),
            ("randread", ""),
        ] {
            assert_eq!(hint_at(word), meant, "{word}");
        }
    }

    #[test]
    fn job_options_of_a_sweep() {
        let asked =
            command("sweep").read(&words("--time_based --runtime 5 --bs=4k,8k --one-at-a-time j")).unwrap();
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(asked.job_options, [of("time_based", "1"), of("runtime", "5"), of("bs", "4k,8k")]);
        assert!(asked.has("one-at-a-time"));
        assert!(
            command("sweep").read(&words("j --iodepth")).unwrap_err().contains("--iodepth needs a value")
        );
    }

    #[test]
    fn optional_words_are_in_brackets() {
        let usage = |name: &str| command(name).usage().lines().nth(2).map(str::to_owned);
        for expected in [
            "sweep [options] [--OPTION=VALUES]... [job.fio]",
            "web [options] [directory]",
            "trace [options] <file>",
            "completion <bash|zsh|fish>",
        ] {
            let name = expected.split(' ').next().unwrap_or_default();
            assert_eq!(usage(name), Some(format!("Usage: iolite {expected}")));
        }
    }

    #[test]
    fn pages_name_every_option() {
        for command in ALL {
            let page = command.usage();
            assert!(page.contains(&format!("Usage: iolite {}", command.name)));
            assert_eq!(page.contains("--OPTION=VALUES"), command.takes_job_options, "{page}");
            for option in command.options {
                let spellings: Vec<String> = option.spellings().collect();
                let line = format!("\n  {} {}", spellings.join(", "), option.value);
                assert!(page.contains(line.trim_end()), "{page}");
            }
            assert!(page.lines().all(|line| line.chars().count() <= WIDTH), "{page}");
            // All descriptions begin in one column.
            let lines = page.split_once("\nOptions:\n").map_or("", |(_, rest)| rest).lines();
            let begin = |line: &str| line.rfind("  ").map(|at| at + 2).filter(|at| *at > 2);
            let begins: Vec<_> = lines.take_while(|line| !line.is_empty()).filter_map(begin).collect();
            assert!(begins.windows(2).all(|pair| pair[0] == pair[1]), "{page}");
        }
    }

    #[test]
    fn help_is_asked_for_with_dashes() {
        for command in ALL {
            let error = command.read(&words("help")).unwrap_err();
            assert_eq!(error, format!("iolite {} --help explains it", command.name));
        }
    }
}
