/* Ends the process at its k-th call that changes a file below a folder; see kills.py, which preloads this. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char below[PATH_MAX];  /* nothing is counted while it is empty */
static long calls, fatal;     /* the call that kills; 0 for none */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void kills_arm(const char *folder, long call) {
  strncpy(below, folder, sizeof below - 1);
  calls = 0;
  fatal = call;
}

long kills_count(void) { return calls; }

static int inside(const char *path) { return below[0] && path && !strncmp(path, below, strlen(below)); }

static int inside_fd(int fd) {
  char link[64], path[PATH_MAX];
  if (!below[0]) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return inside(path);
}

static int inside_at(int folder, const char *path) {
  return path && path[0] == '/' || folder == AT_FDCWD ? inside(path) : inside_fd(folder);
}

/* Whether this call is the last one. */
static int is_last(void) { return __sync_add_and_fetch(&calls, 1) == fatal; }

static void count(int counts) {
  if (counts && is_last()) kill(getpid(), SIGKILL);
}

#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)
#define OPEN(name)                                                              \
  int name(const char *path, int flags, ...) {                                  \
    va_list rest;                                                               \
    va_start(rest, flags);                                                      \
    mode_t mode = va_arg(rest, mode_t);                                         \
    va_end(rest);                                                               \
    count(flags & WRITES && inside(path));                                      \
    return REAL(name)(path, flags, mode);                                       \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                            \
  int name(int folder, const char *path, int flags, ...) {                      \
    va_list rest;                                                               \
    va_start(rest, flags);                                                      \
    mode_t mode = va_arg(rest, mode_t);                                         \
    va_end(rest);                                                               \
    count(flags & WRITES && inside_at(folder, path));                           \
    return REAL(name)(folder, path, flags, mode);                               \
  }
OPENAT(openat)
OPENAT(openat64)

FILE *fopen(const char *path, const char *mode) {
  count(mode[0] != 'r' && inside(path));
  return REAL(fopen)(path, mode);
}

FILE *fopen64(const char *path, const char *mode) {
  count(mode[0] != 'r' && inside(path));
  return REAL(fopen64)(path, mode);
}

/* A write that kills leaves half of its bytes. */
ssize_t write(int fd, const void *bytes, size_t size) {
  if (inside_fd(fd) && is_last()) {
    REAL(write)(fd, bytes, size / 2);
    kill(getpid(), SIGKILL);
  }
  return REAL(write)(fd, bytes, size);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
  if (inside_fd(fd) && is_last()) {
    REAL(pwrite64)(fd, bytes, size / 2, offset);
    kill(getpid(), SIGKILL);
  }
  return REAL(pwrite64)(fd, bytes, size, offset);
}

size_t fwrite(const void *bytes, size_t size, size_t number, FILE *file) {
  if (below[0] && file != stdout && file != stderr && inside_fd(fileno(file)) && is_last()) {
    REAL(fwrite)(bytes, size, number / 2, file);
    fflush(file);
    kill(getpid(), SIGKILL);
  }
  return REAL(fwrite)(bytes, size, number, file);
}

int fsync(int fd) { count(inside_fd(fd)); return REAL(fsync)(fd); }
int ftruncate(int fd, off_t size) { count(inside_fd(fd)); return REAL(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { count(inside_fd(fd)); return REAL(ftruncate64)(fd, size); }
int rename(const char *one, const char *two) { count(inside(two)); return REAL(rename)(one, two); }
int unlink(const char *path) { count(inside(path)); return REAL(unlink)(path); }
int rmdir(const char *path) { count(inside(path)); return REAL(rmdir)(path); }
int mkdir(const char *path, mode_t mode) { count(inside(path)); return REAL(mkdir)(path, mode); }

int renameat(int a, const char *one, int b, const char *two) {
  count(inside_at(b, two));
  return REAL(renameat)(a, one, b, two);
}

int unlinkat(int folder, const char *path, int flags) {
  count(inside_at(folder, path));
  return REAL(unlinkat)(folder, path, flags);
}

int mkdirat(int folder, const char *path, mode_t mode) {
  count(inside_at(folder, path));
  return REAL(mkdirat)(folder, path, mode);
}
