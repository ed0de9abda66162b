/* Reads and writes checkpoint files: each rank's file of rows. Finds out when a
 * checkpoint is complete, and which of the last two is sound. */
#define _GNU_SOURCE
#include "tess_checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_names.h"
#include "checkpoint_text.h"
#include "tess_input.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_real.h"

static const char MAGIC[8] = CHECKPOINT_RANK_BEGINS "2";
/* A text is a line for each rank and a character for each plane of each image. */
static const int64_t MOST_TEXT_BYTES = INT64_C(1) << 30;

/* Rows of one kind in a file. */
typedef struct rows_header {
    int64_t row_first, num_rows, nx, value_bytes, num, offset;
} rows_header;

/* The header of a rank's file. */
typedef struct file_header {
    char magic[8];
    int64_t generation, rank;
    rows_header sums, mean;
    int64_t own_offset; /* of what the rank has for itself, up to the end */
} file_header;

/* ---- a rank's file ---- */

static int64_t bytes_of(const tess_checkpoint_rows *rows)
{
    return rows->num_rows * rows->nx * rows->value_bytes;
}

static rows_header header_of(const tess_checkpoint_rows *rows, int64_t offset)
{
    return (rows_header){rows->row_first,   rows->num_rows, rows->nx,
                         rows->value_bytes, rows->num,      offset};
}

/* Appends the rows of one kind. Images are padded to words. */
static tess_status write_rows(int fd, const char *path,
                              const tess_checkpoint_rows *rows,
                              tess_checkpoint_file *entry)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < rows->num; ++k) {
        const int64_t bytes = bytes_of(rows);
        TESS_TRY(tess_out_file_write(fd, path, rows->image[k], bytes, entry->bytes));
        entry->checksum = checkpoint_checksum(entry->checksum, rows->image[k], bytes);
        entry->bytes += (bytes + 7) / 8 * 8;
    }
cleanup:
    return status;
}

static tess_status synchronise(int fd, const char *path)
{
    tess_status status = TESS_OK;
    if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
cleanup:
    return status;
}

/* A mover of data into a rank's file, or from it. */
typedef struct file_mover {
    tess_mover mover;
    int fd;
    char path[TESS_OUT_FILE_NAME];
    int64_t at, end;             /* reading */
    tess_checkpoint_file *entry; /* writing: bytes so far and their checksum */
} file_mover;

static tess_status write_value(tess_mover *mover, void *data, int64_t bytes)
{
    tess_status status = TESS_OK;
    const file_mover *file = (const file_mover *)mover;
    TESS_TRY(
        tess_out_file_write(file->fd, file->path, data, bytes, file->entry->bytes));
    file->entry->checksum = checkpoint_checksum(file->entry->checksum, data, bytes);
    file->entry->bytes += (bytes + 7) / 8 * 8;
cleanup:
    return status;
}

static tess_status write_own(int fd, const char *path, tess_checkpoint_own *own,
                             tess_checkpoint_file *entry)
{
    tess_status status = TESS_OK;
    file_mover file = {
        .mover = {.reads = false, .move = write_value}, .fd = fd, .entry = entry};
    const int64_t before = entry->bytes;
    if (!own) return TESS_OK;
    snprintf(file.path, sizeof file.path, "%s", path);
    TESS_TRY(own->move(own->context, &file.mover));
    own->bytes = entry->bytes - before;
cleanup:
    return status;
}

/* On failure errno says why. */
static tess_status write_file(const char *folder, int64_t generation, int rank,
                              const tess_checkpoint_rows *sums,
                              const tess_checkpoint_rows *mean,
                              tess_checkpoint_own *own, tess_checkpoint_file *entry)
{
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME], temp[TESS_OUT_FILE_NAME] = "";
    int fd = -1;
    const int64_t each = (bytes_of(sums) + 7) / 8 * 8;
    const int64_t each_mean = (bytes_of(mean) + 7) / 8 * 8;
    file_header header = {.generation = generation, .rank = rank};
    memcpy(header.magic, MAGIC, sizeof MAGIC);
    header.sums = header_of(sums, (int64_t)sizeof header);
    header.mean = header_of(mean, (int64_t)sizeof header + sums->num * each);
    header.own_offset = header.mean.offset + mean->num * each_mean;
    *entry = (tess_checkpoint_file){(int64_t)sizeof header,
                                    checkpoint_checksum(0, &header, sizeof header)};
    errno = 0;
    TESS_TRY(checkpoint_rank_path(folder, generation, rank, path));
    TESS_TRY(checkpoint_check_path(path));
    TESS_TRY(tess_out_file_create(path, temp, &fd));
    TESS_TRY(tess_out_file_write(fd, path, &header, sizeof header, 0));
    TESS_TRY(write_rows(fd, path, sums, entry));
    TESS_TRY(write_rows(fd, path, mean, entry));
    TESS_TRY(write_own(fd, path, own, entry));
    if (ftruncate(fd, entry->bytes) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    TESS_TRY(synchronise(fd, path));
    TESS_TRY(tess_out_file_publish(temp, path, true));
    temp[0] = '\0';
cleanup:;
    const int reason = errno;
    if (fd >= 0) close(fd);
    tess_out_file_discard(temp);
    errno = reason;
    return status;
}

/* A file that cannot be read counts as damaged, so that the checkpoint before serves.
 */
static tess_status read_at(int fd, const char *path, void *to, int64_t bytes,
                           int64_t offset)
{
    return tess_input_read(fd, path, to, bytes, offset) == TESS_OK ? TESS_OK
                                                                   : TESS_ERR_INPUT;
}

/* Whether the text tells the rows of one kind, the first of which lie at `at`, as they
 * are written. `*end` is behind them. */
static bool rows_are_sound(const rows_header *rows, int64_t at, int64_t *end)
{
    int64_t last, bytes, all;
    return rows->row_first >= 0 && rows->num_rows >= 0 && rows->nx >= 0 &&
           rows->num >= 0 &&
           (rows->value_bytes == 4 || rows->value_bytes == 8 ||
            (rows->value_bytes == 0 && rows->num == 0)) &&
           !__builtin_add_overflow(rows->row_first, rows->num_rows, &last) &&
           !__builtin_mul_overflow(rows->num_rows, rows->nx, &bytes) &&
           !__builtin_mul_overflow(bytes, rows->value_bytes, &bytes) &&
           bytes <= INT64_MAX - 7 &&
           !__builtin_mul_overflow((bytes + 7) / 8 * 8, rows->num, &all) &&
           rows->offset == at && !__builtin_add_overflow(at, all, end);
}

/* Opens a rank's file, which the text knows, and checks all numbers of its header. */
static tess_status open_rank(const char *folder, const tess_checkpoint_state *state,
                             int64_t rank, char *path, int *fd, file_header *header)
{
    tess_status status = TESS_OK;
    int64_t bytes, mean, own;
    TESS_TRY(checkpoint_rank_path(folder, state->generation, rank, path));
    TESS_TRY(checkpoint_open(path, fd, &bytes));
    if (*fd < 0) TESS_FAIL(TESS_ERR_INPUT, "%s: is not there", path);
    if (bytes < state->file[rank].bytes)
        TESS_FAIL(TESS_ERR_INPUT, "%s: cannot be read: it is cut short", path);
    if (bytes != state->file[rank].bytes || bytes < (int64_t)sizeof *header)
        TESS_FAIL(TESS_ERR_INPUT, "%s: has not the length that was written", path);
    TESS_TRY(read_at(*fd, path, header, sizeof *header, 0));
    if (memcmp(header->magic, MAGIC, sizeof MAGIC) != 0 ||
        header->generation != state->generation || header->rank != rank ||
        !rows_are_sound(&header->sums, (int64_t)sizeof *header, &mean) ||
        !rows_are_sound(&header->mean, mean, &own) || header->own_offset != own ||
        own > bytes)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is damaged (its header is wrong)", path);
cleanup:
    return status;
}

/* Whether a file has the length, the header and the checksum that the text says. */
static tess_status check_file(const char *folder, const tess_checkpoint_state *state,
                              int64_t rank)
{
    enum { PIECE = 1 << 20 };
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME];
    int fd = -1;
    uint64_t sum = 0;
    file_header header;
    const tess_checkpoint_file *file = &state->file[rank];
    void *buffer = tess_alloc(PIECE, 1);
    if (!buffer) TESS_FAIL(TESS_ERR_ALLOC, "buffer to check a checkpoint");
    TESS_TRY(open_rank(folder, state, rank, path, &fd, &header));
    for (int64_t at = 0; at < file->bytes; at += PIECE) {
        const int64_t bytes = file->bytes - at < PIECE ? file->bytes - at : PIECE;
        TESS_TRY(read_at(fd, path, buffer, bytes, at));
        sum = checkpoint_checksum(sum, buffer, bytes);
    }
    if (sum != file->checksum)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is damaged (its checksum is wrong)", path);
cleanup:
    if (fd >= 0) close(fd);
    tess_free(buffer);
    return status;
}

/* ---- the text ---- */

/* Makes a temporary file with a text, complete and on the disk. */
static tess_status prepare_text(const char *folder, checkpoint_age age,
                                const char *text, char temp[TESS_OUT_FILE_NAME])
{
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME];
    int fd = -1;
    TESS_TRY(checkpoint_text_path(folder, age, path));
    TESS_TRY(checkpoint_check_path(path));
    TESS_TRY(tess_out_file_create(path, temp, &fd));
    TESS_TRY(tess_out_file_write(fd, path, text, (int64_t)strlen(text), 0));
    TESS_TRY(synchronise(fd, path));
cleanup:;
    const int reason = errno;
    if (fd >= 0) close(fd);
    errno = reason;
    return status;
}

static tess_status publish_text(const char *folder, checkpoint_age age,
                                char temp[TESS_OUT_FILE_NAME])
{
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME];
    TESS_TRY(checkpoint_text_path(folder, age, path));
    TESS_TRY(tess_out_file_publish(temp, path, true));
    temp[0] = '\0';
cleanup:
    return status;
}

/* Returns the whole text, or NULL if there is none. */
static tess_status load_text(const char *folder, checkpoint_age age, char **text_out)
{
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME], *text = NULL;
    int64_t bytes;
    int fd = -1;
    TESS_TRY(checkpoint_text_path(folder, age, path));
    TESS_TRY(checkpoint_open(path, &fd, &bytes));
    if (fd < 0) goto cleanup;
    if (bytes > MOST_TEXT_BYTES)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is larger than any text of a checkpoint", path);
    text = tess_alloc_zero(bytes + 1, 1);
    if (!text) TESS_FAIL(TESS_ERR_ALLOC, "%s: text of a checkpoint", path);
    TESS_TRY(read_at(fd, path, text, bytes, 0));
    *text_out = text;
    text = NULL;
cleanup:
    if (fd >= 0) close(fd);
    tess_free(text);
    return status;
}

/* Makes the newest text that of the previous checkpoint, too, until there is a newer
 * one. So at every moment each name belongs to a text whose files are complete. If the
 * newest text has gone from the disk, this is no reason to end the run. */
static tess_status keep_text(const char *folder)
{
    tess_status status = TESS_OK;
    char *text = NULL, temp[TESS_OUT_FILE_NAME] = "";
    if (load_text(folder, CHECKPOINT_NEWEST, &text) != TESS_OK) tess_error_clear();
    if (text) {
        TESS_TRY(prepare_text(folder, CHECKPOINT_PREVIOUS, text, temp));
        TESS_TRY(publish_text(folder, CHECKPOINT_PREVIOUS, temp));
    }
cleanup:;
    const int reason = errno;
    tess_out_file_discard(temp);
    tess_free(text);
    errno = reason;
    return status;
}

/* Writes the text of a checkpoint whose files are complete. Both texts are on the disk
 * before either gets its name: if there is no room, both stay what they were. On
 * failure errno says why. */
static tess_status write_text(const char *folder, const tess_checkpoint_state *state)
{
    tess_status status = TESS_OK;
    char *text = checkpoint_text(state), temp[TESS_OUT_FILE_NAME] = "";
    errno = 0;
    if (!text) TESS_FAIL(TESS_ERR_ALLOC, "%s: text of a checkpoint", folder);
    TESS_TRY(prepare_text(folder, CHECKPOINT_NEWEST, text, temp));
    if (state->generation > 1 && !state->from_previous) TESS_TRY(keep_text(folder));
    TESS_TRY(publish_text(folder, CHECKPOINT_NEWEST, temp));
cleanup:;
    const int reason = errno;
    tess_out_file_discard(temp);
    free(text); /* from open_memstream */
    errno = reason;
    return status;
}

/* ---- writing ---- */

/* Outcomes of writing, the worst one last. */
enum { WRITTEN, NO_ROOM, UNWRITABLE, FAILED };

static int64_t outcome_of(tess_status status)
{
    if (status == TESS_OK) return WRITTEN;
    if (status != TESS_ERR_IO) return FAILED;
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? NO_ROOM : UNWRITABLE;
}

/* Returns TESS_ERR_IO on all ranks, with the message of rank `by`. Collective. */
static tess_status share_failure(tess_comm *comm, int64_t by)
{
    tess_status status = TESS_OK;
    char message[512] = "";
    snprintf(message, sizeof message, "%s", tess_error_message());
    TESS_TRY(tess_comm_bcast(comm, message, sizeof message, (int)by));
    tess_error_clear();
    TESS_FAIL(TESS_ERR_IO, "%s", message);
cleanup:
    return status;
}

/* Finds the worst outcome of writing over all ranks. It is TESS_ERR_IO on all ranks if
 * one of them could not write, so all ranks know whether to try again. This is no
 * tess_comm_agree(), because a rank without room must not lose patience with ranks that
 * still write. `own` has set errno. Collective. */
static tess_status settle(tess_comm *comm, tess_status own, int64_t *outcome)
{
    tess_status status = TESS_OK;
    const int64_t mine = outcome_of(own);
    int64_t worst = mine, by;
    TESS_TRY(tess_comm_allreduce_i64(comm, &worst, 1, TESS_MAX));
    *outcome = worst;
    if (worst == WRITTEN) return TESS_OK;
    if (worst == FAILED) return tess_comm_agree(comm, own);
    by = mine == worst ? tess_comm_rank(comm) : tess_comm_size(comm);
    TESS_TRY(tess_comm_allreduce_i64(comm, &by, 1, TESS_MIN));
    TESS_TRY(share_failure(comm, by));
cleanup:
    return status;
}

/* Removes this rank's file of a checkpoint that was given up, because it would only
 * take room. */
static void give_up_file(const char *folder, int64_t generation, int rank)
{
    char path[TESS_OUT_FILE_NAME];
    if (checkpoint_rank_path(folder, generation, rank, path) == TESS_OK) unlink(path);
}

tess_status tess_checkpoint_check_folder(const char *folder)
{
    return checkpoint_check_folder(folder);
}

tess_status tess_checkpoint_write(tess_comm *comm, const char *folder,
                                  tess_checkpoint_state *state,
                                  const tess_checkpoint_rows *sums,
                                  const tess_checkpoint_rows *mean,
                                  tess_checkpoint_own *own, bool *no_room)
{
    tess_status status = TESS_OK, written = TESS_ERR_ALLOC;
    const int rank = tess_comm_rank(comm), size = tess_comm_size(comm);
    int64_t outcome = WRITTEN;
    tess_checkpoint_file file, *all = tess_alloc(size, sizeof *all);
    tess_checkpoint_state next = *state;
    ++next.generation;
    next.num_ranks = size;
    next.file = all;
    if (all)
        written = write_file(folder, next.generation, rank, sums, mean, own, &file);
    TESS_TRY(settle(comm, written, &outcome));
    TESS_TRY(tess_comm_allgather(comm, &file, sizeof file, all));
    TESS_TRY(settle(comm, rank == 0 ? write_text(folder, &next) : TESS_OK, &outcome));
    next.from_previous = false;
    tess_free(state->file);
    *state = next;
    all = NULL;
    if (rank == 0) checkpoint_sweep(folder, next.generation);
cleanup:
    if (outcome != WRITTEN && written == TESS_OK)
        give_up_file(folder, next.generation, rank);
    *no_room = outcome == NO_ROOM;
    tess_free(all);
    return status;
}

void tess_checkpoint_tidy(tess_comm *comm, const char *folder,
                          const tess_checkpoint_state *state)
{
    if (tess_comm_rank(comm) == 0 && state->generation > 0)
        checkpoint_sweep(folder, state->generation);
}

void tess_checkpoint_remove(tess_comm *comm, const char *folder)
{
    if (tess_comm_rank(comm) != 0) return;
    checkpoint_sweep(folder, 0);
    rmdir(folder);
}

/* ---- reading ---- */

static tess_status bcast_text(tess_comm *comm, char **text)
{
    tess_status status = TESS_OK;
    const bool first = tess_comm_rank(comm) == 0;
    int64_t bytes = first && *text ? (int64_t)strlen(*text) + 1 : 0;
    TESS_TRY(tess_comm_bcast(comm, &bytes, sizeof bytes, 0));
    if (bytes == 0) return TESS_OK;
    if (!first) *text = tess_alloc(bytes, 1);
    TESS_TRY(tess_comm_agree(comm, *text ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_bcast(comm, *text, bytes, 0));
cleanup:
    return status;
}

/* Returns the text of one of both checkpoints; NULL if there is none. Rank 0. */
static tess_status take_text(const char *folder, checkpoint_age age, char **text)
{
    tess_status status = TESS_OK;
    char other[TESS_OUT_FILE_NAME];
    TESS_TRY(load_text(folder, age, text));
    if (*text && !checkpoint_text_is_sound(*text))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s/%s: is damaged, or none of this version of tessera", folder,
                  checkpoint_text_names[age]);
    TESS_TRY(checkpoint_text_path(folder, CHECKPOINT_PREVIOUS, other));
    if (!*text && age == CHECKPOINT_NEWEST && access(other, F_OK) == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s/%s: is not there, but %s is", folder,
                  checkpoint_text_names[CHECKPOINT_NEWEST],
                  checkpoint_text_names[CHECKPOINT_PREVIOUS]);
cleanup:
    return status;
}

/* Finds the lowest rank that has found damage; the number of ranks if none has. The
 * caller treats other failures. Ranks do not agree here, because damage need not end
 * the run, and other ranks may take long for their files. Collective. */
static tess_status find_damage(tess_comm *comm, tess_status own, int64_t *by)
{
    *by = own == TESS_ERR_INPUT ? tess_comm_rank(comm) : tess_comm_size(comm);
    return tess_comm_allreduce_i64(comm, by, 1, TESS_MIN);
}

/* Reads one of both checkpoints and checks its files. `*own` is what this rank has
 * found of them, and `*by` is that of find_damage; the state is not to be used then.
 * Collective. */
static tess_status read_one(tess_comm *comm, const char *folder, checkpoint_age age,
                            tess_checkpoint_state *state, tess_status *own, int64_t *by)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(comm), size = tess_comm_size(comm);
    char *text = NULL;
    *own = rank == 0 ? take_text(folder, age, &text) : TESS_OK;
    TESS_TRY(find_damage(comm, *own, by));
    if (*by < size) goto cleanup;
    TESS_TRY(tess_comm_agree(comm, *own));
    TESS_TRY(bcast_text(comm, &text));
    if (text)
        *own = tess_checkpoint_parse(checkpoint_text_names[age], text,
                                     (int64_t)strlen(text), state);
    for (int64_t r = rank; text && *own == TESS_OK && r < state->num_ranks; r += size)
        *own = check_file(folder, state, r);
    TESS_TRY(find_damage(comm, *own, by));
    if (*by == size) TESS_TRY(tess_comm_agree(comm, *own));
cleanup:
    tess_free(text);
    return status;
}

/* Rank 0 tells what rank `by` has found, and that the run goes on. Collective. */
static tess_status warn(tess_comm *comm, int64_t by, int64_t generation)
{
    tess_status status = TESS_OK;
    char message[512] = "";
    snprintf(message, sizeof message, "%s", tess_error_message());
    tess_error_clear();
    TESS_TRY(tess_comm_bcast(comm, message, sizeof message, (int)by));
    if (tess_comm_rank(comm) == 0)
        tess_log_warn("going on from the checkpoint before, number %" PRId64 ": %s",
                      generation, message);
cleanup:
    return status;
}

/* Says what to do about the newest checkpoint when the one before does not serve. */
static tess_status refuse(const char *folder, tess_status newest)
{
    char message[512];
    snprintf(message, sizeof message, "%s", tess_error_message());
    tess_error_clear();
    if (newest == TESS_OK) return TESS_OK;
    return tess_error_record(
        newest, __FILE__, __LINE__, __func__,
        "%s; and %s has no sound checkpoint before it; begin again with --overwrite",
        message, folder);
}

/* Takes the previous checkpoint, because rank `by` has found the newest one damaged, of
 * which this rank knows `newest`. Collective. */
static tess_status read_previous(tess_comm *comm, const char *folder,
                                 tess_status newest, int64_t by,
                                 tess_checkpoint_state *state)
{
    tess_status status = TESS_OK, own;
    int64_t also_by;
    tess_checkpoint_free(state);
    TESS_TRY(read_one(comm, folder, CHECKPOINT_PREVIOUS, state, &own, &also_by));
    if (also_by < tess_comm_size(comm) || state->generation == 0)
        TESS_TRY(tess_comm_agree(comm, refuse(folder, newest)));
    TESS_TRY(warn(comm, by, state->generation));
    state->from_previous = true;
cleanup:
    return status;
}

tess_status tess_checkpoint_read(tess_comm *comm, const char *folder,
                                 tess_checkpoint_state *state)
{
    tess_status status = TESS_OK, own;
    int64_t damaged_by;
    *state = (tess_checkpoint_state){0};
    TESS_TRY(read_one(comm, folder, CHECKPOINT_NEWEST, state, &own, &damaged_by));
    if (damaged_by < tess_comm_size(comm))
        TESS_TRY(read_previous(comm, folder, own, damaged_by, state));
cleanup:
    return status;
}

/* Whether the rows of a file are of images like those that are wanted. */
static bool rows_suit(const rows_header *rows, const tess_checkpoint_rows *wanted)
{
    return rows->num == wanted->num &&
           (rows->num_rows == 0 ||
            (rows->nx == wanted->nx && rows->value_bytes == wanted->value_bytes));
}

/* Adds what one rank has written of the wanted rows of image `k`. */
static tess_status add_rows(const char *folder, const tess_checkpoint_state *state,
                            int64_t rank, bool mean, int64_t k,
                            const tess_checkpoint_rows *wanted, void *to)
{
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME];
    file_header header;
    void *row = NULL;
    int fd = -1;
    const int64_t bytes = wanted->nx * wanted->value_bytes;
    TESS_TRY(open_rank(folder, state, rank, path, &fd, &header));
    const rows_header *rows = mean ? &header.mean : &header.sums;
    if (!rows_suit(rows, wanted))
        TESS_FAIL(TESS_ERR_INPUT, "%s: has rows of other images than this run", path);
    row = tess_alloc(bytes, 1);
    if (!row) TESS_FAIL(TESS_ERR_ALLOC, "row of a checkpoint");
    const int64_t each = (rows->num_rows * bytes + 7) / 8 * 8;
    const int64_t rows_end = rows->row_first + rows->num_rows;
    const int64_t wanted_end = wanted->row_first + wanted->num_rows;
    const int64_t first =
        rows->row_first > wanted->row_first ? rows->row_first : wanted->row_first;
    const int64_t end = rows_end < wanted_end ? rows_end : wanted_end;
    for (int64_t j = first; j < end; ++j) {
        TESS_TRY(read_at(fd, path, row, bytes,
                         rows->offset + k * each + (j - rows->row_first) * bytes));
        tess_add_reals(wanted->value_bytes == 8,
                       (char *)to + (j - wanted->row_first) * bytes, row, wanted->nx);
    }
cleanup:
    if (fd >= 0) close(fd);
    tess_free(row);
    return status;
}

static tess_status add_all(const char *folder, const tess_checkpoint_state *state,
                           bool mean, int64_t k, const tess_checkpoint_rows *wanted,
                           void *to)
{
    tess_status status = TESS_OK;
    for (int64_t r = 0; r < state->num_ranks; ++r)
        TESS_TRY(add_rows(folder, state, r, mean, k, wanted, to));
cleanup:
    return status;
}

tess_status tess_checkpoint_add_sums(const char *folder,
                                     const tess_checkpoint_state *state, int64_t k,
                                     const tess_checkpoint_rows *wanted, void *to)
{
    return add_all(folder, state, false, k, wanted, to);
}

tess_status tess_checkpoint_add_mean(const char *folder,
                                     const tess_checkpoint_state *state, int64_t k,
                                     const tess_checkpoint_rows *wanted, double *to)
{
    return add_all(folder, state, true, k, wanted, to);
}

static tess_status read_value(tess_mover *mover, void *data, int64_t bytes)
{
    tess_status status = TESS_OK;
    file_mover *file = (file_mover *)mover;
    if (bytes > file->end - file->at)
        TESS_FAIL(TESS_ERR_INPUT, "%s: has less than this version of tessera expects",
                  file->path);
    TESS_TRY(read_at(file->fd, file->path, data, bytes, file->at));
    file->at += (bytes + 7) / 8 * 8;
cleanup:
    return status;
}

tess_status tess_checkpoint_open_own(const char *folder,
                                     const tess_checkpoint_state *state, int64_t rank,
                                     tess_mover **mover)
{
    tess_status status = TESS_OK;
    file_header header;
    file_mover *file = tess_alloc_zero(1, sizeof *file);
    *mover = NULL;
    if (!file) TESS_FAIL(TESS_ERR_ALLOC, "state of a checkpoint");
    file->mover = (tess_mover){.reads = true, .move = read_value};
    file->fd = -1;
    TESS_TRY(open_rank(folder, state, rank, file->path, &file->fd, &header));
    file->at = header.own_offset;
    file->end = state->file[rank].bytes;
    if (file->at < file->end) {
        *mover = &file->mover;
        file = NULL;
    }
cleanup:
    if (file) tess_checkpoint_close_own(&file->mover);
    return status;
}

void tess_checkpoint_close_own(tess_mover *mover)
{
    file_mover *file = (file_mover *)mover;
    if (!file) return;
    if (file->fd >= 0) close(file->fd);
    tess_free(file);
}

/* ---- inputs ---- */

bool tess_input_state(const char *path, char *text, int64_t size)
{
    struct stat info;
    if (stat(path, &info) != 0) return false;
    int64_t bytes = (int64_t)info.st_size, seconds = (int64_t)info.st_mtime;
    DIR *list = S_ISDIR(info.st_mode) ? opendir(path) : NULL;
    if (S_ISDIR(info.st_mode)) bytes = seconds = 0;
    for (const struct dirent *entry; list && (entry = readdir(list));) {
        if (strcmp(entry->d_name, "table.lock") == 0 ||
            fstatat(dirfd(list), entry->d_name, &info, 0) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        bytes += (int64_t)info.st_size;
        if ((int64_t)info.st_mtime > seconds) seconds = (int64_t)info.st_mtime;
    }
    if (list) closedir(list);
    snprintf(text, (size_t)size, "%" PRId64 " bytes, changed at %" PRId64, bytes,
             seconds);
    return true;
}
