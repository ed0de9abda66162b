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

#include "tess_add.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"

static const char MAGIC[8] = "tessckp2";
static const char FIRST_LINE[] = "tessera checkpoint 2\n";

/* Rows of one kind in a file. */
typedef struct rows_header {
    int64_t row_first, num_rows, nx, value_bytes, num, offset;
} rows_header;

/* In front of a rank's file. */
typedef struct file_header {
    char magic[8];
    int64_t generation, rank;
    rows_header sums, mean;
    int64_t own_offset; /* of what the rank has for itself, up to the end */
} file_header;

/* What the text says of a rank's file. */
typedef struct file_entry {
    int64_t bytes;
    uint64_t checksum;
} file_entry;

/* ---- names ---- */

static tess_status name_of(const char *folder, int64_t generation, int64_t rank,
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

/* Texts of the newest checkpoint and of the one before. */
typedef enum text_age { NEWEST, PREVIOUS } text_age;

static const char *const text_names[] = {"checkpoint", "checkpoint.previous"};

static tess_status text_name_of(const char *folder, text_age age, char *path)
{
    tess_status status = TESS_OK;
    const int length =
        snprintf(path, TESS_OUT_FILE_NAME, "%s/%s", folder, text_names[age]);
    if (length < 0 || length >= TESS_OUT_FILE_NAME)
        TESS_FAIL(TESS_ERR_IO, "%s: name is too long; choose a shorter one", folder);
cleanup:
    return status;
}

/* Whether it is the name of a rank's file of this generation. */
static bool is_of_generation(const char *name, int64_t generation)
{
    char start[64];
    const int length =
        snprintf(start, sizeof start, "checkpoint-%" PRId64 "-", generation);
    return strncmp(name, start, (size_t)length) == 0 &&
           strspn(name + length, "0123456789") == strlen(name + length);
}

/* Remove files that belong to no checkpoint, but those of generation `newest` and of
 * the one before (newest 0: all, and the texts too). Also what killed runs have left.
 */
static void sweep(const char *folder, int64_t newest)
{
    DIR *list = opendir(folder);
    if (!list) return;
    for (const struct dirent *entry; (entry = readdir(list));) {
        const char *name = entry->d_name;
        const bool ours = strncmp(name, "checkpoint", 10) == 0 &&
                          (name[10] == '\0' || name[10] == '-' || name[10] == '.');
        const bool kept = (newest > 0 && strcmp(name, text_names[NEWEST]) == 0) ||
                          (newest > 1 && strcmp(name, text_names[PREVIOUS]) == 0) ||
                          (newest > 0 && is_of_generation(name, newest)) ||
                          (newest > 1 && is_of_generation(name, newest - 1));
        if (ours && !kept) unlinkat(dirfd(list), name, 0);
    }
    closedir(list);
}

/* ---- checksums: of 8-byte words, by multiplication ---- */

static uint64_t mix(uint64_t sum, const void *data, int64_t bytes)
{
    const char *at = data;
    for (; bytes > 0; at += 8, bytes -= 8) {
        uint64_t word = 0;
        memcpy(&word, at, bytes < 8 ? (size_t)bytes : 8);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    return sum;
}

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

/* Append the rows of one kind; images are padded to words. */
static tess_status write_rows(int fd, const char *path,
                              const tess_checkpoint_rows *rows, file_entry *entry)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < rows->num; ++k) {
        const int64_t bytes = bytes_of(rows);
        TESS_TRY(tess_out_file_write(fd, path, rows->image[k], bytes, entry->bytes));
        entry->checksum = mix(entry->checksum, rows->image[k], bytes);
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

/* Into a rank's file, or from it. */
typedef struct file_mover {
    tess_mover mover;
    int fd;
    char path[TESS_OUT_FILE_NAME];
    int64_t at, end;   /* reading */
    file_entry *entry; /* writing: bytes so far and their checksum */
} file_mover;

static tess_status write_value(tess_mover *mover, void *data, int64_t bytes)
{
    tess_status status = TESS_OK;
    const file_mover *file = (const file_mover *)mover;
    TESS_TRY(
        tess_out_file_write(file->fd, file->path, data, bytes, file->entry->bytes));
    file->entry->checksum = mix(file->entry->checksum, data, bytes);
    file->entry->bytes += (bytes + 7) / 8 * 8;
cleanup:
    return status;
}

static tess_status write_own(int fd, const char *path, tess_checkpoint_own *own,
                             file_entry *entry)
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

static tess_status write_file(const char *folder, int64_t generation, int rank,
                              const tess_checkpoint_rows *sums,
                              const tess_checkpoint_rows *mean,
                              tess_checkpoint_own *own, file_entry *entry)
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
    *entry = (file_entry){(int64_t)sizeof header, mix(0, &header, sizeof header)};
    TESS_TRY(name_of(folder, generation, rank, path));
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
cleanup:
    if (fd >= 0) close(fd);
    tess_out_file_discard(temp);
    return status;
}

static tess_status read_at(int fd, const char *path, void *to, int64_t bytes,
                           int64_t offset)
{
    tess_status status = TESS_OK;
    for (char *at = to; bytes > 0;) {
        const ssize_t done = pread(fd, at, (size_t)bytes, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            TESS_FAIL(TESS_ERR_INPUT, "%s: cannot be read: %s", path,
                      done < 0 ? strerror(errno) : "it is cut short");
        at += done;
        offset += done;
        bytes -= done;
    }
cleanup:
    return status;
}

/* Whether a file is as long, and has the checksum, that the text says. */
static tess_status check_file(const char *folder, int64_t generation, int64_t rank,
                              const file_entry *entry)
{
    enum { PIECE = 1 << 20 };
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME];
    int fd = -1;
    uint64_t sum = 0;
    void *buffer = tess_alloc(PIECE, 1);
    if (!buffer) TESS_FAIL(TESS_ERR_ALLOC, "buffer to check a checkpoint");
    TESS_TRY(name_of(folder, generation, rank, path));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: cannot be read: %s", path, strerror(errno));
    for (int64_t at = 0; at < entry->bytes; at += PIECE) {
        const int64_t bytes = entry->bytes - at < PIECE ? entry->bytes - at : PIECE;
        TESS_TRY(read_at(fd, path, buffer, bytes, at));
        sum = mix(sum, buffer, bytes);
    }
    if (sum != entry->checksum)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is damaged (its checksum is wrong)", path);
cleanup:
    if (fd >= 0) close(fd);
    tess_free(buffer);
    return status;
}

/* ---- the text ---- */

/* Text of the state with the files' entries and, at its end, a checksum of it all. */
static char *text_of(const tess_checkpoint_state *state, const file_entry *entry)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    fputs(FIRST_LINE, out);
    fprintf(out,
            "generation %" PRId64 "\nranks %" PRId64 "\noutputs_done %" PRId64 "\n",
            state->generation, state->num_ranks, state->outputs_done);
    fprintf(out, "means %" PRId64, state->num_mean);
    for (int64_t k = 0; k < state->num_mean; ++k)
        fprintf(out, " %a", state->mean_weight[k]);
    fprintf(out, "\ndone %" PRId64 " %.*s\n", state->num_done, (int)state->num_done,
            state->num_done > 0 ? state->done : "");
    fprintf(out, "plan %s\n", state->plan ? state->plan : "");
    for (int64_t r = 0; r < state->num_ranks; ++r)
        fprintf(out, "file %" PRId64 " %016" PRIx64 "\n", entry[r].bytes,
                entry[r].checksum);
    fprintf(out, "identity %zu\n%s\n", strlen(state->identity), state->identity);
    fflush(out);
    fprintf(out, "checksum %016" PRIx64 "\n", mix(0, text, (int64_t)strlen(text)));
    const bool bad = ferror(out) != 0;
    if (fclose(out) == 0 && !bad) return text;
    free(text); /* from open_memstream */
    return NULL;
}

static tess_status publish_text(const char *folder, text_age age, const char *text)
{
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME], temp[TESS_OUT_FILE_NAME] = "";
    int fd = -1;
    TESS_TRY(text_name_of(folder, age, path));
    TESS_TRY(tess_out_file_create(path, temp, &fd));
    TESS_TRY(tess_out_file_write(fd, path, text, (int64_t)strlen(text), 0));
    TESS_TRY(synchronise(fd, path));
    TESS_TRY(tess_out_file_publish(temp, path, true));
    temp[0] = '\0';
cleanup:
    if (fd >= 0) close(fd);
    tess_out_file_discard(temp);
    return status;
}

/* The whole text, or NULL when there is none. */
static tess_status load_text(const char *folder, text_age age, char **text_out)
{
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME], *text = NULL;
    struct stat info;
    int fd = -1;
    TESS_TRY(text_name_of(folder, age, path));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return TESS_OK;
    if (fd < 0 || fstat(fd, &info) != 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: cannot be read: %s", path, strerror(errno));
    text = tess_alloc_zero((int64_t)info.st_size + 1, 1);
    if (!text) TESS_FAIL(TESS_ERR_ALLOC, "%s: text of a checkpoint", path);
    TESS_TRY(read_at(fd, path, text, (int64_t)info.st_size, 0));
    *text_out = text;
    text = NULL;
cleanup:
    if (fd >= 0) close(fd);
    tess_free(text);
    return status;
}

/* Let the newest text be that of the previous checkpoint too, until there is a newer
 * one: at every moment each names files that are complete. One that has gone from the
 * disk is no reason to end the run. */
static tess_status keep_text(const char *folder)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    if (load_text(folder, NEWEST, &text) != TESS_OK) tess_error_clear();
    if (text) TESS_TRY(publish_text(folder, PREVIOUS, text));
cleanup:
    tess_free(text);
    return status;
}

/* The text of a checkpoint whose files are complete. */
static tess_status write_text(const char *folder, const tess_checkpoint_state *state,
                              const file_entry *entry)
{
    tess_status status = TESS_OK;
    char *text = text_of(state, entry);
    if (!text) TESS_FAIL(TESS_ERR_ALLOC, "%s: text of a checkpoint", folder);
    if (state->generation > 1 && !state->from_previous) TESS_TRY(keep_text(folder));
    TESS_TRY(publish_text(folder, NEWEST, text));
cleanup:
    free(text); /* from open_memstream */
    return status;
}

/* Take numbers and words from the text's lines, which the checksum has vouched for. */
static tess_status parse_text(const char *text, tess_checkpoint_state *state,
                              file_entry **entry)
{
    tess_status status = TESS_OK;
    int used = 0;
    size_t length = 0;
    const char *at = text + strlen(FIRST_LINE), *end;
    if (sscanf(at,
               "generation %" SCNd64 " ranks %" SCNd64 " outputs_done %" SCNd64
               " means %" SCNd64 "%n",
               &state->generation, &state->num_ranks, &state->outputs_done,
               &state->num_mean, &used) != 4 ||
        state->num_mean < 0 || state->num_mean > TESS_CHECKPOINT_MEANS ||
        state->num_ranks < 1)
        TESS_FAIL(TESS_ERR_INPUT, "text of the checkpoint: numbers");
    at += used;
    for (int64_t k = 0; k < state->num_mean; ++k, at += used)
        if (sscanf(at, "%la%n", &state->mean_weight[k], &used) != 1)
            TESS_FAIL(TESS_ERR_INPUT, "text of the checkpoint: weights");
    if (sscanf(at, " done %" SCNd64 "%n", &state->num_done, &used) != 1 ||
        state->num_done < 0 || (size_t)state->num_done >= strlen(at))
        TESS_FAIL(TESS_ERR_INPUT, "text of the checkpoint: planes");
    at += used + 1;
    state->done = tess_alloc_zero(state->num_done + 1, 1);
    *entry = tess_alloc(state->num_ranks, sizeof **entry);
    if (!state->done || !*entry) TESS_FAIL(TESS_ERR_ALLOC, "state of a checkpoint");
    memcpy(state->done, at, (size_t)state->num_done);
    at += state->num_done + (int64_t)strlen("\nplan ");
    end = strchr(at, '\n');
    if (!end) TESS_FAIL(TESS_ERR_INPUT, "text of the checkpoint: plan");
    state->plan = tess_alloc_zero(end - at + 1, 1);
    if (!state->plan) TESS_FAIL(TESS_ERR_ALLOC, "state of a checkpoint");
    memcpy(state->plan, at, (size_t)(end - at));
    at = end + 1;
    for (int64_t r = 0; r < state->num_ranks; ++r, at += used)
        if (sscanf(at, "file %" SCNd64 " %" SCNx64 "\n%n", &(*entry)[r].bytes,
                   &(*entry)[r].checksum, &used) != 2)
            TESS_FAIL(TESS_ERR_INPUT, "text of the checkpoint: files");
    if (sscanf(at, "identity %zu%n", &length, &used) != 1 || length > strlen(at))
        TESS_FAIL(TESS_ERR_INPUT, "text of the checkpoint: identity");
    state->identity = tess_alloc_zero((int64_t)length + 1, 1);
    if (!state->identity) TESS_FAIL(TESS_ERR_ALLOC, "state of a checkpoint");
    memcpy(state->identity, at + used + 1, length);
cleanup:
    return status;
}

/* Whether it is a checkpoint's text and complete. */
static tess_status check_text(const char *folder, text_age age, const char *text)
{
    tess_status status = TESS_OK;
    uint64_t wanted = 0;
    const char *last = NULL;
    for (const char *k = text; (k = strstr(k, "\nchecksum ")); ++k)
        last = k + 1;
    if (strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) != 0 || !last ||
        sscanf(last, "checksum %" SCNx64, &wanted) != 1 ||
        mix(0, text, last - text) != wanted)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s/%s: is damaged, or none of this version of tessera", folder,
                  text_names[age]);
cleanup:
    return status;
}

/* ---- writing ---- */

tess_status tess_checkpoint_write(tess_comm *comm, const char *folder,
                                  tess_checkpoint_state *state,
                                  const tess_checkpoint_rows *sums,
                                  const tess_checkpoint_rows *mean,
                                  tess_checkpoint_own *own)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(comm), size = tess_comm_size(comm);
    file_entry entry, *all = tess_alloc(size, sizeof *all);
    tess_checkpoint_state next = *state;
    ++next.generation;
    next.num_ranks = size;
    status = all ? TESS_OK : TESS_ERR_ALLOC;
    if (status == TESS_OK)
        status = write_file(folder, next.generation, rank, sums, mean, own, &entry);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_allgather(comm, &entry, sizeof entry, all));
    if (rank == 0) status = write_text(folder, &next, all);
    TESS_TRY(tess_comm_agree(comm, status));
    next.from_previous = false;
    *state = next;
    if (rank == 0) sweep(folder, next.generation);
cleanup:
    tess_free(all);
    return status;
}

void tess_checkpoint_remove(tess_comm *comm, const char *folder)
{
    char path[TESS_OUT_FILE_NAME];
    if (tess_comm_rank(comm) != 0) return;
    /* the texts first: without them the rest is nothing */
    if (text_name_of(folder, PREVIOUS, path) == TESS_OK) unlink(path);
    if (text_name_of(folder, NEWEST, path) == TESS_OK) unlink(path);
    sweep(folder, 0);
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

/* The text of one of both checkpoints, NULL when there is none. Rank 0. */
static tess_status take_text(const char *folder, text_age age, char **text)
{
    tess_status status = TESS_OK;
    char other[TESS_OUT_FILE_NAME];
    TESS_TRY(load_text(folder, age, text));
    if (*text) TESS_TRY(check_text(folder, age, *text));
    TESS_TRY(text_name_of(folder, PREVIOUS, other));
    if (!*text && age == NEWEST && access(other, F_OK) == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s/%s: is not there, but %s is", folder,
                  text_names[NEWEST], text_names[PREVIOUS]);
cleanup:
    return status;
}

/* The lowest rank that has found damage, the number of ranks when none has. Other
 * failures are the caller's. No agreement: damage need not end the run, and other ranks
 * may take long for their files. Collective. */
static tess_status find_damage(tess_comm *comm, tess_status own, int64_t *by)
{
    *by = own == TESS_ERR_INPUT ? tess_comm_rank(comm) : tess_comm_size(comm);
    return tess_comm_allreduce_i64(comm, by, 1, TESS_MIN);
}

/* Read one of both checkpoints and check its files. `*own` is what this rank has found
 * of them, and `*by` as find_damage; then the state is not to be used. Collective. */
static tess_status read_one(tess_comm *comm, const char *folder, text_age age,
                            tess_checkpoint_state *state, tess_status *own, int64_t *by)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(comm), size = tess_comm_size(comm);
    char *text = NULL;
    file_entry *entry = NULL;
    *own = rank == 0 ? take_text(folder, age, &text) : TESS_OK;
    TESS_TRY(find_damage(comm, *own, by));
    if (*by < size) goto cleanup;
    TESS_TRY(tess_comm_agree(comm, *own));
    TESS_TRY(bcast_text(comm, &text));
    if (text) *own = parse_text(text, state, &entry);
    for (int64_t r = rank; text && *own == TESS_OK && r < state->num_ranks; r += size)
        *own = check_file(folder, state->generation, r, &entry[r]);
    TESS_TRY(find_damage(comm, *own, by));
    if (*by == size) TESS_TRY(tess_comm_agree(comm, *own));
cleanup:
    tess_free(text);
    tess_free(entry);
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

/* Say what to do about the newest checkpoint when the one before does not serve. */
static tess_status refuse(const char *folder, tess_status newest)
{
    char message[512];
    snprintf(message, sizeof message, "%s", tess_error_message());
    tess_error_clear();
    if (newest == TESS_OK) return TESS_OK;
    return tess_error_record(
        newest, __FILE__, __LINE__, __func__,
        "%s; and there is no sound checkpoint before it; remove %s and start again",
        message, folder);
}

/* The previous checkpoint, as rank `by` has found the newest damaged, of which this
 * rank knows `newest`. Collective. */
static tess_status read_previous(tess_comm *comm, const char *folder,
                                 tess_status newest, int64_t by,
                                 tess_checkpoint_state *state)
{
    tess_status status = TESS_OK, own;
    int64_t also_by;
    tess_checkpoint_free(state);
    TESS_TRY(read_one(comm, folder, PREVIOUS, state, &own, &also_by));
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
    TESS_TRY(read_one(comm, folder, NEWEST, state, &own, &damaged_by));
    if (damaged_by < tess_comm_size(comm))
        TESS_TRY(read_previous(comm, folder, own, damaged_by, state));
cleanup:
    return status;
}

/* Add what one rank has written of these rows. */
static tess_status add_rows(const char *path, bool mean, int64_t k, int64_t row_first,
                            int64_t num_rows, void *to)
{
    tess_status status = TESS_OK;
    file_header header;
    void *row = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: cannot be read: %s", path, strerror(errno));
    TESS_TRY(read_at(fd, path, &header, sizeof header, 0));
    const rows_header *rows = mean ? &header.mean : &header.sums;
    const int64_t bytes = rows->nx * rows->value_bytes;
    const int64_t each = (rows->num_rows * bytes + 7) / 8 * 8;
    row = tess_alloc(bytes, 1);
    if (!row) TESS_FAIL(TESS_ERR_ALLOC, "row of a checkpoint");
    for (int64_t j = 0; k < rows->num && j < rows->num_rows; ++j) {
        const int64_t place = rows->row_first + j - row_first;
        if (place < 0 || place >= num_rows) continue;
        TESS_TRY(read_at(fd, path, row, bytes, rows->offset + k * each + j * bytes));
        tess_add_reals(rows->value_bytes == 8, (char *)to + place * bytes, row,
                       rows->nx);
    }
cleanup:
    if (fd >= 0) close(fd);
    tess_free(row);
    return status;
}

static tess_status add_all(const char *folder, const tess_checkpoint_state *state,
                           bool mean, int64_t k, int64_t row_first, int64_t num_rows,
                           void *to)
{
    tess_status status = TESS_OK;
    char path[TESS_OUT_FILE_NAME];
    for (int64_t r = 0; r < state->num_ranks; ++r) {
        TESS_TRY(name_of(folder, state->generation, r, path));
        TESS_TRY(add_rows(path, mean, k, row_first, num_rows, to));
    }
cleanup:
    return status;
}

tess_status tess_checkpoint_add_sums(const char *folder,
                                     const tess_checkpoint_state *state, int64_t k,
                                     int64_t row_first, int64_t num_rows, void *to)
{
    return add_all(folder, state, false, k, row_first, num_rows, to);
}

tess_status tess_checkpoint_add_mean(const char *folder,
                                     const tess_checkpoint_state *state, int64_t k,
                                     int64_t row_first, int64_t num_rows, double *to)
{
    return add_all(folder, state, true, k, row_first, num_rows, to);
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
    struct stat info;
    file_mover *file = tess_alloc_zero(1, sizeof *file);
    *mover = NULL;
    if (!file) TESS_FAIL(TESS_ERR_ALLOC, "state of a checkpoint");
    file->mover = (tess_mover){.reads = true, .move = read_value};
    file->fd = -1;
    TESS_TRY(name_of(folder, state->generation, rank, file->path));
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &info) != 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: cannot be read: %s", file->path,
                  strerror(errno));
    TESS_TRY(read_at(file->fd, file->path, &header, sizeof header, 0));
    file->at = header.own_offset;
    file->end = (int64_t)info.st_size;
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

void tess_checkpoint_free(tess_checkpoint_state *state)
{
    tess_free(state->done);
    tess_free(state->identity);
    tess_free(state->plan);
    *state = (tess_checkpoint_state){0};
}
