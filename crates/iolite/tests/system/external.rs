//! Engines in shared objects.

use crate::common::{Json, Program, scratch};
use iolite_testing::{engine_of, example_engine, or_skip};
use std::fs;
use std::path::Path;

const JOB: &str = "--name=job --filename=f --size=1m --bs=4k --output-format=json";

/// Runs a job with additional options.
#[track_caller]
fn run(dir: &Path, line: &str) -> Json {
    let run = Program::under_test().line(dir, &format!("{JOB} {line}")).ok();
    let json = Json::parse(&run.stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    json
}

#[test]
fn a_plain_engine_does_what_a_job_asks() {
    let dir = scratch();
    or_skip!(example_engine("plain", dir.path()));
    for thread in [0, 1] {
        for engine in ["external:./plain.so", "external:plain.so", "./plain.so"] {
            let line =
                format!("--ioengine={engine} --thread={thread} --rw=randwrite --verify=crc32c --fsync=16");
            let json = run(dir.path(), &line);
            assert_eq!(json.job().ios(), [256, 256, 0], "{engine}");
            assert_eq!(json.job().int("sync.total_ios"), 15, "{engine}");
            fs::remove_file(dir.path().join("f")).unwrap();
        }
    }
    let refused =
        Program::under_test().line(dir.path(), &format!("{JOB} --ioengine=./plain.so --rw=trim")).refused();
    refused.says("rw=trim: ioengine=external cannot trim");
}

#[test]
fn invalid_engine_libraries_are_reported_with_their_place() {
    let dir = scratch();
    let of_fio = "extern int fio; int *x = &fio; struct ioengine_ops { int version; } ioengine = { 36 };";
    or_skip!(engine_of(of_fio, "fio", dir.path()));
    fs::write(dir.path().join("job.fio"), "[job]\nsize=1m\nioengine=./fio.so\n").unwrap();
    let program = Program::under_test();
    let refused = program.line(dir.path(), "job.fio").refused();
    refused.says("job.fio:3:10: job: ioengine=external:./fio.so: it was made for fio");
    program
        .line(dir.path(), &format!("{JOB} --ioengine=./none.so"))
        .refused()
        .says("No such file or directory");
    // --parse-only does not need the file.
    program.line(dir.path(), &format!("{JOB} --ioengine=./none.so --parse-only")).ok();
}

#[test]
pub fn arguments_reach_the_engine() {
    let dir = scratch();
    let text = "#include \"iolite-engine.h\"\n#include <errno.h>\n#include <stdio.h>\n#include <string.h>\n\
        static int create(const struct iolite_worker *worker, void **state, char *why, size_t room)\n\
        { *state = 0; snprintf(why, room, \"told '%s'\", worker->arguments);\n\
          return strcmp(worker->arguments, \"a=1, b\") ? -EINVAL : 0; }\n\
        static int64_t queue(void *state, const struct iolite_unit *unit) { (void)state; return unit->length; }\n\
        const struct iolite_engine iolite_engine = { IOLITE_ENGINE_HEAD, .name = \"x\", .data = IOLITE_NOWHERE,\n\
            .create = create, .queue = queue };";
    or_skip!(engine_of(text, "told", dir.path()));
    let program = Program::under_test();
    let job = |arguments: &str| format!("[job]\nsize=1m\nioengine=./told.so\n{arguments}\n");
    fs::write(dir.path().join("wrong.fio"), job("arguments=x")).unwrap();
    fs::write(dir.path().join("none.fio"), job("")).unwrap();
    fs::write(dir.path().join("right.fio"), job("arguments=a=1, b")).unwrap();
    program.line(dir.path(), "wrong.fio").refused().says("ioengine=external:./told.so: told 'x'");
    program.line(dir.path(), "none.fio").refused().says("told ''");
    program.line(dir.path(), "right.fio").ok();
}

#[test]
fn an_engine_that_crashes_when_it_is_tried_harms_nobody() {
    let dir = scratch();
    let text = "#include \"iolite-engine.h\"\n#include <stdlib.h>\n\
        __attribute__((constructor)) static void begin(void) { abort(); }\n\
        const struct iolite_engine iolite_engine = { IOLITE_ENGINE_HEAD, .name = \"x\" };";
    or_skip!(engine_of(text, "crash", dir.path()));
    let refused = Program::under_test().line(dir.path(), &format!("{JOB} --ioengine=./crash.so")).refused();
    refused.says("the process that tried it ended with signal 6");
}
