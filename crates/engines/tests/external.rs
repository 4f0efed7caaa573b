//! Engines in shared objects: the examples work, and files that are not engines, or break their promises, are refused.

mod common;

use common::*;
use iolite_engine::{Completion, Engine, EngineConfig, EngineError, Errno, OpenMode, Queued};
use iolite_engines::{Visitor, describe_external, probe};
use iolite_options::EngineOptions;
use iolite_options::engines::{Completion as CompletedBy, Data, ExternalOptions};
use iolite_testing::{engine_of, example_engine, or_skip};
use iolite_types::Operation;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lets one test run at a time. A probe forks, and its child would wait for ever for the lock of the dynamic loader, if
/// another thread was loading a library in that moment. (The program has one thread when it probes.)
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn external(library: &Path, arguments: &Path, depth: usize) -> EngineConfig {
    let own = ExternalOptions {
        library: library.to_owned(),
        arguments: arguments.display().to_string(),
        ..ExternalOptions::default()
    };
    EngineConfig { files: 2, ..EngineConfig::new(own.into(), depth) }
}

/// Writes blocks and reads them back with another engine, as another worker would.
struct Blocks<'a> {
    name: &'a Path,
    operation: Operation,
}

impl Visitor for Blocks<'_> {
    type Out = usize;

    fn visit<E: Engine>(self, mut engine: E) -> usize {
        let mut buffers = Buffers::new(BLOCK, 8);
        engine.open(0, &spec(self.name, 64 * BLOCK as u64), BOTH).unwrap();
        engine.prepare(&buffers.layout).unwrap();
        let mut count = 0;
        let offsets = scattered(64, BLOCK as u64);
        run_all(&mut engine, &mut buffers, self.operation, &offsets, 3, |offset, outcome, bytes| {
            assert_eq!(outcome, Ok(BLOCK as u64), "at {offset}");
            assert_eq!(bytes, content(offset, BLOCK), "at {offset}");
            count += 1;
        });
        assert_eq!(perform(&mut engine, &buffers.unit(0, Operation::Sync, 0, 0)), Ok(0));
        engine.close(0).unwrap();
        count
    }
}

#[test]
fn a_plain_engine_works_on_files_that_are_opened_for_it() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let library = or_skip!(example_engine("plain", directory.path()));
    let facets = describe_external(&library).unwrap();
    assert_eq!((facets.data, facets.completion), (Data::LocalFiles, CompletedBy::Call));
    let name = directory.path().join("file");
    let config = external(&library, Path::new(""), 8);
    for operation in [Operation::Write, Operation::Read] {
        assert_eq!(with_engine("external", &config, Blocks { name: &name, operation }), 64);
    }
    assert_eq!(std::fs::read(&name).unwrap()[..BLOCK], content(0, BLOCK));
    probe("external", &config).unwrap();
}

#[test]
fn a_storage_of_its_own_outlives_the_connection() {
    let _alone = alone();
    struct Storage;
    impl Visitor for Storage {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let storage = engine.storage().expect("it has one");
            let (a, b) = (Path::new("box/a"), Path::new("box/b"));
            assert_eq!(storage.size(a).unwrap(), None);
            let mut stored = storage.open(a).unwrap();
            assert_eq!((stored.size().unwrap(), stored.room().unwrap()), (0, None));
            stored.write(b"laid out", 4096).unwrap();
            assert_eq!(stored.size().unwrap(), 4104);
            stored.extend(1 << 20, iolite_options::Fallocate::Native).unwrap();
            stored.sync().unwrap();
            drop(stored);
            assert_eq!(storage.size(a).unwrap(), Some(1 << 20));
            drop(storage.open(b).unwrap());
            drop(storage.open(Path::new("other")).unwrap());
            assert_eq!(storage.list(Path::new("box/"), &mut || ()).unwrap(), [a, b]);
            storage.sync(b).unwrap();
            storage.unlink(b).unwrap();
            assert_eq!(storage.unlink(b).unwrap_err().kind(), std::io::ErrorKind::NotFound);
            assert_eq!(storage.sync(b).unwrap_err().kind(), std::io::ErrorKind::NotFound);
            let mut stored = storage.open(a).unwrap();
            assert!(
                stored.extend(1 << 40, iolite_options::Fallocate::Truncate).is_err(),
                "drawers are small"
            );
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let library = or_skip!(example_engine("drawers", directory.path()));
    let facets = describe_external(&library).unwrap();
    assert_eq!((facets.data, facets.completion), (Data::OwnStorage, CompletedBy::LibraryThreads));
    let config = external(&library, &directory.path().join("cabinet"), 8);
    with_engine("external", &config, Storage);
    let name = Path::new("letters");
    for operation in [Operation::Write, Operation::Read] {
        assert_eq!(with_engine("external", &config, Blocks { name, operation }), 64);
    }
    assert!(!name.exists(), "names of drawers are not paths");
}

#[test]
fn threads_of_an_engine_are_known() {
    let _alone = alone();
    struct Threads;
    impl Visitor for Threads {
        type Out = usize;
        fn visit<E: Engine>(self, engine: E) -> usize {
            engine.threads().len()
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let library = or_skip!(example_engine("drawers", directory.path()));
    let config = external(&library, &directory.path().join("cabinet"), 1);
    assert_eq!(with_engine("external", &config, Threads), 1);
}

#[test]
fn an_engine_says_in_its_own_words_why_it_cannot_be_made() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let library = or_skip!(example_engine("drawers", directory.path()));
    let error = probe("external", &external(&library, Path::new(""), 1)).unwrap_err();
    let words = "arguments= has to name the cabinet, which is a file";
    assert_eq!(error.to_string(), format!("ioengine=external:{}: {words}", library.display()));
    let error = probe("external", &external(&library, &directory.path().join("nowhere/c"), 1)).unwrap_err();
    assert!(error.to_string().contains("No such file or directory"), "{error}");
}

/// The beginning of an engine whose functions do nothing, for tests of engines with mistakes.
const HEAD: &str = r#"
    #include "iolite-engine.h"
    #include <errno.h>
    #include <stdlib.h>
    static int create(const struct iolite_worker *worker, void **state, char *why, size_t room)
    { (void)worker, (void)why, (void)room; *state = 0; return 0; }
"#;

fn refused(text: &str, name: &str, directory: &Path) -> Result<String, String> {
    let library = engine_of(text, name, directory)?;
    let error = describe_external(&library).unwrap_err();
    assert!(matches!(error, EngineError::External { .. }), "{error:?}");
    assert!(error.to_string().starts_with(&format!("ioengine=external:{}: ", library.display())), "{error}");
    Ok(error.to_string())
}

#[test]
fn libraries_that_are_not_engines_are_refused_with_a_reason() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let refused = |text: &str, name: &str| refused(text, name, directory.path());
    let error = or_skip!(refused("int nothing;", "nothing"));
    assert!(error.contains("it has no symbol iolite_engine"), "{error}");
    // It needs functions of fio, and its initialiser would run if it were loaded.
    let of_fio = "#include <stdlib.h>\n\
        extern void register_ioengine(void *);\n\
        struct ioengine_ops { const char *name; } ioengine = { \"x\" };\n\
        __attribute__((constructor)) static void begin(void) { register_ioengine(&ioengine); abort(); }";
    let error = or_skip!(refused(of_fio, "fio"));
    assert!(error.contains("it was made for fio"), "{error}");
    let get = "void get_ioengine(void **ops) { *ops = 0; }";
    assert!(or_skip!(refused(get, "get")).contains("it was made for fio"));

    let version =
        format!("{HEAD} const struct iolite_engine iolite_engine = {{ .version = 7, .create = create }};");
    let error = or_skip!(refused(&version, "version"));
    assert!(error.contains("version 7 of the interface, and this program version 1"), "{error}");
    let hollow = format!(
        "{HEAD} const struct iolite_engine iolite_engine = {{ IOLITE_ENGINE_HEAD, .name = \"x\", .create = create }};"
    );
    assert!(or_skip!(refused(&hollow, "hollow")).contains("its declaration has no queue"));
    let missing = format!(
        "{HEAD} extern int64_t elsewhere(void *, const struct iolite_unit *);
         const struct iolite_engine iolite_engine =
             {{ IOLITE_ENGINE_HEAD, .name = \"x\", .create = create, .queue = elsewhere }};"
    );
    let error = or_skip!(refused(&missing, "missing"));
    assert!(error.contains("it cannot be loaded") && error.contains("elsewhere"), "{error}");

    let error = describe_external(&directory.path().join("none.so")).unwrap_err().to_string();
    assert!(error.ends_with("No such file or directory"), "{error}");
    std::fs::write(directory.path().join("text.so"), "iolite_engine\0").unwrap();
    let error = describe_external(&directory.path().join("text.so")).unwrap_err().to_string();
    assert!(error.contains("it cannot be loaded"), "{error}");
}

#[test]
fn a_relative_path_begins_in_the_current_directory_and_is_not_searched_for() {
    let _alone = alone();
    // The C library is in a library directory, not in the current one.
    let error = describe_external(Path::new("libc.so.6")).unwrap_err().to_string();
    assert!(error.ends_with("No such file or directory"), "{error}");
}

/// Queues a read and takes its outcome.
struct OneRead;

impl Visitor for OneRead {
    type Out = Result<Option<Result<u64, Errno>>, Errno>;

    fn visit<E: Engine>(self, mut engine: E) -> Self::Out {
        let buffers = Buffers::new(BLOCK, 1);
        engine.open(0, &spec(Path::new("x"), 0), OpenMode { create: false, ..READ }).unwrap();
        engine.prepare(&buffers.layout).unwrap();
        // SAFETY: the buffer lives longer than the engine.
        match unsafe { engine.queue(&buffers.unit(0, Operation::Read, 0, 512)) } {
            Queued::Completed(outcome) => return Ok(Some(outcome)),
            Queued::Busy | Queued::Over => return Ok(None),
            Queued::Queued => {}
        }
        engine.commit()?;
        let mut done: Vec<Completion> = Vec::new();
        engine.reap(1, 1, Some(Duration::from_secs(10)), &mut done)?;
        Ok(done.pop().map(|completion| completion.outcome))
    }
}

#[test]
fn broken_promises_are_errors() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let run = |name: &str, completion: &str, functions: &str| {
        let text = format!(
            "{HEAD} {functions}
             const struct iolite_engine iolite_engine = {{
                 IOLITE_ENGINE_HEAD, .name = \"x\", .data = IOLITE_NOWHERE, .completion = {completion},
                 .create = create, .queue = queue, {}
             }};",
            if completion == "IOLITE_ON_REAP" { ".reap = reap, .destroy = destroy" } else { "" }
        );
        let library = engine_of(&text, name, directory.path())?;
        let config = external(&library, Path::new(""), 1);
        Ok::<_, String>(with_engine("external", &config, OneRead))
    };
    let queue = |answer: &str| {
        format!(
            "static int64_t queue(void *state, const struct iolite_unit *unit) {{ (void)state, (void)unit; return {answer}; }}"
        )
    };
    let reap = |body: &str| {
        format!(
            "{} static void destroy(void *state) {{ (void)state; }}
             static int reap(void *state, uint32_t min, uint32_t max, int64_t timeout, struct iolite_completion *done)
             {{ (void)state, (void)min, (void)max, (void)timeout, (void)done; {body} }}",
            queue("IOLITE_QUEUED")
        )
    };
    let protocol = Errno(libc::EPROTO);
    let in_call = |name, answer| run(name, "IOLITE_IN_CALL", &queue(answer));
    assert_eq!(or_skip!(in_call("short", "100")), Ok(Some(Ok(100))));
    assert_eq!(or_skip!(in_call("error", "-EIO")), Ok(Some(Err(Errno(libc::EIO)))));
    assert_eq!(or_skip!(in_call("more", "513")), Ok(Some(Err(protocol))), "more than there was room for");
    assert_eq!(or_skip!(in_call("later", "IOLITE_QUEUED")), Ok(Some(Err(protocol))));
    assert_eq!(or_skip!(in_call("strange", "-123456789")), Ok(Some(Err(protocol))), "no error number");

    let on_reap = |name, body| run(name, "IOLITE_ON_REAP", &reap(body));
    let good = "done[0].unit = 0; done[0].result = 512; return 1;";
    assert_eq!(or_skip!(on_reap("good", good)), Ok(Some(Ok(512))));
    assert_eq!(
        or_skip!(on_reap("other", "done[0].unit = 5; return 1;")),
        Err(protocol),
        "it is not in flight"
    );
    assert_eq!(or_skip!(on_reap("many", "return 2;")), Err(protocol), "more than there was room for");
    assert_eq!(or_skip!(on_reap("much", "done[0].result = 1 << 30; return 1;")), Ok(Some(Err(protocol))));
    assert_eq!(or_skip!(on_reap("interrupted", "return -EINTR;")), Ok(None));
    assert_eq!(or_skip!(on_reap("failed", "return -EIO;")), Err(Errno(libc::EIO)));
}

#[test]
fn other_engines_have_no_storage_of_their_own() {
    let _alone = alone();
    struct Asked;
    impl Visitor for Asked {
        type Out = bool;
        fn visit<E: Engine>(self, mut engine: E) -> bool {
            engine.storage().is_some()
        }
    }
    for name in ["psync", "null", "vsync"] {
        assert!(!with_engine(name, &EngineConfig::new(EngineOptions::None, 1), Asked), "{name}");
    }
}
