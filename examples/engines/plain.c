/*
 * The smallest engine that does something: pread(2) and pwrite(2) on files that Iolite opens.
 *
 *     cc -shared -fPIC -I include -o plain.so examples/engines/plain.c
 *     iolite --name=job --ioengine=external:./plain.so --filename=file --size=1M --rw=randrw
 */
#define _GNU_SOURCE
#include "iolite-engine.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* The state of an engine is an array: the descriptors of the job's files. */

static int create(const struct iolite_worker *worker, void **state, char *why, size_t room)
{
    (void)why, (void)room;
    *state = calloc(worker->files + 1, sizeof(int));
    return *state ? 0 : -ENOMEM;
}

static int open_file(void *state, uint32_t file, const struct iolite_file *what)
{
    int *descriptors = state;
    descriptors[file] = what->descriptor;
    return 0;
}

static int64_t queue(void *state, const struct iolite_unit *unit)
{
    const int *descriptors = state;
    int descriptor = descriptors[unit->file];
    int64_t result;

    switch (unit->operation) {
    case IOLITE_READ:
        result = pread(descriptor, unit->buffer, unit->length, unit->offset);
        break;
    case IOLITE_WRITE:
        result = pwrite(descriptor, unit->buffer, unit->length, unit->offset);
        break;
    case IOLITE_SYNC:
    case IOLITE_SYNC_RANGE:
        result = fsync(descriptor);
        break;
    case IOLITE_DATA_SYNC:
        result = fdatasync(descriptor);
        break;
    default:
        return -EOPNOTSUPP;
    }
    return result < 0 ? -errno : result;
}

const struct iolite_engine iolite_engine = {
    IOLITE_ENGINE_HEAD,
    .name = "plain",
    .data = IOLITE_LOCAL_FILES,
    .completion = IOLITE_IN_CALL,
    .capabilities = IOLITE_CAN_SYNC | IOLITE_CAN_EXTEND,
    .create = create,
    .destroy = free,
    .open = open_file,
    .queue = queue,
};
