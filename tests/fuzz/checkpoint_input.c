/* Checkpoints from bytes: of the text only the lines that carry checksums and lengths
 * are replaced, so that what lies behind the checks is reached. */
#define _GNU_SOURCE
#include "checkpoint_input.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Ranks that a text may name, each of which gets a file. */
enum { MOST_RANKS = 4 };

/* The checksum of checkpoints, as tess_checkpoint.h's files have it. */
static uint64_t mix(const void *data, size_t size)
{
    const char *at = data;
    uint64_t sum = 0;
    for (size_t k = 0; k < size; k += 8) {
        uint64_t word = 0;
        memcpy(&word, at + k, size - k < 8 ? size - k : 8);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    return sum;
}

static void put_file(const char *folder, const char *name, const void *data,
                     size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

/* The text up to its identity, with other entries of files. */
static void put_lines(FILE *out, const char *text, size_t file_size, uint64_t file_sum)
{
    while (*text && strncmp(text, "identity ", 9) != 0) {
        const int length = (int)strcspn(text, "\n");
        if (strncmp(text, "file ", 5) == 0)
            fprintf(out, "file %zu %016" PRIx64 "\n", file_size, file_sum);
        else
            fprintf(out, "%.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

/* The rest of the text from its identity on, without the checksum. */
static void put_identity(FILE *out, const char *text, const char *identity)
{
    const char *from = strstr(text, "identity ");
    const char *end = text + strlen(text);
    for (const char *k = text; (k = strstr(k, "\nchecksum ")); ++k)
        end = k + 1;
    if (identity)
        fprintf(out, "identity %zu\n%s\n", strlen(identity), identity);
    else if (from && from < end)
        fwrite(from, 1, (size_t)(end - from), out);
}

static char *make_text(const char *text, size_t file_size, uint64_t file_sum,
                       const char *identity)
{
    char *made = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&made, &size);
    if (!out) abort();
    put_lines(out, text, file_size, file_sum);
    put_identity(out, text, identity);
    fflush(out);
    fprintf(out, "checksum %016" PRIx64 "\n", mix(made, strlen(made)));
    if (fclose(out) != 0) abort();
    return made;
}

void checkpoint_input_write(const char *folder, const uint8_t *data, size_t size,
                            const char *identity)
{
    int64_t generation = 1;
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    const size_t text_size = end ? (size_t)(end - data) : size;
    const size_t file_size = end ? size - text_size - 1 : 0;
    const void *file = data + (size - file_size);
    char *text = strndup((const char *)data, text_size);
    if (!text) abort();
    char *made = make_text(text, file_size, mix(file, file_size), identity);
    const char *at = strstr(text, "generation ");
    if (at) sscanf(at, "generation %" SCNd64, &generation);
    checkpoint_input_remove(folder);
    if (mkdir(folder, 0700) != 0) abort();
    put_file(folder, "checkpoint", made, strlen(made));
    for (int rank = 0; rank < MOST_RANKS; ++rank) {
        char name[64];
        snprintf(name, sizeof name, "checkpoint-%" PRId64 "-%d", generation, rank);
        put_file(folder, name, file, file_size);
    }
    free(made);
    free(text);
}

static char *load(const char *folder, const char *name, size_t *size)
{
    char path[256];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &info) != 0) abort();
    *size = (size_t)info.st_size;
    char *bytes = calloc(*size + 1, 1);
    if (!bytes || fread(bytes, 1, *size, file) != *size) abort();
    fclose(file);
    return bytes;
}

void checkpoint_input_save(const char *folder, const char *path)
{
    size_t text_size, file_size;
    int64_t generation = 0;
    char name[64], *text = load(folder, "checkpoint", &text_size);
    const char *at = strstr(text, "generation ");
    if (!at || sscanf(at, "generation %" SCNd64, &generation) != 1) abort();
    snprintf(name, sizeof name, "checkpoint-%" PRId64 "-0", generation);
    char *bytes = load(folder, name, &file_size);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(text, 1, text_size + 1, file) != text_size + 1 ||
        fwrite(bytes, 1, file_size, file) != file_size || fclose(file) != 0)
        abort();
    free(text);
    free(bytes);
}

char *checkpoint_input_identity(const char *folder)
{
    size_t size, length = 0;
    int used = 0;
    char *text = load(folder, "checkpoint", &size), *identity = NULL;
    const char *at = strstr(text, "identity ");
    if (at && sscanf(at, "identity %zu%n", &length, &used) == 1)
        identity = strndup(at + used + 1, length);
    free(text);
    return identity;
}

void checkpoint_input_remove(const char *folder)
{
    DIR *list = opendir(folder);
    if (!list) return;
    for (const struct dirent *entry; (entry = readdir(list));)
        unlinkat(dirfd(list), entry->d_name, 0);
    closedir(list);
    rmdir(folder);
}
