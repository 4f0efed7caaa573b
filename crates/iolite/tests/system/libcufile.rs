//! `libcufile` and `libhipfile` with stand-ins for the libraries of NVIDIA and AMD: memory of the GPU is the machine's, files
//! are read and written with pread(2) and pwrite(2), and all calls are noted, by NVIDIA's names. (`scripts/gpu-check` is for
//! machines with a GPU.)

use crate::common::program::Running;
use crate::common::{Finished, Json, Program, report, scratch, words};
use iolite_testing::{or_skip, stand_in};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What both stand-ins begin with. `fails` is whether `FAIL` names this call, with the error: always (`cuInit:100`), or the first
/// times (`cuInit:100@2`). Several are named with commas.
const NOTING: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static void note(const char *call, long number) {
    FILE *to = fopen(getenv("NOTES"), "a");
    fprintf(to, "%d %s %ld\n", (int)getpid(), call, number);
    fclose(to);
}
static int fails(const char *call) {
    static int calls;
    const char *fail = getenv("FAIL");
    size_t length = strlen(call);
    for (; fail; fail = strchr(fail, ',') ? strchr(fail, ',') + 1 : 0) {
        if (strncmp(fail, call, length) || fail[length] != ':') continue;
        char *end;
        int error = strtol(fail + length + 1, &end, 10);
        if (*end != '@' || calls++ < atoi(end + 1)) return error;
    }
    return 0;
}
#define BEGIN(call, number) do { note(call, (long)(number)); int e = fails(call); if (e) return e; } while (0)
"#;

const CUDA: &str = r#"
int cuInit(unsigned flags) { BEGIN("cuInit", flags); return 0; }
int cuGetErrorString(int error, const char **words) { (void)error; *words = "words of the driver"; return 0; }
int cuDeviceGetCount(int *count) { BEGIN("cuDeviceGetCount", 0); *count = getenv("GPUS") ? atoi(getenv("GPUS")) : 2; return 0; }
int cuDeviceGet(int *device, int number) { BEGIN("cuDeviceGet", number); *device = number; return 0; }
int cuDeviceGetName(char *name, int room, int device) { snprintf(name, room, "Stand-in %d", device); return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { BEGIN("cuDevicePrimaryCtxRetain", device); *context = &errno; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { BEGIN("cuDevicePrimaryCtxRelease", device); return 0; }
int cuCtxSetCurrent(void *context) { BEGIN("cuCtxSetCurrent", context != 0); return 0; }
int cuMemAlloc_v2(uint64_t *memory, size_t size) {
    BEGIN("cuMemAlloc", size);
    *memory = (uint64_t)(uintptr_t)aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    return 0;
}
int cuMemFree_v2(uint64_t memory) { BEGIN("cuMemFree", 0); free((void *)(uintptr_t)memory); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
    BEGIN("cuMemcpyHtoD", size);
    memcpy((void *)(uintptr_t)to, from, size);
    return 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    BEGIN("cuMemcpyDtoH", size);
    memcpy(to, (void *)(uintptr_t)from, size);
    return 0;
}
"#;

const CUFILE: &str = r#"
typedef struct { int error, cuda; } Status;
typedef struct { int type; union { int fd; void *handle; } handle; const void *operations; } Description;
typedef struct {
    int mode;
    struct { void *memory; off_t offset; off_t memory_offset; size_t size; } u;
    void *file;
    int opcode;
    void *cookie;
} Request;
typedef struct { void *cookie; int status; size_t ret; } Event;
typedef struct { unsigned room, first, count, told; Event events[128]; } Batch;
#define STATUS(call, number) do { note(call, (long)(number)); Status s = {fails(call), 0}; if (s.error) return s; } while (0)
static const Status ok;
/* A process opens the driver once, and uses it only then. */
static volatile int is_open;
static ssize_t move_data(int writes, int fd, char *memory, size_t size, off_t offset) {
    const char *call = writes ? "cuFileWrite" : "cuFileRead";
    int error = is_open ? fails(call) : 5001;
    if (error >= 5000) return -error;
    if (error) { errno = error; return -1; }
    return writes ? pwrite(fd, memory, size, offset) : pread(fd, memory, size, offset);
}
Status cuFileDriverOpen(void) {
    STATUS("cuFileDriverOpen", 0);
    if (is_open++) return (Status){5999, 0};
    return ok;
}
Status cuFileDriverClose_v2(void) { STATUS("cuFileDriverClose", 0); is_open--; return ok; }
Status cuFileDriverClose(void) { STATUS("cuFileDriverCloseOfOld", 0); is_open--; return ok; }
Status cuFileHandleRegister(void **file, Description *of) {
    STATUS("cuFileHandleRegister", of->type);
    *file = (void *)(intptr_t)(of->handle.fd + 1);
    return ok;
}
void cuFileHandleDeregister(void *file) { note("cuFileHandleDeregister", file != 0); }
Status cuFileBufRegister(const void *memory, size_t size, int flags) { (void)memory; (void)flags; STATUS("cuFileBufRegister", size); return ok; }
Status cuFileBufDeregister(const void *memory) { STATUS("cuFileBufDeregister", memory != 0); return ok; }
ssize_t cuFileRead(void *file, void *memory, size_t size, off_t offset, off_t place) {
    note("cuFileRead", size);
    return move_data(0, (int)(intptr_t)file - 1, (char *)memory + place, size, offset);
}
ssize_t cuFileWrite(void *file, const void *memory, size_t size, off_t offset, off_t place) {
    note("cuFileWrite", size);
    return move_data(1, (int)(intptr_t)file - 1, (char *)(uintptr_t)memory + place, size, offset);
}
Status cuFileBatchIOSetUp(void **batch, unsigned room) {
    STATUS("cuFileBatchIOSetUp", room);
    Batch *made = calloc(1, sizeof *made);
    made->room = room;
    *batch = made;
    return ok;
}
Status cuFileBatchIOSubmit(void *handle, unsigned count, Request *requests, unsigned flags) {
    Batch *batch = handle;
    (void)flags;
    STATUS("cuFileBatchIOSubmit", count);
    /* A batch is used again when all of its requests have ended. */
    if (batch->first < batch->count || count > batch->room) return (Status){5037, 0};
    batch->first = batch->told = 0;
    batch->count = count;
    for (unsigned i = 0; i < count; i++) {
        Request *of = &requests[i];
        ssize_t moved = of->mode != 1 ? -22
            : move_data(of->opcode, (int)(intptr_t)of->file - 1, (char *)of->u.memory + of->u.memory_offset, of->u.size, of->u.offset);
        batch->events[i] = (Event){of->cookie, moved < 0 ? 0x40 : 0x10, moved == -1 ? -errno : moved};
    }
    return ok;
}
Status cuFileBatchIOGetStatus(void *handle, unsigned least, unsigned *count, Event *events, struct timespec *time) {
    Batch *batch = handle;
    unsigned found = 0;
    int error = fails("cuFileBatchIOGetStatus");
    if (error) return (Status){error, 0};
    if (getenv("HANGS")) {
        if (least > 0) nanosleep(time, 0);
        *count = 0;
        return ok;
    }
    /* A request is told of twice, waiting and at its end. */
    if (getenv("REPEATS") && batch->first < batch->count && !batch->told++) {
        events[0] = batch->events[batch->first];
        events[0].status = 1;
        if (*count > 1) events[1] = (Event){events[0].cookie, 2, 0};
        *count = *count > 1 ? 2 : 1;
        return ok;
    }
    if (getenv("REPEATS") && *count > 1 && batch->first < batch->count) {
        events[0] = events[1] = batch->events[batch->first++];
        *count = 2;
        return ok;
    }
    while (found < *count && batch->first < batch->count) events[found++] = batch->events[batch->first++];
    *count = found;
    return ok;
}
void cuFileBatchIODestroy(void *batch) { note("cuFileBatchIODestroy", batch != 0); free(batch); }
"#;

/// What AMD calls functions of a GPU. (Those for files begin with `hipFile` instead of `cuFile`.)
const OF_HIP: [(&str, &str); 9] = [
    ("cuInit", "hipInit"),
    ("cuGetErrorString", "hipDrvGetErrorString"),
    ("cuDeviceGetCount", "hipGetDeviceCount"),
    ("cuDeviceGet", "hipDeviceGet"),
    ("cuDeviceGetName", "hipDeviceGetName"),
    ("cuMemAlloc_v2", "hipMalloc"),
    ("cuMemFree_v2", "hipFree"),
    ("cuMemcpyHtoD_v2", "hipMemcpyHtoD"),
    ("cuMemcpyDtoH_v2", "hipMemcpyDtoH"),
];

/// The stand-ins for AMD's libraries: those for NVIDIA's by other names, without contexts and batches.
fn libraries_of_amd(dir: &Path) -> Result<(), String> {
    let (gpu, _) = CUDA.split_once("int cuDevicePrimaryCtxRetain").unwrap();
    let memory = &CUDA[CUDA.find("int cuMemAlloc_v2").unwrap()..];
    let choice = r#"int hipSetDevice(int device) { BEGIN("hipSetDevice", device); return 0; }"#;
    let mut gpu = format!("{NOTING}{gpu}{choice}\n{memory}");
    for (cuda, hip) in OF_HIP {
        gpu = gpu.replace(&format!("int {cuda}("), &format!("int {hip}("));
    }
    let (files, _) = CUFILE.split_once("Status cuFileBatchIOSetUp").unwrap();
    let files = files.replace(" cuFile", " hipFile").replace("CloseOfOld", "Close");
    stand_in(&gpu, "libamdhip64.so.7", dir)?;
    stand_in(&format!("{NOTING}{files}"), "libhipfile.so.0", dir).map(drop)
}

/// The stand-ins, in a directory.
fn libraries(dir: &Path) -> Result<(), String> {
    stand_in(&format!("{NOTING}{CUDA}"), "libcuda.so.1", dir)?;
    stand_in(&format!("{NOTING}{CUFILE}"), "libcufile.so.0", dir).map(drop)
}

fn begin(dir: &Path, environment: &[(&str, &str)], line: &str) -> Running {
    let _ = fs::remove_file(dir.join("notes"));
    let mut command = Command::new(Program::own().path);
    let engine = if line.contains("--ioengine=") { "" } else { "--ioengine=libcufile" };
    command.args(words(&format!("--name=job {engine} --filename=file --bs=4k --size=1m {line}")));
    command.current_dir(dir).env("LD_LIBRARY_PATH", dir).env("NOTES", dir.join("notes"));
    Running::start(command.envs(environment.iter().copied()))
}

fn run(dir: &Path, environment: &[(&str, &str)], line: &str) -> Finished {
    begin(dir, environment, line).wait()
}

#[track_caller]
fn json(dir: &Path, line: &str) -> Json {
    let json = Json::parse(&run(dir, &[], &format!("{line} --output-format=json")).ok().stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    json
}

/// The calls of each process that has allocated memory of a GPU, in order: their names and numbers.
fn calls(dir: &Path) -> Vec<Vec<(String, i64)>> {
    let text = fs::read_to_string(dir.join("notes")).unwrap();
    let mut processes: Vec<(&str, Vec<(String, i64)>)> = Vec::new();
    for line in text.lines() {
        let [process, call, number] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        if !processes.iter().any(|(known, _)| *known == process) {
            processes.push((process, Vec::new()));
        }
        let (_, calls) = processes.iter_mut().find(|(known, _)| *known == process).unwrap();
        calls.push((call.to_owned(), number.parse().unwrap()));
    }
    let works = |calls: &Vec<(String, i64)>| calls.iter().any(|(call, _)| call == "cuMemAlloc");
    processes.into_iter().map(|(_, calls)| calls).filter(works).collect()
}

/// The number of calls with this name of the only worker.
fn count(dir: &Path, name: &str) -> usize {
    calls(dir)[0].iter().filter(|(call, _)| call == name).count()
}

#[test]
fn calls_come_in_the_order_that_the_libraries_want() {
    let dir = scratch();
    or_skip!(libraries(dir.path()));
    json(dir.path(), "--direct=1 --rw=write --size=64k --bs=4k --verify=crc32c --end_fsync=1");
    let [calls] = &calls(dir.path())[..] else { panic!("one worker") };
    let mut order: Vec<&str> = Vec::new();
    for (call, _) in calls {
        if order.last() != Some(&call.as_str()) {
            order.push(call);
        }
    }
    let until_io = [
        "cuInit",
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",
        "cuFileDriverOpen",
        "cuFileHandleRegister",
        "cuMemAlloc",
        "cuMemcpyHtoD",
        "cuFileBufRegister",
    ];
    assert_eq!(order[..until_io.len()], until_io);
    let io = &order[until_io.len()..];
    assert_eq!(io[..4], ["cuMemcpyHtoD", "cuFileWrite", "cuMemcpyHtoD", "cuFileWrite"], "{order:?}");
    assert!(io.windows(2).any(|pair| pair == ["cuFileRead", "cuMemcpyDtoH"]), "{order:?}");
    let at = |name: &str| {
        order.iter().rposition(|call| *call == name).unwrap_or_else(|| panic!("{name}: {order:?}"))
    };
    let end = [
        "cuFileHandleDeregister",
        "cuFileBufDeregister",
        "cuFileDriverClose",
        "cuMemFree",
        "cuDevicePrimaryCtxRelease",
    ];
    assert!(end.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{order:?}");
    assert_eq!(calls.iter().filter(|(call, _)| call == "cuFileWrite").count(), 16);
}

#[test]
pub fn data_goes_directly_or_through_memory() {
    let dir = scratch();
    or_skip!(libraries(dir.path()));
    let beside = |line: &str| {
        report(dir.path(), &format!("--name=job --bs=4k --filename=file --size=1m --ioengine=psync {line}"));
    };
    for mode in ["--cuda_io=cufile --direct=1", "--cuda_io=posix --direct=0", "--cuda_io=posix --direct=1"] {
        for depth in [1, 32] {
            let job = format!("{mode} --iodepth={depth}");
            json(dir.path(), &format!("{job} --rw=randwrite --verify=crc32c --fsync=32"));
            beside("--rw=randread --verify=crc32c --verify_only");
            beside("--rw=randwrite --verify=md5 --do_verify=0");
            json(dir.path(), &format!("{job} --rw=randread --verify=md5 --verify_only"));
            let wrong = run(dir.path(), &[], &format!("{job} --rw=read --verify=sha256 --verify_only"));
            assert_eq!(wrong.code(), 1, "the data is another");
        }
    }
    // Directly, data that nobody verifies is not copied; through memory it always is.
    json(dir.path(), "--direct=1 --rw=write");
    assert_eq!((count(dir.path(), "cuMemcpyHtoD"), count(dir.path(), "cuMemcpyDtoH")), (1, 0));
    assert!(
        fs::read(dir.path().join("file")).unwrap().iter().any(|&byte| byte != 0),
        "the GPU has the buffer's data"
    );
    json(dir.path(), "--cuda_io=posix --rw=write");
    assert_eq!((count(dir.path(), "cuMemcpyDtoH"), count(dir.path(), "cuFileWrite")), (256, 0));
    json(dir.path(), "--cuda_io=posix --rw=read");
    assert_eq!(count(dir.path(), "cuMemcpyHtoD"), 1 + 256);
    // With a depth, requests go in batches.
    json(dir.path(), "--direct=1 --rw=randrw --iodepth=16 --iodepth_batch=4 --iodepth_batch_complete_min=1");
    assert_eq!((count(dir.path(), "cuFileWrite"), count(dir.path(), "cuFileRead")), (0, 0));
    assert!(count(dir.path(), "cuFileBatchIOSubmit") >= 64);
    assert_eq!(count(dir.path(), "cuFileBatchIOSetUp"), count(dir.path(), "cuFileBatchIODestroy"));
    json(dir.path(), "--direct=1 --rw=randread --iodepth=200 --bs=512");
}

#[test]
pub fn workers_take_gpus_in_turn() {
    let dir = scratch();
    or_skip!(libraries(dir.path()).and_then(|()| libraries_of_amd(dir.path())));
    for (engine, chosen) in [("libcufile", "cuDeviceGet"), ("libhipfile", "hipSetDevice")] {
        let line = "--direct=1 --rw=read --numjobs=3 --gpu_dev_ids=1:0 --output-format=normal";
        let told = run(dir.path(), &[], &format!("--ioengine={engine} {line}")).ok();
        assert!(told.output().contains(&format!("{engine}: GPU 1 (Stand-in 1)")), "{}", told.output());
        let gpu = |calls: &Vec<(String, i64)>| calls.iter().find(|(call, _)| call == chosen).unwrap().1;
        let mut gpus: Vec<i64> = calls(dir.path()).iter().map(gpu).collect();
        gpus.sort_unstable();
        assert_eq!(gpus, [0, 1, 1]);
    }
    run(dir.path(), &[], "--direct=1 --rw=read --gpu_dev_ids=0,1")
        .refused()
        .says("is not the number of a GPU");
}

#[test]
pub fn gpus_of_amd_are_used_by_their_names() {
    let dir = scratch();
    or_skip!(libraries_of_amd(dir.path()));
    let amd = |more: &str| format!("--ioengine=libhipfile --direct=1 {more}");
    json(dir.path(), &amd("--rw=write --size=64k --verify=crc32c --end_fsync=1"));
    let [calls] = &calls(dir.path())[..] else { panic!("one worker") };
    let mut order: Vec<&str> = calls.iter().map(|(call, _)| call.as_str()).collect();
    order.dedup();
    let begun = "cuInit cuDeviceGetCount cuDeviceGet hipSetDevice cuFileDriverOpen cuFileHandleRegister cuMemAlloc \
                 cuMemcpyHtoD cuFileBufRegister cuMemcpyHtoD cuFileWrite";
    assert_eq!(order[..11].join(" "), begun);
    let end = ["cuFileHandleDeregister", "cuFileBufDeregister", "cuFileDriverClose", "cuMemFree"];
    let at = |name: &str| order.iter().rposition(|call| *call == name);
    assert!(end.windows(2).all(|pair| at(pair[0]) < at(pair[1]) && at(pair[0]).is_some()), "{order:?}");
    assert_eq!(calls.iter().filter(|(call, _)| call == "cuFileWrite").count(), 16);
    for mode in ["", "--hip_io=posix --iodepth=4", "--io_submit_mode=offload --iodepth=8"] {
        json(dir.path(), &amd(&format!("{mode} --rw=randwrite --verify=crc32c --fsync=32")));
        report(
            dir.path(),
            "--name=job --bs=4k --filename=file --size=1m --ioengine=psync --rw=randread --verify=crc32c --verify_only",
        );
    }
    json(dir.path(), &amd("--hip_io=posix --rw=read"));
    assert_eq!((count(dir.path(), "cuMemcpyHtoD"), count(dir.path(), "cuFileRead")), (1 + 256, 0));
    for (fail, line, said) in [
        (
            "cuInit:100",
            "",
            "no GPU of AMD can be used: hipInit: words of the driver (error 100 of HIP); amd-smi list lists them",
        ),
        (
            "cuFileDriverOpen:5010",
            "",
            "hipFileDriverOpen: an error of the driver amdgpu (error 5010 of libhipfile)",
        ),
        ("cuFileHandleRegister:5008", "", "HIPFILE_ALLOW_COMPAT_MODE=true permits copies through memory"),
        ("", "--direct=0", "add direct=1, or use hip_io=posix"),
        ("", "--iodepth=4", "iodepth: hipFile implements no batches of requests yet"),
    ] {
        let failed = run(dir.path(), &[("FAIL", fail)], &amd(&format!("--rw=read {line}")));
        assert_eq!(failed.code(), 1, "{fail}: {}", failed.output());
        failed.says(said);
    }
    fs::write(dir.path().join("libhipfile.so.0"), "no library").unwrap();
    let missing = run(dir.path(), &[], &amd("--rw=read")).refused();
    missing
        .says("libhipfile.so.0 cannot be used")
        .says("package amdrocm-core-sdk of its vendor's repository");
}

#[test]
fn failures_are_explained() {
    let dir = scratch();
    or_skip!(libraries(dir.path()));
    fs::write(dir.path().join("file"), vec![1; 1 << 20]).unwrap();
    for (environment, line, said) in [
        (
            ("FAIL", "cuInit:100"),
            "--direct=1",
            "no GPU of NVIDIA can be used: cuInit: words of the driver (error 100 of CUDA)",
        ),
        (("GPUS", "0"), "--direct=1", "gpu_dev_ids=0: there is no such GPU: there is none"),
        (
            ("GPUS", "2"),
            "--direct=1 --gpu_dev_ids=5",
            "gpu_dev_ids=5: there is no such GPU: the last one is 1",
        ),
        (("FAIL", "cuFileDriverOpen:5001"), "--direct=1", "the driver nvidia-fs is not loaded: load it"),
        (
            ("FAIL", "cuFileHandleRegister:5008"),
            "--direct=1",
            "GPUDirect Storage is not supported on this file",
        ),
        (("FAIL", "cuMemAlloc:2"), "--direct=1", "no memory of the GPU for"),
        (("FAIL", "cuFileRead:5"), "--direct=1", "Input/output error"),
        (
            ("FAIL", "cuFileRead:5016"),
            "--direct=1",
            "more memory than can be mapped (error 5016 of libcufile)",
        ),
        (("FAIL", "cuFileRead:28"), "--direct=1 --iodepth=4", "No space left on device"),
        (("FAIL", "cuFileBatchIOSubmit:5035"), "--direct=1 --iodepth=4", "the batch was not submitted"),
        (
            ("FAIL", "cuMemcpyDtoH:1"),
            "--direct=1 --verify=crc32c --verify_only",
            "cuMemcpyDtoH: words of the driver",
        ),
        (
            ("X", ""),
            "--direct=0",
            "direct: the library moves data directly between file and GPU; add direct=1",
        ),
    ] {
        let failed = run(dir.path(), &[environment], &format!("--rw=read {line}"));
        assert_eq!(failed.code(), 1, "{environment:?}: {}", failed.output());
        failed.says(said);
    }
    // The library can do without.
    let told =
        run(dir.path(), &[("FAIL", "cuFileBufRegister:5036")], "--direct=1 --rw=read --output-format=normal");
    told.ok().says("the buffers on the GPU could not be registered, and the library copies");
}

/// What the library may still use stays.
#[track_caller]
fn nothing_is_freed(dir: &Path) {
    for call in ["cuFileHandleDeregister", "cuFileBufDeregister", "cuFileDriverClose", "cuMemFree"] {
        assert_eq!(count(dir, call), 0, "{call}");
    }
}

#[test]
pub fn a_library_that_never_answers_is_given_up() {
    let dir = scratch();
    or_skip!(libraries(dir.path()));
    let job = "--direct=1 --rw=read --iodepth=4 --time_based --runtime=1h";
    let ended = run(dir.path(), &[("HANGS", "1")], &format!("{job} --libcufile_timeout=300ms"));
    assert_eq!(ended.code(), 1);
    ended.says("no answer within 0.3 s (libcufile_timeout)");
    nothing_is_freed(dir.path());
    // It gets no more requests.
    let once = "--direct=1 --rw=read --iodepth=4 --ignore_error=ETIMEDOUT:EIO --output-format=normal";
    let ended = run(dir.path(), &[("HANGS", "1")], &format!("{once} --libcufile_timeout=300ms"));
    ended.says("total=256, first_error=110/<Connection timed out>");
    assert_eq!(count(dir.path(), "cuFileBatchIOSubmit"), 4, "the first ones");
    nothing_is_freed(dir.path());
    // Without a limit, it keeps nobody from ending a job.
    let endless = format!("{job} --libcufile_timeout=0 --status-interval=100ms");
    let mut running = begin(dir.path(), &[("HANGS", "1")], &endless);
    running.wait_until("requests are under way", |_| {
        fs::read_to_string(dir.path().join("notes")).is_ok_and(|text| text.contains("cuFileBatchIOSubmit"))
    });
    running.signal(libc::SIGINT);
    running.wait().says("no answer in 10 s after the job was asked to end");
    nothing_is_freed(dir.path());
    // Nor is anything freed while it is not known what has ended.
    let failed =
        run(dir.path(), &[("FAIL", "cuFileBatchIOGetStatus:5022")], "--direct=1 --rw=read --iodepth=4");
    assert_eq!(failed.code(), 1);
    failed.says("cuFileBatchIOGetStatus: a wrong argument (error 5022 of libcufile)");
    nothing_is_freed(dir.path());
}

#[test]
fn each_failure_has_its_own_words() {
    let dir = scratch();
    or_skip!(libraries(dir.path()));
    fs::write(dir.path().join("file"), vec![1; 1 << 20]).unwrap();
    let job = "--direct=1 --rw=read --iodepth=4 --iodepth_batch=2";
    let told = |fail: &str, line: &str| run(dir.path(), &[("FAIL", fail)], &format!("{job} {line}"));
    told("cuFileRead:5022", "").says("a wrong argument (error 5022 of libcufile)");
    // A batch that was refused earlier does not explain a later error of the system.
    let refused = "cuFileBatchIOSubmit:5035@1,cuFileRead:28";
    let told = told(refused, "--continue_on_error=all --error_dump=1 --output-format=normal").output();
    let mut lines = told.lines().filter(|line| line.contains("No space left on device")).peekable();
    assert!(lines.peek().is_some() && told.contains("the batch was not submitted"), "{told}");
    lines.for_each(|line| assert!(!line.contains("not submitted"), "{line}"));
}

#[test]
fn submitting_threads_have_memory_for_one_block_each() {
    let dir = scratch();
    or_skip!(libraries(dir.path()).and_then(|()| libraries_of_amd(dir.path())));
    for engine in ["libcufile", "libhipfile"] {
        let job = "--direct=1 --rw=randwrite --bs=64k --iodepth=16 --io_submit_mode=offload --verify=crc32c";
        json(dir.path(), &format!("--ioengine={engine} {job}"));
        let allocated: Vec<i64> = calls(dir.path())[0]
            .iter()
            .filter(|(call, _)| call == "cuMemAlloc")
            .map(|(_, bytes)| *bytes)
            .collect();
        assert_eq!((allocated.len(), allocated.iter().max()), (16, Some(&65536)), "{engine}");
    }
}

#[test]
fn options_without_effect_are_reported() {
    let dir = scratch();
    or_skip!(libraries(dir.path()));
    let told = |line: &str| run(dir.path(), &[], &format!("--rw=write {line}")).ok().output();
    for option in ["--refill_buffers", "--scramble_buffers=1", "--dedupe_percentage=50"] {
        for way in ["--direct=1", "--cuda_io=posix"] {
            let says =
                |more: &str| told(&format!("{way} {option} {more}")).contains("has no effect without verify");
            assert!(says("") && !says("--verify=crc32c"), "{option} {way}");
        }
    }
    assert!(!told("--direct=1").contains("no effect"), "defaults are not given");
    let deep = told("--cuda_io=posix --iodepth=8");
    assert!(deep.contains("iodepth=8: ioengine=libcufile is synchronous, its depth is always 1"), "{deep}");
    assert!(!told("--cuda_io=posix --iodepth=8 --io_submit_mode=offload").contains("synchronous"));
}

#[test]
fn threads_share_the_driver() {
    let dir = scratch();
    or_skip!(libraries(dir.path()));
    json(dir.path(), "--direct=1 --rw=randrw --thread --numjobs=4 --end_fsync=1");
    let calls = &calls(dir.path())[0];
    let driver: Vec<&str> =
        calls.iter().map(|(call, _)| call.as_str()).filter(|call| call.starts_with("cuFileDriver")).collect();
    assert!(driver.len() >= 2 && driver.len().is_multiple_of(2), "{driver:?}");
    assert!(driver.chunks(2).all(|pair| pair == ["cuFileDriverOpen", "cuFileDriverClose"]), "{driver:?}");
}

#[test]
fn an_older_library_is_closed_by_the_older_name() {
    let dir = scratch();
    let older = CUFILE.replace("cuFileDriverClose_v2", "cuFileDriverCloseOfNobody");
    or_skip!(stand_in(&format!("{NOTING}{CUDA}"), "libcuda.so.1", dir.path()));
    or_skip!(stand_in(&format!("{NOTING}{older}"), "libcufile.so.0", dir.path()));
    json(dir.path(), "--direct=1 --rw=write");
    assert_eq!((count(dir.path(), "cuFileDriverCloseOfOld"), count(dir.path(), "cuFileDriverClose")), (1, 0));
}

#[test]
fn requests_end_once_and_when_they_have_ended() {
    let dir = scratch();
    or_skip!(libraries(dir.path()));
    let line = "--direct=1 --rw=randrw --iodepth=8 --iodepth_batch=4 --output-format=json";
    let told = run(dir.path(), &[("REPEATS", "1")], line).ok();
    let json = Json::parse(&told.stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    assert_eq!(json.jobs()[0].ios().iter().sum::<u64>(), 256);
}

#[test]
fn without_the_libraries_their_packages_are_named() {
    let dir = scratch();
    // Files with the libraries' names that are no libraries.
    fs::write(dir.path().join("libcufile.so.0"), "no library").unwrap();
    fs::write(dir.path().join("libcuda.so.1"), "no library").unwrap();
    let direct = run(dir.path(), &[], "--direct=1 --rw=read").refused();
    direct.says("libcufile.so.0 cannot be used").says("package libcufile0 of Debian");
    let posix = run(dir.path(), &[], "--cuda_io=posix --rw=read").refused();
    posix.says("libcuda.so.1 cannot be used").says("package libcuda1 of Debian");
}

#[test]
fn the_examples_run() {
    let dir = scratch();
    or_skip!(libraries(dir.path()).and_then(|()| libraries_of_amd(dir.path())));
    for name in ["gpu.fio", "gpu-amd.fio"] {
        example_runs(dir.path(), name);
    }
}

fn example_runs(dir: &Path, name: &str) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/servers").join(name);
    let text = fs::read_to_string(example).unwrap();
    fs::write(dir.join("job.fio"), text.replace("=64M", "=4M")).unwrap();
    let mut command = Command::new(Program::own().path);
    command.args(words("--output-format=json job.fio")).current_dir(dir);
    command.env("LD_LIBRARY_PATH", dir).env("NOTES", dir.join("notes"));
    let json = Json::parse(&Running::start(&mut command).wait().ok().stdout);
    let ios: Vec<u64> = json.jobs().iter().map(|job| job.ios()[0]).collect();
    assert_eq!(ios, [4, 4, 64, 4]);
}
