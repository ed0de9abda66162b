/* Names of unfinished files: PATH.tessera-HOST-PROCESS-N.tmp. HOST is a hash of the
 * host's name, because numbers of processes mean something on one host only. The names
 * show which files a killed run has left. */
#define _GNU_SOURCE
#include "out_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tess_hash.h"
#include "tess_log.h"
#include "tess_out_file.h"

static const char FORMAT[] = "%s.tessera-%08" PRIx32 "-%ld-%d.tmp";

void tess_out_file_folder(const char *path, char folder[TESS_OUT_FILE_NAME])
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(folder, TESS_OUT_FILE_NAME, ".");
    else if (slash == path)
        snprintf(folder, TESS_OUT_FILE_NAME, "/");
    else
        snprintf(folder, TESS_OUT_FILE_NAME, "%.*s", (int)(slash - path), path);
}

static uint32_t own_host(void)
{
    char name[256] = "";
    if (gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
    return (uint32_t)tess_hash(TESS_HASH_START, name, strlen(name));
}

static bool name_fits(int length)
{
    return length >= 0 && length < TESS_OUT_FILE_NAME;
}

bool out_name_make(const char *path, int attempt, char *temp)
{
    return name_fits(snprintf(temp, TESS_OUT_FILE_NAME, FORMAT, path, own_host(),
                              (long)getpid(), attempt));
}

/* Read the host and the process from what stands in a name behind the final name. It
 * must be written exactly as out_name_make writes it: numbers have no other spelling,
 * and nothing follows. */
static bool parse_end(const char *end, uint32_t *host, long *process)
{
    char same[TESS_OUT_FILE_NAME];
    int attempt;
    return sscanf(end, ".tessera-%" SCNx32 "-%ld-%d.tmp", host, process, &attempt) ==
               3 &&
           *process > 0 && attempt >= 0 &&
           name_fits(
               snprintf(same, sizeof same, FORMAT, "", *host, *process, attempt)) &&
           strcmp(same, end) == 0;
}

bool tess_out_file_is_temporary(const char *end)
{
    uint32_t host;
    long process;
    return parse_end(end, &host, &process);
}

/* The process of this host that has given the name of an unfinished file of `base`; 0
 * if it is no such name. */
static pid_t maker_of(const char *name, const char *base)
{
    uint32_t host;
    long process;
    const size_t length = strlen(base);
    return strncmp(name, base, length) == 0 &&
                   parse_end(name + length, &host, &process) && host == own_host()
               ? (pid_t)process
               : 0;
}

/* Open a file or a folder for locking. Network file systems lock only what is open for
 * writing, and folders cannot be. */
static int open_entry(int folder, const char *name)
{
    const int how = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int fd = openat(folder, name, O_RDWR | how);
    return fd >= 0 ? fd : openat(folder, name, O_RDONLY | how);
}

/* Whether nobody makes the file any more. Its maker has locked it. Numbers of
 * processes do not show that it runs: another process may have got the number, also
 * this one in a container, and a process that has ended may still have it. If files
 * cannot be locked there, only the number is left to decide. */
static bool is_unlocked(int fd, pid_t maker)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno == EWOULDBLOCK) return false;
    return maker != getpid() && kill(maker, 0) != 0 && errno == ESRCH;
}

/* Open the file if it was made by this user, and by no process that still runs. Returns
 * −1 otherwise. Its lock is held as long as it is open, so that nobody begins to use
 * it. */
static int open_left(int folder, const char *name, pid_t maker)
{
    struct stat info;
    if (out_name_is_noted(name)) return -1;
    const int fd = open_entry(folder, name);
    if (fd < 0) return -1;
    if (fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
        (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) && is_unlocked(fd, maker))
        return fd;
    close(fd);
    return -1;
}

void tess_out_file_remove_left(const char *path)
{
    char folder[TESS_OUT_FILE_NAME];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    tess_out_file_folder(path, folder);
    DIR *list = opendir(folder);
    if (!list) return;
    for (const struct dirent *entry; (entry = readdir(list));) {
        const pid_t maker = maker_of(entry->d_name, base);
        const int fd = maker ? open_left(dirfd(list), entry->d_name, maker) : -1;
        if (fd < 0) continue;
        tess_log_info("%s/%s: removed; a run that was killed had left it", folder,
                      entry->d_name);
        out_name_remove(dirfd(list), entry->d_name);
        close(fd);
    }
    closedir(list);
}
