/*
 * iolite-engine.h: the interface for your own I/O engines, in shared objects.
 *
 * Write the functions described below, and put them into a variable
 *
 *     const struct iolite_engine iolite_engine = { IOLITE_ENGINE_HEAD, .name = "mine", ... };
 *
 * build a shared object (cc -shared -fPIC -I include -o mine.so mine.c), and name it in a job:
 *
 *     ioengine=external:./mine.so
 *
 * docs/engines-external.md explains all of this, and examples/engines has engines that work. This file needs nothing but
 * a C compiler and its standard headers. You may copy it into your own project.
 *
 * Rules for all functions:
 *
 * - Functions that return int return 0 or a negative error number (-ENOSPC), unless described otherwise.
 * - Each worker creates its own engine with `create`, and calls all functions of that engine from one thread. Workers
 *   that are processes have their own copies of the library's global variables; workers that are threads (thread=1)
 *   share them.
 * - A file is identified by its position in the job's list of files, counted from 0.
 * - Strings and structures passed to a function are valid until it returns, unless described otherwise.
 * - If a signal interrupts a wait, return at once: `reap` returns the completions it has, and `queue` returns -EINTR.
 *
 * The interface has a version number. Members may be appended to struct iolite_worker, iolite_file and iolite_engine
 * without a new version: their `size` tells the reader which members there are. The other structures do not change.
 */
#ifndef IOLITE_ENGINE_H
#define IOLITE_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the interface that this file describes. */
#define IOLITE_ENGINE_VERSION 1

/* Where the data of an engine lives. */
enum iolite_data {
    /* In local files. Iolite creates, opens, syncs and removes them, and passes a file descriptor to the engine. */
    IOLITE_LOCAL_FILES = 0,
    /* In the engine's own storage. Only the engine interprets names; it must have all storage functions. */
    IOLITE_OWN_STORAGE = 1,
    /* Nowhere: nothing is laid out, synced or verified. */
    IOLITE_NOWHERE = 2
};

/* Who completes a unit. */
enum iolite_completion_by {
    /* `queue` itself, which returns the result. A queue depth above 1 has no effect. */
    IOLITE_IN_CALL = 0,
    /* The engine, in `reap`. */
    IOLITE_ON_REAP = 1,
    /* Threads of the engine or of a library. They call `complete` of struct iolite_worker, and `reap` is not used. */
    IOLITE_ON_THREADS = 2
};

/* What an engine can do. A job that needs anything else is refused. */
enum iolite_capability {
    /* IOLITE_SYNC, IOLITE_DATA_SYNC and IOLITE_SYNC_RANGE */
    IOLITE_CAN_SYNC = 1,
    /* IOLITE_TRIM */
    IOLITE_CAN_TRIM = 2,
    /* Writes past the end of a file, which extend it */
    IOLITE_CAN_EXTEND = 4,
    /* Atomic writes (all or nothing), if IOLITE_ATOMIC is set */
    IOLITE_CAN_WRITE_ATOMICALLY = 8
};

/* The operation of a unit. */
enum iolite_operation {
    IOLITE_READ = 0,
    IOLITE_WRITE = 1,
    /* Discard `length` bytes at `offset`. The buffer is not used. */
    IOLITE_TRIM = 2,
    /* Put the file's data and metadata on stable storage. */
    IOLITE_SYNC = 3,
    /* Put only the file's data on stable storage. */
    IOLITE_DATA_SYNC = 4,
    /* Start to write back a range of the file (sync_file_range(2)). */
    IOLITE_SYNC_RANGE = 5
};

/* One I/O. */
struct iolite_unit {
    /* A buffer of `length` bytes, valid until the unit is complete. Reads fill it, and writes write its contents. */
    void *buffer;
    uint64_t length;
    uint64_t offset;
    /* The unit's number, from 0 to the job's depth minus 1. No two units in flight have the same number. */
    uint32_t index;
    /* The file's position in the list. */
    uint32_t file;
    /* enum iolite_operation */
    uint32_t operation;
    /* The I/O priority, encoded as for ioprio_set(2); 0 = the worker's priority. */
    uint32_t priority;
};

/* Return values of `queue` that are not results. IOLITE_QUEUED: the unit will be completed later. IOLITE_BUSY: the
 * engine cannot take the unit now. Iolite then calls `commit` and `reap`, and queues the unit again. */
#define IOLITE_QUEUED INT64_MIN
#define IOLITE_BUSY (INT64_MIN + 1)

/* A completed unit. */
struct iolite_completion {
    /* The unit's number (`index`). */
    uint32_t unit;
    uint32_t reserved;
    /* The number of bytes (0 for syncs), or a negative error number. */
    int64_t result;
};

/* Flags of a worker. */
enum iolite_worker_flag {
    /* direct=1: bypass caches. */
    IOLITE_DIRECT = 1,
    /* atomic=1: writes are all or nothing. */
    IOLITE_ATOMIC = 2
};

/* The parameters of `create`. They stay valid until `destroy` returns. */
struct iolite_worker {
    /* sizeof(struct iolite_worker) in the calling program */
    uint32_t size;
    /* The maximum number of units in flight, at least 1. */
    uint32_t depth;
    /* The number of files in the list. */
    uint32_t files;
    /* Flags of enum iolite_worker_flag, combined with | */
    uint32_t flags;
    /* A seed for random choices that the engine makes itself. */
    uint64_t seed;
    /* The job's option `arguments`; an empty string if it was not given. */
    const char *arguments;
    /* The first argument of `complete`. */
    void *completer;
    /* Completes a unit for which `queue` has returned IOLITE_QUEUED, or is about to. May be called from any thread.
     * Returns 0, or -EINVAL if the unit is not in flight. NULL unless the engine declares IOLITE_ON_THREADS. */
    int (*complete)(void *completer, uint32_t unit, int64_t result);
};

/* Flags of a file. */
enum iolite_file_flag {
    /* The job reads from the file, or writes to it. */
    IOLITE_READS = 1,
    IOLITE_WRITES = 2,
    /* Create the file if it does not exist. */
    IOLITE_CREATES = 4,
    /* O_DIRECT, O_SYNC and O_DSYNC of open(2) */
    IOLITE_FILE_DIRECT = 8,
    IOLITE_FILE_SYNC = 16,
    IOLITE_FILE_DSYNC = 32
};

/* A file that the job uses. */
struct iolite_file {
    /* sizeof(struct iolite_file) in the calling program */
    uint32_t size;
    /* Flags of enum iolite_file_flag, combined with | */
    uint32_t flags;
    /* The file's name, as in the job. */
    const char *name;
    /* Where the part of the file that the job uses ends, in bytes from the start of the file. */
    uint64_t end;
    /* With IOLITE_LOCAL_FILES a file descriptor, which Iolite closes after `close` has returned; otherwise -1. */
    int descriptor;
    uint32_t reserved;
};

/* An engine. `name`, `create` and `queue` are always required. The other functions are NULL if the engine does not
 * have them; each description says when a function is required. */
struct iolite_engine {
    /* IOLITE_ENGINE_HEAD sets these two. */
    uint32_t version;
    uint32_t size;
    /* The engine's name. */
    const char *name;
    /* enum iolite_data */
    uint32_t data;
    /* enum iolite_completion_by */
    uint32_t completion;
    /* Flags of enum iolite_capability, combined with | */
    uint64_t capabilities;

    /* Creates an engine and connects to whatever it needs. Sets `*state`, which is passed to all other functions. On
     * failure it may write a message for the user to `why`: a string of at most `room` bytes, including the zero byte
     * at its end. */
    int (*create)(const struct iolite_worker *worker, void **state, char *why, size_t room);
    /* Destroys the engine. Units are still in flight only after errors. When it returns, the engine must not use
     * their buffers any more, all threads of the engine must have ended, and `complete` must not be called again.
     * Required unless `queue` completes all units (IOLITE_IN_CALL). */
    void (*destroy)(void *state);

    /* `open`: the job uses a file from now on. `close`: the job no longer uses it. Both are optional. */
    int (*open)(void *state, uint32_t file, const struct iolite_file *what);
    int (*close)(void *state, uint32_t file);

    /* Submits a unit. Returns the result (the number of bytes, or a negative error number) if the unit is complete,
     * or else IOLITE_QUEUED or IOLITE_BUSY. `*unit` stays valid until the unit is complete. */
    int64_t (*queue)(void *state, const struct iolite_unit *unit);
    /* Passes the queued units on to the storage. Optional: `queue` may do that itself. */
    int (*commit)(void *state);
    /* Waits until at least `min` units are complete, but no longer than `timeout` nanoseconds; a negative timeout
     * means no limit. Writes at most `max` completions to `done`, and returns their number. With `min` 0 it does not
     * wait. `min` and `max` are never larger than the number of units in flight. Required with IOLITE_ON_REAP, and
     * not used otherwise. */
    int (*reap)(void *state, uint32_t min, uint32_t max, int64_t timeout, struct iolite_completion *done);

    /*
     * The storage functions. IOLITE_OWN_STORAGE requires all of them; other engines must not have them. Except for
     * `sync`, Iolite calls them only while no unit is in flight. It also calls them in processes that only look up
     * names or lay out files and never queue a unit.
     */

    /* Sets `*size` to the size of the file `name` in bytes. Returns -ENOENT if there is no such file. */
    int (*size_of)(void *state, const char *name, uint64_t *size);
    /* Creates the file if it does not exist, and extends it to `size` bytes if it is shorter. Existing data does not
     * change. */
    int (*extend)(void *state, const char *name, uint64_t size);
    /* Writes all `length` bytes at `offset` to lay out the file. The file is already long enough. */
    int (*write_at)(void *state, const char *name, const void *bytes, uint64_t length, uint64_t offset);
    /* Puts the file on stable storage. Iolite also calls this function while units are in flight. */
    int (*sync)(void *state, const char *name);
    /* Removes the file. Returns -ENOENT if there is no such file. */
    int (*unlink)(void *state, const char *name);
    /* Calls `each` with `context` and every name that begins with `prefix`, until `each` returns a value other than
     * 0. */
    int (*list)(void *state, const char *prefix, int (*each)(void *context, const char *name), void *context);
};

/* The first members of the variable `iolite_engine`. */
#define IOLITE_ENGINE_HEAD .version = IOLITE_ENGINE_VERSION, .size = sizeof(struct iolite_engine)

/* The one symbol that Iolite looks for. */
extern const struct iolite_engine iolite_engine;

#ifdef __cplusplus
}
#endif

#endif
