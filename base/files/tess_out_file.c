/* Writes output files under temporary names, and gives them their final names when they
 * are complete. */
#define _GNU_SOURCE
#include "tess_out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "out_name.h"
#include "tess_input.h"

/* Refuses a name that is too long together with what a temporary name has behind it.
 * Numbers of processes differ from rank to rank, so that the longest counts. */
static tess_status check_length(const char *path)
{
    tess_status status = TESS_OK;
    char folder[TESS_OUT_FILE_NAME];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    tess_out_file_folder(path, folder);
    const long told = pathconf(folder, _PC_NAME_MAX);
    const long most = told > 0 ? told : NAME_MAX;
    const long length = (long)strlen(name), spare = OUT_NAME_MOST_ADDED;
    if (length + spare > most)
        TESS_FAIL(
            TESS_ERR_IO,
            "%s: the name of %ld characters is too long: the folder takes %ld, of "
            "which a file that is being written needs %ld; choose a shorter one",
            path, length, most, spare);
cleanup:
    return status;
}

tess_status tess_out_check_target(const char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    char folder[TESS_OUT_FILE_NAME];
    struct stat info, entry;
    if (!path || !path[0] || strlen(path) > TESS_OUT_FILE_NAME - 64)
        TESS_FAIL(TESS_ERR_IO, "output name is empty or too long; choose another");
    if (path[strlen(path) - 1] == '/')
        TESS_FAIL(TESS_ERR_IO, "%s: is a folder; name a file in it", path);
    TESS_TRY(check_length(path));
    if (lstat(path, &entry) == 0) {
        /* a link to nothing belongs to somebody, too */
        const bool found = stat(path, &info) == 0;
        if (found && S_ISDIR(info.st_mode))
            TESS_FAIL(TESS_ERR_IO, "%s: is a folder; choose another name", path);
        if (!overwrite)
            TESS_FAIL(TESS_ERR_IO,
                      "%s: exists already; give --overwrite or another name", path);
        if (found && !S_ISREG(info.st_mode))
            TESS_FAIL(TESS_ERR_IO, "%s: is not a regular file; choose another name",
                      path);
    } else if (errno != ENOENT && errno != ENOTDIR)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    tess_out_file_folder(path, folder);
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        TESS_FAIL(TESS_ERR_IO, "%s: folder %s does not exist; make it first", path,
                  folder);
    if (access(folder, W_OK | X_OK) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: folder %s cannot be written to: %s", path, folder,
                  strerror(errno));
cleanup:
    return status;
}

tess_status tess_out_check_other(const char *path, const char *input)
{
    tess_status status = TESS_OK;
    struct stat a, b;
    if (path && input && stat(path, &a) == 0 && stat(input, &b) == 0 &&
        a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        TESS_FAIL(TESS_ERR_IO, "%s: is read by this run; choose another output name",
                  path);
cleanup:
    return status;
}

/* Whether both lie in one folder under one name; links to one file aside. */
static bool same_entry(const char *path, const char *other)
{
    char folder[2][TESS_OUT_FILE_NAME];
    struct stat a, b;
    const char *name = strrchr(path, '/'), *other_name = strrchr(other, '/');
    if (strcmp(name ? name + 1 : path, other_name ? other_name + 1 : other) != 0)
        return false;
    tess_out_file_folder(path, folder[0]);
    tess_out_file_folder(other, folder[1]);
    return stat(folder[0], &a) == 0 && stat(folder[1], &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

tess_status tess_out_check_distinct(const char *path, const char *other)
{
    tess_status status = TESS_OK;
    if (path && other && same_entry(path, other))
        TESS_FAIL(TESS_ERR_IO,
                  "%s: would be written twice by this run; choose another output name",
                  path);
cleanup:
    return status;
}

/* Create a file or a folder, and open it. Returns −1, with errno, if it exists or
 * cannot be created. */
static int make_entry(const char *temp, bool is_folder)
{
    if (!is_folder)
        return open(temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (mkdir(temp, 0777) != 0) return -1;
    const int made = open(temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made >= 0) return made;
    const int error = errno;
    (void)rmdir(temp);
    errno = error;
    return -1;
}

/* Lock what has just been made. Returns false if another run has taken it for what a
 * killed run has left, and removes it. Not all file systems can lock files. */
static bool lock_made(int made, const char *temp)
{
    struct stat info, there;
    if (flock(made, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    return fstat(made, &info) == 0 && lstat(temp, &there) == 0 &&
           info.st_dev == there.st_dev && info.st_ino == there.st_ino;
}

/* Create the file or the folder under the name `temp`, which is noted. */
static tess_status create_entry(const char *path, bool is_folder,
                                char temp[TESS_OUT_FILE_NAME], int *fd)
{
    tess_status status = TESS_OK;
    int made = -1;
    /* an earlier process of the same number may have left such a file: try the next
     * name */
    for (int attempt = 0; attempt < 100 && made < 0; ++attempt) {
        if (!out_name_make(path, attempt, temp)) {
            temp[0] = '\0';
            TESS_FAIL(TESS_ERR_IO, "%s: name is too long; choose a shorter one", path);
        }
        made = make_entry(temp, is_folder);
        if (made < 0 && errno != EEXIST) break;
        if (made < 0 || lock_made(made, temp)) continue;
        close(made);
        made = -1;
        errno = EEXIST;
    }
    if (made < 0) {
        temp[0] = '\0';
        TESS_FAIL(tess_errno_status(errno), "%s: cannot be created: %s", path,
                  strerror(errno));
    }
    out_name_note(temp, is_folder ? -1 : made);
    *fd = made;
cleanup:
    return status;
}

tess_status tess_out_file_create(const char *path, char temp[TESS_OUT_FILE_NAME],
                                 int *fd)
{
    return create_entry(path, false, temp, fd);
}

tess_status tess_out_file_begin(const char *path, bool overwrite,
                                char temp[TESS_OUT_FILE_NAME], int *fd)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_out_check_target(path, overwrite));
    tess_out_file_remove_left(path);
    TESS_TRY(tess_out_file_create(path, temp, fd));
cleanup:
    return status;
}

tess_status tess_out_folder_lock(const char *path, int *fd)
{
    tess_status status = TESS_OK;
    const int opened = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0)
        TESS_FAIL(tess_errno_status(errno), "%s: cannot be opened: %s", path,
                  strerror(errno));
    if (flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(opened);
        TESS_FAIL(TESS_ERR_IO, "%s: another run is writing it", path);
    }
    *fd = opened;
cleanup:
    return status;
}

tess_status tess_out_folder_create(const char *path, char temp[TESS_OUT_FILE_NAME],
                                   int *fd)
{
    return create_entry(path, true, temp, fd);
}

void tess_out_file_discard(const char *temp)
{
    if (!temp[0]) return;
    unlink(temp);
    tess_out_file_forget(temp);
}

tess_status tess_out_file_reserve(int fd, const char *path, int64_t bytes)
{
    tess_status status = TESS_OK;
    int failed;
    do
        failed = fallocate(fd, 0, 0, bytes);
    while (failed && errno == EINTR);
    if (failed && (errno == EOPNOTSUPP || errno == ENOSYS))
        failed = ftruncate(fd, bytes);
    if (failed)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot reserve %.3g MB on disk: %s", path,
                  1e-6 * (double)bytes, strerror(errno));
cleanup:
    return status;
}

tess_status tess_out_file_write(int fd, const char *path, const void *data,
                                int64_t bytes, int64_t offset)
{
    tess_status status = TESS_OK;
    const char *next = data;
    while (bytes > 0) {
        const size_t part = bytes < INT_MAX / 2 ? (size_t)bytes : INT_MAX / 2;
        const ssize_t done = pwrite(fd, next, part, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path,
                      strerror(done < 0 ? errno : ENOSPC));
        next += done;
        offset += done;
        bytes -= done;
    }
cleanup:
    return status;
}

/* ---- the disk ---- */

/* State of the process, because all of its files are treated alike. */
static bool waits_for_disk = true;

void tess_out_file_set_sync(bool wanted)
{
    waits_for_disk = wanted;
}

void tess_out_file_start(int fd, int64_t offset, int64_t bytes)
{
    if (waits_for_disk) (void)sync_file_range(fd, offset, bytes, SYNC_FILE_RANGE_WRITE);
}

/* Some file systems have no disk to wait for, and return these errors. */
int tess_out_file_sync(int fd)
{
    if (!waits_for_disk || fsync(fd) == 0) return 0;
    return errno == EINVAL || errno == EROFS ? 0 : -1;
}

/* As rename(), but it replaces nothing. Network file systems may not offer this;
 * callers have checked shortly before. */
static int rename_new(const char *temp, const char *path)
{
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return 0;
    return errno == EINVAL || errno == ENOSYS ? rename(temp, path) : -1;
}

/* As rename() over a file that is there. ext4 sends a file to the disk when it takes
 * the name of another one (its mount option auto_da_alloc), and rename() waits for
 * that. It does not when both files exchange their names. Who waits for the disk has
 * done so before, and needs no exchange. */
static int rename_over(const char *temp, const char *path)
{
    if (waits_for_disk ||
        renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_EXCHANGE) != 0)
        return rename(temp, path);
    if (unlink(temp) == 0) return 0;
    const int error = errno; /* a folder came meanwhile */
    (void)renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_EXCHANGE);
    errno = error;
    return -1;
}

/* The entry in the folder reaches the disk only when the folder is synchronised. Where
 * folders cannot be synchronised, the file system does it by itself. */
static void synchronise_folder(const char *path)
{
    char folder[TESS_OUT_FILE_NAME];
    tess_out_file_folder(path, folder);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)tess_out_file_sync(fd);
    close(fd);
}

tess_status tess_out_file_publish(const char *temp, const char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_out_check_target(path, overwrite));
    if ((overwrite ? rename_over(temp, path) : rename_new(temp, path)) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be renamed from %s: %s", path, temp,
                  strerror(errno));
    tess_out_file_forget(temp);
    synchronise_folder(path);
cleanup:
    return status;
}

/* Give the folder the name of another folder, which is then removed. At every moment
 * one of the two has the name, if the file system can exchange names. */
static int replace_folder(const char *temp, const char *path)
{
    char before[TESS_OUT_FILE_NAME];
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
        out_name_remove(AT_FDCWD, temp);
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) return -1;
    if (snprintf(before, sizeof before, "%s.old", temp) >= (int)sizeof before) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (rename_new(path, before) != 0) return -1;
    if (rename(temp, path) != 0) {
        const int error = errno;
        (void)rename(before, path);
        errno = error;
        return -1;
    }
    out_name_remove(AT_FDCWD, before);
    return 0;
}

tess_status tess_out_folder_publish(const char *temp, const char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    struct stat info;
    const bool replaces = overwrite && lstat(path, &info) == 0;
    if ((replaces ? replace_folder(temp, path) : rename_new(temp, path)) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be given its name: %s", path,
                  strerror(errno));
    tess_out_file_forget(temp);
    synchronise_folder(path);
cleanup:
    return status;
}
