/*
 * An engine with its own storage: the "files" of a job are drawers in one cabinet. The cabinet is a file, which the
 * option `arguments` names. A thread of the engine performs the I/Os.
 *
 *     cc -shared -fPIC -pthread -I include -o drawers.so examples/engines/drawers.c
 *     iolite --name=job --ioengine=external:./drawers.so --arguments=cabinet --filename=a:b --size=2M \
 *            --rw=randwrite --iodepth=8 --verify=crc32c
 *
 * The cabinet begins with a table of drawers. Drawer number n begins at byte FIRST + n * ROOM and has at most ROOM
 * bytes. Unwritten bytes take no space.
 */
#define _GNU_SOURCE
#include "iolite-engine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define DRAWERS 32
#define ROOM (64ull << 20)
#define FIRST (1ull << 20)

/* One entry of the table. An entry with an empty name is free. */
struct drawer {
    char name[248];
    uint64_t size;
};

struct cabinet {
    const struct iolite_worker *worker;
    int descriptor;
    struct drawer *table;
    /* The drawer number of each file of the job. */
    int *drawer_of;

    /* Units for the thread: a ring with a slot for each unit that can be in flight. */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const struct iolite_unit **units;
    uint32_t head, count;
    bool ending;
};

/* Looks for a drawer; -1 if there is none of this name. */
static int find(const struct cabinet *cabinet, const char *name)
{
    for (int n = 0; n < DRAWERS; n++)
        if (strcmp(cabinet->table[n].name, name) == 0)
            return n;
    return -1;
}

/* Reads or writes all bytes, or returns a negative error number. */
static int64_t move(const struct cabinet *cabinet, int drawer, bool writes, char *bytes, uint64_t length, uint64_t offset)
{
    uint64_t done = 0;
    if (drawer < 0)
        return -ENOENT;
    if (offset > ROOM || length > ROOM - offset)
        return writes ? -ENOSPC : -EINVAL;
    while (done < length) {
        off_t at = (off_t)(FIRST + (uint64_t)drawer * ROOM + offset + done);
        ssize_t moved = writes ? pwrite(cabinet->descriptor, bytes + done, length - done, at)
                               : pread(cabinet->descriptor, bytes + done, length - done, at);
        if (moved < 0 && errno != EINTR)
            return -errno;
        if (moved == 0) {
            /* The cabinet ends before this point, so nothing has been written here. */
            memset(bytes + done, 0, length - done);
            break;
        }
        done += moved > 0 ? (uint64_t)moved : 0;
    }
    return (int64_t)length;
}

static int64_t perform(const struct cabinet *cabinet, const struct iolite_unit *unit)
{
    int drawer = cabinet->drawer_of[unit->file];
    switch (unit->operation) {
    case IOLITE_READ:
        return move(cabinet, drawer, false, unit->buffer, unit->length, unit->offset);
    case IOLITE_WRITE:
        return move(cabinet, drawer, true, unit->buffer, unit->length, unit->offset);
    case IOLITE_SYNC:
    case IOLITE_DATA_SYNC:
    case IOLITE_SYNC_RANGE:
        return fsync(cabinet->descriptor) ? -errno : 0;
    default:
        return -EOPNOTSUPP;
    }
}

/* The thread that does all I/O. */
static void *work(void *argument)
{
    struct cabinet *cabinet = argument;
    pthread_mutex_lock(&cabinet->lock);
    for (;;) {
        while (cabinet->count == 0 && !cabinet->ending)
            pthread_cond_wait(&cabinet->changed, &cabinet->lock);
        if (cabinet->count == 0)
            break;
        const struct iolite_unit *unit = cabinet->units[cabinet->head];
        cabinet->head = (cabinet->head + 1) % cabinet->worker->depth;
        cabinet->count--;
        pthread_mutex_unlock(&cabinet->lock);
        /* The unit may be used again as soon as it is complete. */
        uint32_t index = unit->index;
        int64_t result = perform(cabinet, unit);
        cabinet->worker->complete(cabinet->worker->completer, index, result);
        pthread_mutex_lock(&cabinet->lock);
    }
    pthread_mutex_unlock(&cabinet->lock);
    return NULL;
}

static void give_up(struct cabinet *cabinet)
{
    if (cabinet->table)
        munmap(cabinet->table, DRAWERS * sizeof(struct drawer));
    if (cabinet->descriptor >= 0)
        close(cabinet->descriptor);
    free(cabinet->drawer_of);
    free(cabinet->units);
    free(cabinet);
}

/* Opens the cabinet, or creates an empty one. */
static int open_cabinet(struct cabinet *cabinet, const char *name, char *why, size_t room)
{
    size_t size = DRAWERS * sizeof(struct drawer);
    if (*name == 0) {
        snprintf(why, room, "arguments= has to name the cabinet, which is a file");
        return -EINVAL;
    }
    cabinet->descriptor = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    int error = cabinet->descriptor < 0 ? errno : 0;
    /* Several workers may do this at the same time, because existing data does not change. */
    if (error == 0)
        error = posix_fallocate(cabinet->descriptor, 0, (off_t)size);
    if (error != 0) {
        snprintf(why, room, "the cabinet %s cannot be opened: %s", name, strerror(error));
        return -error;
    }
    void *table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, cabinet->descriptor, 0);
    if (table == MAP_FAILED)
        return -errno;
    cabinet->table = table;
    return 0;
}

static int create(const struct iolite_worker *worker, void **state, char *why, size_t room)
{
    struct cabinet *cabinet = calloc(1, sizeof(*cabinet));
    if (!cabinet)
        return -ENOMEM;
    cabinet->worker = worker;
    cabinet->descriptor = -1;
    cabinet->drawer_of = calloc(worker->files + 1, sizeof(int));
    cabinet->units = calloc(worker->depth, sizeof(*cabinet->units));
    int result = cabinet->drawer_of && cabinet->units ? open_cabinet(cabinet, worker->arguments, why, room) : -ENOMEM;
    if (result == 0) {
        pthread_mutex_init(&cabinet->lock, NULL);
        pthread_cond_init(&cabinet->changed, NULL);
        result = -pthread_create(&cabinet->thread, NULL, work, cabinet);
    }
    if (result != 0) {
        give_up(cabinet);
        return result;
    }
    *state = cabinet;
    return 0;
}

static void destroy(void *state)
{
    struct cabinet *cabinet = state;
    pthread_mutex_lock(&cabinet->lock);
    cabinet->ending = true;
    pthread_cond_signal(&cabinet->changed);
    pthread_mutex_unlock(&cabinet->lock);
    pthread_join(cabinet->thread, NULL);
    give_up(cabinet);
}

static int64_t queue(void *state, const struct iolite_unit *unit)
{
    struct cabinet *cabinet = state;
    pthread_mutex_lock(&cabinet->lock);
    cabinet->units[(cabinet->head + cabinet->count) % cabinet->worker->depth] = unit;
    cabinet->count++;
    pthread_cond_signal(&cabinet->changed);
    pthread_mutex_unlock(&cabinet->lock);
    return IOLITE_QUEUED;
}

/* The storage. Several workers may change the table at the same time. */

static int extend(void *state, const char *name, uint64_t size)
{
    struct cabinet *cabinet = state;
    int result = 0;
    if (strlen(name) >= sizeof(cabinet->table->name))
        return -ENAMETOOLONG;
    if (size > ROOM)
        return -ENOSPC;
    flock(cabinet->descriptor, LOCK_EX);
    int n = find(cabinet, name);
    if (n < 0) {
        n = find(cabinet, "");
        if (n >= 0) {
            cabinet->table[n].size = 0;
            strcpy(cabinet->table[n].name, name);
        }
    }
    if (n < 0)
        result = -ENOSPC;
    else if (cabinet->table[n].size < size)
        cabinet->table[n].size = size;
    flock(cabinet->descriptor, LOCK_UN);
    return result;
}

static int size_of(void *state, const char *name, uint64_t *size)
{
    struct cabinet *cabinet = state;
    int n = find(cabinet, name);
    if (n < 0)
        return -ENOENT;
    *size = cabinet->table[n].size;
    return 0;
}

static int write_at(void *state, const char *name, const void *bytes, uint64_t length, uint64_t offset)
{
    struct cabinet *cabinet = state;
    int64_t result = move(cabinet, find(cabinet, name), true, (char *)bytes, length, offset);
    return result < 0 ? (int)result : 0;
}

static int sync_drawer(void *state, const char *name)
{
    struct cabinet *cabinet = state;
    if (find(cabinet, name) < 0)
        return -ENOENT;
    return fsync(cabinet->descriptor) ? -errno : 0;
}

static int unlink_drawer(void *state, const char *name)
{
    struct cabinet *cabinet = state;
    flock(cabinet->descriptor, LOCK_EX);
    int n = find(cabinet, name);
    if (n >= 0) {
        memset(&cabinet->table[n], 0, sizeof(struct drawer));
        /* The next drawer with this number must be empty. */
        fallocate(cabinet->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(FIRST + (uint64_t)n * ROOM),
                  (off_t)ROOM);
    }
    flock(cabinet->descriptor, LOCK_UN);
    return n < 0 ? -ENOENT : 0;
}

static int list(void *state, const char *prefix, int (*each)(void *context, const char *name), void *context)
{
    struct cabinet *cabinet = state;
    for (int n = 0; n < DRAWERS; n++) {
        const char *name = cabinet->table[n].name;
        if (*name && strncmp(name, prefix, strlen(prefix)) == 0 && each(context, name))
            break;
    }
    return 0;
}

static int open_drawer(void *state, uint32_t file, const struct iolite_file *what)
{
    struct cabinet *cabinet = state;
    if (find(cabinet, what->name) < 0) {
        int result = what->flags & IOLITE_CREATES ? extend(state, what->name, what->end) : -ENOENT;
        if (result < 0)
            return result;
    }
    cabinet->drawer_of[file] = find(cabinet, what->name);
    return 0;
}

const struct iolite_engine iolite_engine = {
    IOLITE_ENGINE_HEAD,
    .name = "drawers",
    .data = IOLITE_OWN_STORAGE,
    .completion = IOLITE_ON_THREADS,
    .capabilities = IOLITE_CAN_SYNC,
    .create = create,
    .destroy = destroy,
    .open = open_drawer,
    .queue = queue,
    .size_of = size_of,
    .extend = extend,
    .write_at = write_at,
    .sync = sync_drawer,
    .unlink = unlink_drawer,
    .list = list,
};
