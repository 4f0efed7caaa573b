/*
 * iolite-engine.h: an I/O engine of your own for Iolite, in a shared object.
 *
 * Write the functions that are described below, put them into a variable
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
 * - An int result is 0, or an error number with a minus sign (-ENOSPC).
 * - Each worker makes an engine of its own with `create`, and calls its other functions from one thread only. Workers
 *   that are processes have loaded the library for themselves; workers that are threads (thread=1) share its global
 *   variables.
 * - Files are known by their places in the job's list, from 0. Strings and structures that a function is given are valid
 *   until it returns, unless something else is said.
 * - A signal that interrupts a wait ends it: return what there is (`reap`), or -EINTR (`queue`).
 *
 * The interface has a version. Newer versions may append members to the structures; `size` tells how many of them the
 * other side knows.
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
    /* In files of this machine. Iolite makes, opens, syncs and removes them, and gives the engine a descriptor. */
    IOLITE_LOCAL_FILES = 0,
    /* In a storage of its own. Names mean something to the engine alone, which has the functions size_of to unlink. */
    IOLITE_OWN_STORAGE = 1,
    /* Nowhere: nothing is laid out, synced or verified. */
    IOLITE_NOWHERE = 2
};

/* Who completes a unit. */
enum iolite_completion_by {
    /* `queue` itself: it answers the result. A depth above 1 means nothing. */
    IOLITE_IN_CALL = 0,
    /* The engine, in `reap`. */
    IOLITE_ON_REAP = 1,
    /* Threads of the engine or of a library, which call `complete` of struct iolite_worker. There is no `reap`. */
    IOLITE_ON_THREADS = 2
};

/* What an engine can do; a job that asks for something else is refused. */
enum iolite_capability {
    /* IOLITE_SYNC and its relatives: what was written is on stable storage then. */
    IOLITE_CAN_SYNC = 1,
    /* IOLITE_TRIM */
    IOLITE_CAN_TRIM = 2,
    /* Writes behind the end of a file, which make it longer. */
    IOLITE_CAN_EXTEND = 4,
    /* Writes that are whole or not at all, where IOLITE_ATOMIC is set. */
    IOLITE_CAN_WRITE_ATOMICALLY = 8
};

/* What is to be done with a unit. */
enum iolite_operation {
    IOLITE_READ = 0,
    IOLITE_WRITE = 1,
    /* Discard `length` bytes at `offset`. There is no buffer. */
    IOLITE_TRIM = 2,
    /* Put data and metadata of the file on stable storage. */
    IOLITE_SYNC = 3,
    /* The same for the data alone. */
    IOLITE_DATA_SYNC = 4,
    /* Begin to write back a range (sync_file_range(2)). */
    IOLITE_SYNC_RANGE = 5
};

/* One I/O. */
struct iolite_unit {
    /* `length` bytes, valid until the unit is complete. Reads fill them, writes take them. */
    void *buffer;
    uint64_t length;
    uint64_t offset;
    /* The unit's number, from 0 and below the depth of the job. No two in flight have the same. */
    uint32_t index;
    /* The file's place in the list. */
    uint32_t file;
    /* enum iolite_operation */
    uint32_t operation;
    /* The I/O priority as ioprio_set(2) has it; 0 = that of the worker. */
    uint32_t priority;
};

/* Answers of `queue` that are no results: the unit will be completed later; it cannot be taken now (commit and reap
 * first, then ask again). */
#define IOLITE_QUEUED INT64_MIN
#define IOLITE_BUSY (INT64_MIN + 1)

/* A unit that is complete. */
struct iolite_completion {
    uint32_t unit;
    uint32_t reserved;
    /* Bytes (0 for syncs), or an error number with a minus sign. */
    int64_t result;
};

/* Flags of a worker. */
enum iolite_worker_flag {
    /* direct=1: keep out of caches. */
    IOLITE_DIRECT = 1,
    /* atomic=1: writes are whole or not at all. */
    IOLITE_ATOMIC = 2
};

/* What an engine is told when it is made. Valid as long as the engine lives. */
struct iolite_worker {
    /* sizeof(struct iolite_worker) of the program */
    uint32_t size;
    /* Most units in flight, at least 1. */
    uint32_t depth;
    /* Files in the list. */
    uint32_t files;
    /* enum iolite_worker_flag, or-ed */
    uint32_t flags;
    /* Of the worker's random choices. */
    uint64_t seed;
    /* The option `arguments` of the job; empty when it was not given. */
    const char *arguments;
    /* To be handed to `complete`. */
    void *completer;
    /* Completes a unit that `queue` has answered IOLITE_QUEUED, or is about to. May be called from any thread. 0, or
     * -EINVAL for a unit that is not in flight. Only with IOLITE_ON_THREADS; NULL otherwise. */
    int (*complete)(void *completer, uint32_t unit, int64_t result);
};

/* Flags of a file. */
enum iolite_file_flag {
    IOLITE_READS = 1,
    IOLITE_WRITES = 2,
    /* Make it if it is missing. */
    IOLITE_CREATES = 4,
    /* As O_DIRECT, O_SYNC and O_DSYNC of open(2). */
    IOLITE_FILE_DIRECT = 8,
    IOLITE_FILE_SYNC = 16,
    IOLITE_FILE_DSYNC = 32
};

/* A file that is opened. */
struct iolite_file {
    /* sizeof(struct iolite_file) of the program */
    uint32_t size;
    /* enum iolite_file_flag, or-ed */
    uint32_t flags;
    /* Its name as the job has it. */
    const char *name;
    /* The end of the part of it that the job uses, in bytes. */
    uint64_t end;
    /* Of IOLITE_LOCAL_FILES: open until `close` has returned, and closed by Iolite. -1 otherwise. */
    int descriptor;
    uint32_t reserved;
};

/* An engine. Members that are NULL are not there; which have to be is said for each. */
struct iolite_engine {
    /* These two are IOLITE_ENGINE_HEAD. */
    uint32_t version;
    uint32_t size;
    /* Told to users. */
    const char *name;
    /* enum iolite_data */
    uint32_t data;
    /* enum iolite_completion_by */
    uint32_t completion;
    /* enum iolite_capability, or-ed */
    uint64_t capabilities;

    /* Makes an engine: connects to what it needs. `*state` is handed to all other functions. When it fails, `why` has
     * room for `room` bytes of words about it, with a zero at their end. */
    int (*create)(const struct iolite_worker *worker, void **state, char *why, size_t room);
    /* Ends it. Nothing is in flight that `queue` was given and the engine has not completed, except after errors: such
     * units must not touch their buffers after this, all threads of the engine have ended when it returns, and `complete`
     * is not called again. May be NULL if units are completed in the call of `queue` (IOLITE_IN_CALL). */
    void (*destroy)(void *state);

    /* A file is used from now on, and is not used any more. May be NULL. */
    int (*open)(void *state, uint32_t file, const struct iolite_file *what);
    int (*close)(void *state, uint32_t file);

    /* Takes a unit. The answer is its result (bytes, or a negative error number) if it is complete, else IOLITE_QUEUED
     * or IOLITE_BUSY. The unit itself is valid until it is complete. */
    int64_t (*queue)(void *state, const struct iolite_unit *unit);
    /* Hands what was queued to the storage; engines that do that in `queue` have none. */
    int (*commit)(void *state);
    /* Writes at least `min` and at most `max` completions to `done`, and answers how many. Waits no longer than
     * `timeout` nanoseconds; a negative one is without limit. `min` 0 asks for what is there. Waits for no more than
     * what is in flight. Only with IOLITE_ON_REAP. */
    int (*reap)(void *state, uint32_t min, uint32_t max, int64_t timeout, struct iolite_completion *done);

    /*
     * The storage: with IOLITE_OWN_STORAGE all of them, otherwise none. They are called while nothing is in flight, and also
     * in processes that only look names up or lay files out, and never queue a unit.
     */

    /* How many bytes what has this name holds; -ENOENT if there is nothing. */
    int (*size_of)(void *state, const char *name, uint64_t *size);
    /* Makes it if there is nothing of this name, and makes it `size` bytes long if it is shorter. What it holds
     * already stays. */
    int (*extend)(void *state, const char *name, uint64_t size);
    /* Writes all of `length` bytes at `offset`, where it is long enough: the data that is laid out. */
    int (*write_at)(void *state, const char *name, const void *bytes, uint64_t length, uint64_t offset);
    /* Puts it on stable storage. Also called while units are in flight. */
    int (*sync)(void *state, const char *name);
    /* Removes it; -ENOENT if there is nothing. */
    int (*unlink)(void *state, const char *name);
    /* Calls `each` with every name that begins with `prefix`, until that answers something other than 0. */
    int (*list)(void *state, const char *prefix, int (*each)(void *context, const char *name), void *context);
};

/* The beginning of the variable `iolite_engine`. */
#define IOLITE_ENGINE_HEAD .version = IOLITE_ENGINE_VERSION, .size = sizeof(struct iolite_engine)

/* The one symbol that Iolite looks for. */
extern const struct iolite_engine iolite_engine;

#ifdef __cplusplus
}
#endif

#endif
