/* Makes the names of a checkpoint's files, and finds out whose a file of such a name
 * is. A file is tessera's when it has a name that tessera gives and begins as tessera's
 * files do. All others stay as they are. */
#define _GNU_SOURCE
#include "checkpoint_names.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tess_out_file.h"

const char *const checkpoint_text_names[2] = {"checkpoint", "checkpoint.previous"};

tess_status checkpoint_rank_path(const char *folder, int64_t generation, int64_t rank,
                                 char *path)
{
    tess_status status = TESS_OK;
    const int length =
        snprintf(path, TESS_OUT_FILE_NAME, "%s/checkpoint-%" PRId64 "-%" PRId64, folder,
                 generation, rank);
    if (length < 0 || length >= TESS_OUT_FILE_NAME)
        TESS_FAIL(TESS_ERR_IO, "%s: name is too long; choose a shorter one", folder);
cleanup:
    return status;
}

tess_status checkpoint_text_path(const char *folder, checkpoint_age age, char *path)
{
    tess_status status = TESS_OK;
    const int length =
        snprintf(path, TESS_OUT_FILE_NAME, "%s/%s", folder, checkpoint_text_names[age]);
    if (length < 0 || length >= TESS_OUT_FILE_NAME)
        TESS_FAIL(TESS_ERR_IO, "%s: name is too long; choose a shorter one", folder);
cleanup:
    return status;
}

/* ---- names ---- */

typedef enum file_kind { FOREIGN, TEXT, RANK } file_kind;

/* The parts of a file's name. */
typedef struct file_name {
    file_kind kind;
    checkpoint_age age; /* of a text */
    int64_t generation; /* of a rank's file */
    bool temporary;     /* it was never completed */
} file_name;

/* Reads a number as printf writes it, of at most 18 digits. Returns what is behind it,
 * or NULL. */
static const char *after_number(const char *at, int64_t *number)
{
    const char *begin = at;
    *number = 0;
    for (; isdigit((unsigned char)*at) && at - begin < 18; ++at)
        *number = 10 * *number + (*at - '0');
    const bool padded = *begin == '0' && at - begin > 1;
    return at == begin || padded || isdigit((unsigned char)*at) ? NULL : at;
}

/* Returns what is behind "checkpoint". */
static const char *parse_end(const char *at, file_name *name)
{
    static const char previous[] = ".previous";
    int64_t rank;
    if (*at == '-') {
        name->kind = RANK;
        at = after_number(at + 1, &name->generation);
        return at && *at == '-' ? after_number(at + 1, &rank) : NULL;
    }
    name->kind = TEXT;
    name->age = CHECKPOINT_NEWEST;
    if (strncmp(at, previous, strlen(previous)) != 0) return at;
    name->age = CHECKPOINT_PREVIOUS;
    return at + strlen(previous);
}

static file_name parse_name(const char *text)
{
    static const char begin[] = "checkpoint";
    const file_name foreign = {.kind = FOREIGN};
    file_name name = foreign;
    if (strncmp(text, begin, strlen(begin)) != 0) return foreign;
    const char *rest = parse_end(text + strlen(begin), &name);
    if (!rest) return foreign;
    if (!*rest) return name;
    name.temporary = true;
    return tess_out_file_is_temporary(rest) ? name : foreign;
}

/* ---- contents ---- */

/* Whether a file begins as tessera's files of this name do. A temporary file may have
 * been left before its first byte, or in the middle of them. */
static bool begins_as_ours(int fd, const file_name *name)
{
    const char *wanted =
        name->kind == RANK ? CHECKPOINT_RANK_BEGINS : CHECKPOINT_TEXT_BEGINS;
    char found[sizeof CHECKPOINT_TEXT_BEGINS];
    ssize_t bytes;
    do
        bytes = pread(fd, found, strlen(wanted), 0);
    while (bytes < 0 && errno == EINTR);
    if (bytes < 0 || (!name->temporary && bytes < (ssize_t)strlen(wanted)))
        return false;
    return memcmp(found, wanted, (size_t)bytes) == 0;
}

/* Opens a file, but never through a link, and without waiting for the other end of a
 * pipe. */
static int open_file(int folder, const char *path, struct stat *info)
{
    const int fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -1;
    if (fstat(fd, info) == 0 && S_ISREG(info->st_mode)) return fd;
    close(fd);
    errno = ELOOP; /* as for a link */
    return -1;
}

static bool is_ours(int folder, const char *path, const file_name *name)
{
    struct stat info;
    const int fd = open_file(folder, path, &info);
    if (fd < 0) return false;
    const bool ours = begins_as_ours(fd, name);
    close(fd);
    return ours;
}

tess_status checkpoint_open(const char *path, int *fd, int64_t *bytes)
{
    tess_status status = TESS_OK;
    struct stat info;
    *fd = open_file(AT_FDCWD, path, &info);
    if (*fd >= 0)
        *bytes = (int64_t)info.st_size;
    else if (errno == ELOOP)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is not a regular file; tessera did not make it",
                  path);
    else if (errno != ENOENT && errno != ENOTDIR)
        TESS_FAIL(TESS_ERR_INPUT, "%s: cannot be read: %s", path, strerror(errno));
cleanup:
    return status;
}

/* ---- a folder ---- */

static tess_status check_file(int folder, const char *path, const file_name *name,
                              const char *shown)
{
    tess_status status = TESS_OK;
    struct stat info;
    if (fstatat(folder, path, &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        return TESS_OK;
    if (!is_ours(folder, path, name))
        TESS_FAIL(
            TESS_ERR_IO,
            "%s: is no checkpoint file of tessera, which needs this name; move it "
            "away, or choose another folder",
            shown);
cleanup:
    return status;
}

tess_status checkpoint_check_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    const file_name name = parse_name(slash ? slash + 1 : path);
    return check_file(AT_FDCWD, path, &name, path);
}

tess_status checkpoint_check_folder(const char *folder)
{
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME];
    DIR *list = opendir(folder);
    if (!list)
        TESS_FAIL(TESS_ERR_IO, "%s: folder of checkpoints cannot be read: %s", folder,
                  strerror(errno));
    for (const struct dirent *entry; (entry = readdir(list));) {
        const file_name name = parse_name(entry->d_name);
        if (name.kind == FOREIGN || name.temporary) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        TESS_TRY(check_file(dirfd(list), entry->d_name, &name, path));
    }
cleanup:
    if (list) closedir(list);
    return status;
}

static bool is_kept(const file_name *name, int64_t newest)
{
    if (name->temporary) return false;
    if (name->kind == TEXT)
        return name->age == CHECKPOINT_NEWEST ? newest > 0 : newest > 1;
    return name->generation > 0 &&
           (name->generation == newest || name->generation == newest - 1);
}

/* Returns the turn in which a file is removed. Texts go first, because the rest is
 * nothing without them, and the newest text is the last of both. */
static int turn_of(const file_name *name)
{
    if (name->kind == RANK) return 2;
    return name->age == CHECKPOINT_NEWEST ? 1 : 0;
}

void checkpoint_sweep(const char *folder, int64_t newest)
{
    DIR *list = opendir(folder);
    if (!list) return;
    for (int turn = 0; turn < 3; ++turn, rewinddir(list))
        for (const struct dirent *entry; (entry = readdir(list));) {
            const file_name name = parse_name(entry->d_name);
            if (name.kind != FOREIGN && turn_of(&name) == turn &&
                !is_kept(&name, newest) && is_ours(dirfd(list), entry->d_name, &name))
                unlinkat(dirfd(list), entry->d_name, 0);
        }
    closedir(list);
}
