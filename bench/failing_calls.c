/* Lets the n-th operation on files below a folder fail, in whatever code makes it, SQLite's included (LD_PRELOAD).
 *
 * A process arms it for itself (`arm`); processes that it starts are not touched. Every operation of the kinds asked for
 * is counted, also where none is to fail, so that a first run tells how many there are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, SYNC = 4, RENAME = 8, UNLINK = 16, MKDIR = 32, TRUNCATE = 64, READ = 128, CREATE = 256 };

static char folder[PATH_MAX];
static size_t length;
static long place;
static int kinds, error, stays, shorter;
static atomic_long count, hits;
static unsigned char watched[1 << 16];

void arm(const char *below, long at, int which, int code, int for_ever, int short_writes) {
    strncpy(folder, below, sizeof folder - 1);
    length = strlen(folder);
    place = at, kinds = which, error = code, stays = for_ever, shorter = short_writes;
    atomic_store(&count, 0);
    atomic_store(&hits, 0);
}

long counted(void) { return atomic_load(&count); }
long failed(void) { return atomic_load(&hits); }

static int is_below(const char *path) { return length && path && !strncmp(path, folder, length); }
static int is_watched(int fd) { return length && fd >= 0 && fd < (1 << 16) && watched[fd]; }

static int fails(int kind, int concerned) {
    if (!concerned || !(kind & kinds)) return 0;
    long number = atomic_fetch_add(&count, 1) + 1;
    if (!place || (stays ? number < place : number != place)) return 0;
    atomic_fetch_add(&hits, 1);
    errno = error;
    return 1;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int opened(int fd, const char *path) {
    if (fd >= 0 && fd < (1 << 16)) watched[fd] = is_below(path);
    return fd;
}

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (fails(flags & O_CREAT ? OPEN | CREATE : OPEN, is_below(path))) return -1; \
        return opened(real(path, flags, mode), path); \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name) \
    int name(int at, const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (fails(flags & O_CREAT ? OPEN | CREATE : OPEN, is_below(path))) return -1; \
        return opened(real(at, path, flags, mode), path); \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

int close(int fd) {
    REAL(close);
    if (fd >= 0 && fd < (1 << 16)) watched[fd] = 0;
    return real(fd);
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    if (fails(WRITE, is_watched(fd))) {
        if (!shorter) return -1;
        size = size > 1 ? size / 2 : size;
    }
    return real(fd, data, size);
}

#define WRITES_AT(name, offset) \
    ssize_t name(int fd, const void *data, size_t size, offset at) { \
        REAL(name); \
        if (fails(WRITE, is_watched(fd))) { if (!shorter) return -1; size = size > 1 ? size / 2 : size; } \
        return real(fd, data, size, at); \
    }
WRITES_AT(pwrite, off_t)
WRITES_AT(pwrite64, off64_t)

ssize_t read(int fd, void *data, size_t size) { REAL(read); return fails(READ, is_watched(fd)) ? -1 : real(fd, data, size); }
ssize_t pread(int fd, void *data, size_t size, off_t at) { REAL(pread); return fails(READ, is_watched(fd)) ? -1 : real(fd, data, size, at); }
ssize_t pread64(int fd, void *data, size_t size, off64_t at) { REAL(pread64); return fails(READ, is_watched(fd)) ? -1 : real(fd, data, size, at); }
int fsync(int fd) { REAL(fsync); return fails(SYNC, is_watched(fd)) ? -1 : real(fd); }
int fdatasync(int fd) { REAL(fdatasync); return fails(SYNC, is_watched(fd)) ? -1 : real(fd); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); return fails(TRUNCATE, is_watched(fd)) ? -1 : real(fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); return fails(TRUNCATE, is_watched(fd)) ? -1 : real(fd, size); }
int rename(const char *old, const char *new) { REAL(rename); return fails(RENAME, is_below(new)) ? -1 : real(old, new); }
int unlink(const char *path) { REAL(unlink); return fails(UNLINK, is_below(path)) ? -1 : real(path); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); return fails(MKDIR, is_below(path)) ? -1 : real(path, mode); }
