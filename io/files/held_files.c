/* Keeps finished files under their temporary names until all files of a run are
 * complete. */
#define _GNU_SOURCE
#include "held_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tess_mem.h"

struct tess_held_file {
    char *temp, *path; /* owned; temp "": another rank names it */
    bool overwrite;
    bool published;
    int fd;     /* -1: synchronised */
    bool keeps; /* its temporary name, when it is not published */
};

tess_status tess_held_add(tess_held_files *held, char temp[TESS_OUT_FILE_NAME],
                          const char *path, bool overwrite, int fd)
{
    tess_status status = TESS_OK;
    struct tess_held_file file = {.temp = tess_strdup(temp),
                                  .path = tess_strdup(path),
                                  .overwrite = overwrite,
                                  .fd = fd};
    if (!file.temp || !file.path ||
        tess_grow((void **)&held->file, &held->capacity, held->num + 1, sizeof file))
        TESS_FAIL(TESS_ERR_ALLOC, "%s: list of files", path);
    held->file[held->num++] = file;
    temp[0] = '\0';
    file = (struct tess_held_file){0};
cleanup:
    tess_free(file.temp);
    tess_free(file.path);
    return status;
}

void tess_held_keep(tess_held_files *held)
{
    held->file[held->num - 1].keeps = true;
}

tess_status tess_held_text(tess_held_files *held, const char *path, const char *text)
{
    tess_status status = TESS_OK;
    char temp[TESS_OUT_FILE_NAME] = "";
    int fd = -1;
    TESS_TRY(tess_out_file_begin(path, held->overwrite, temp, &fd));
    TESS_TRY(tess_out_file_write(fd, path, text, (int64_t)strlen(text), 0));
    TESS_TRY(tess_held_add(held, temp, path, held->overwrite, fd));
    fd = -1;
cleanup:
    if (fd >= 0) close(fd);
    tess_out_file_discard(temp);
    return status;
}

/* A full disk may show only now, and only to who has written. */
static tess_status synchronise(struct tess_held_file *file)
{
    tess_status status = TESS_OK;
    const int fd = file->fd;
    bool failed = fd >= 0 && tess_out_file_sync(fd) != 0;
    int error = errno;
    file->fd = -1;
    if (fd >= 0 && close(fd) != 0 && !failed) {
        failed = true;
        error = errno;
    }
    if (failed)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", file->path,
                  strerror(error));
cleanup:
    return status;
}

static tess_status synchronise_all(tess_held_files *held)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < held->num; ++k)
        TESS_TRY(synchronise(&held->file[k]));
cleanup:
    return status;
}

/* Makes a file what it was before it was published. */
static void take_back(const struct tess_held_file *file)
{
    if (file->keeps)
        rename(file->path, file->temp);
    else
        unlink(file->path);
}

/* Gives all files their names, or none. A file that was replaced is gone all the same:
 * names are checked first, so that only a failing file system comes to that. */
static tess_status publish_all(tess_held_files *held)
{
    tess_status status = TESS_OK;
    int64_t done = 0;
    for (int64_t k = 0; k < held->num; ++k)
        TESS_TRY(tess_out_check_target(held->file[k].path, held->file[k].overwrite));
    for (; done < held->num; ++done) {
        struct tess_held_file *file = &held->file[done];
        TESS_TRY(tess_out_file_publish(file->temp, file->path, file->overwrite));
        file->published = true;
    }
cleanup:
    if (status != TESS_OK)
        for (int64_t k = 0; k < done; ++k)
            take_back(&held->file[k]);
    return status;
}

tess_status tess_held_publish(tess_comm *comm, tess_held_files *held)
{
    tess_status status = TESS_OK;
    const bool root = tess_comm_rank(comm) == 0;
    TESS_TRY(tess_comm_agree(comm, synchronise_all(held)));
    /* No rank names files before all ranks hold signals, because a signal that ends one
     * rank ends all. The rank that names them waits for the others, and a signal still
     * ends it meanwhile. */
    if (!root) tess_out_hold_signals();
    status = tess_comm_agree(comm, TESS_OK);
    if (root) tess_out_hold_signals();
    if (status == TESS_OK)
        status = tess_comm_agree(comm, root ? publish_all(held) : TESS_OK);
    if (status != TESS_OK || !held->last) tess_out_release_signals();
cleanup:
    return status;
}

void tess_held_free(tess_held_files *held)
{
    for (int64_t k = 0; k < held->num; ++k) {
        if (held->file[k].fd >= 0) close(held->file[k].fd);
        if (!held->file[k].published && !held->file[k].keeps)
            tess_out_file_discard(held->file[k].temp);
        tess_free(held->file[k].temp);
        tess_free(held->file[k].path);
    }
    tess_free(held->file);
    *held = (tess_held_files){.overwrite = held->overwrite, .threads = held->threads};
}
