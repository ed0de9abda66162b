/* Keeps tables of w-kernels between runs. The name of a file is a hash of all that
 * determines the table. The first part of the file tells that in full, and the file
 * ends with a hash of the rest, so that a damaged or truncated table is computed again.
 * A file gets its name by being renamed, because several programs may make the same
 * file at once. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gcf_table.h"
#include "tess_cache.h"
#include "tess_mem.h"

/* Raise this when what is computed from the same options, or the file, changes. */
enum { CACHE_VERSION = 2, KEY_BYTES = 512, PATH_BYTES = 1200 };

static const char BEGINNING[] = "gcf-", ENDING[] = ".table";

/* Beyond this size, the least recently used files are removed. */
static const int64_t MOST_BYTES = (int64_t)4 << 30;

/* The beginning of a file. Planes and taps follow, then their hash. */
typedef struct cache_header {
    char key[KEY_BYTES];
    int64_t num_values;
} cache_header;

/* Writes everything that the table depends on, to the last bit. The number of threads
 * does not matter. */
static void key_of(const tess_gcf_opts *opts, char key[KEY_BYTES])
{
    const tess_gcf_layout *layout = &opts->layout;
    memset(key, 0, KEY_BYTES);
    snprintf(key, KEY_BYTES,
             "tessera w-kernels %d: planes %d w %a spacing %d "
             "oversampling %d precision %d field %a %a taper %d padding %a cut %a "
             "support %d %d",
             CACHE_VERSION, layout->num_planes, layout->w_max_lambda,
             (int)layout->spacing, layout->oversampling, layout->is_double ? 64 : 32,
             opts->field_l, opts->field_m, opts->taper_support, opts->padding,
             opts->cut, opts->min_support, opts->max_support);
    /* the order of bytes, so that unlike machines may share a folder */
    const uint64_t order = UINT64_C(0x0102030405060708);
    memcpy(key + KEY_BYTES - sizeof order, &order, sizeof order);
}

/* Folds words by multiplication (FNV-1a, which takes eight bytes at a time here, with a
 * shift that lets high bits reach low ones). */
static uint64_t hash_of(const void *data, int64_t bytes, uint64_t hash)
{
    const char *from = data;
    for (int64_t k = 0; k < bytes; k += 8) {
        uint64_t word = 0;
        memcpy(&word, from + k, bytes - k < 8 ? (size_t)(bytes - k) : 8);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return hash;
}

static uint64_t contents_hash(const cache_header *header, const tess_gcf *gcf)
{
    const uint64_t begin =
        hash_of(header, (int64_t)sizeof *header, UINT64_C(0xcbf29ce484222325));
    const uint64_t planes = hash_of(
        gcf->plane, gcf->layout.num_planes * (int64_t)sizeof *gcf->plane, begin);
    return hash_of(gcf->data, tess_gcf_bytes(gcf), planes);
}

static bool path_of(const char *key, char path[PATH_BYTES])
{
    char folder[900];
    if (!tess_cache_folder(folder, sizeof folder)) return false;
    const uint64_t name = hash_of(key, KEY_BYTES, UINT64_C(0xcbf29ce484222325));
    snprintf(path, PATH_BYTES, "%s/%s%016llx%s", folder, BEGINNING,
             (unsigned long long)name, ENDING);
    return true;
}

/* Whether supports and places of the taps are as they must be. */
static bool planes_fit(const tess_gcf *gcf, const tess_gcf_opts *opts)
{
    const int64_t tables = (int64_t)gcf->half_offsets * gcf->half_offsets;
    int64_t values = 0;
    for (int p = 0; p < gcf->layout.num_planes; ++p) {
        const tess_gcf_plane *plane = &gcf->plane[p];
        if (plane->support < TESS_GCF_STEP || plane->support % TESS_GCF_STEP != 0 ||
            plane->support > opts->max_support + TESS_GCF_STEP ||
            plane->offset != values)
            return false;
        values += tables * plane->support * plane->support;
    }
    return true;
}

static bool read_exactly(FILE *file, void *to, size_t bytes)
{
    return fread(to, 1, bytes, file) == bytes;
}

/* Returns false if the file is not what its name says. */
static bool read_table(FILE *file, const char *key, const tess_gcf_opts *opts,
                       tess_gcf *gcf)
{
    cache_header header;
    uint64_t hash;
    const size_t planes = (size_t)gcf->layout.num_planes * sizeof *gcf->plane;
    if (!read_exactly(file, &header, sizeof header) ||
        memcmp(header.key, key, KEY_BYTES) != 0 ||
        !read_exactly(file, gcf->plane, planes) || !planes_fit(gcf, opts) ||
        gcf_reserve(gcf) != TESS_OK)
        return false;
    return gcf->num_values == header.num_values &&
           read_exactly(file, gcf->data, (size_t)tess_gcf_bytes(gcf)) &&
           read_exactly(file, &hash, sizeof hash) &&
           hash == contents_hash(&header, gcf);
}

/* Reads the table from a file. Returns NULL if there is no good one. */
static tess_gcf *read_file(const char *path, const char *key, const tess_gcf_opts *opts)
{
    tess_gcf *gcf = NULL;
    FILE *file = tess_cache_read(path);
    if (!file) return NULL;
    if (gcf_begin(&opts->layout, &gcf) == TESS_OK &&
        !read_table(file, key, opts, gcf)) {
        tess_gcf_destroy(gcf);
        gcf = NULL;
    }
    fclose(file);
    if (gcf) utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW); /* it was used */
    return gcf;
}

/* Writes the table if that is possible: a folder that cannot be written, or is full, is
 * no failure. */
static void write_file(const char *path, const char *key, const tess_gcf *gcf)
{
    char temp[TESS_OUT_FILE_NAME];
    cache_header header = {.num_values = gcf->num_values};
    memcpy(header.key, key, KEY_BYTES);
    FILE *file = tess_cache_begin(path, temp);
    if (!file) return;
    const size_t planes = (size_t)gcf->layout.num_planes * sizeof *gcf->plane;
    const size_t taps = (size_t)tess_gcf_bytes(gcf);
    const uint64_t hash = contents_hash(&header, gcf);
    const bool good = fwrite(&header, 1, sizeof header, file) == sizeof header &&
                      fwrite(gcf->plane, 1, planes, file) == planes &&
                      fwrite(gcf->data, 1, taps, file) == taps &&
                      fwrite(&hash, 1, sizeof hash, file) == sizeof hash;
    tess_cache_end(file, good, true, temp, path);
}

/* ---- room ---- */

typedef struct cached_file {
    char path[PATH_BYTES];
    struct timespec used;
    int64_t bytes;
} cached_file;

static int older_first(const void *a, const void *b)
{
    const cached_file *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

enum { NAME_BYTES = sizeof BEGINNING - 1 + 16 + sizeof ENDING - 1 };

/* Whether a name begins as path_of() makes them. */
static bool begins_as_table(const char *name)
{
    const char *hash = name + strlen(BEGINNING);
    return strncmp(name, BEGINNING, strlen(BEGINNING)) == 0 &&
           strspn(hash, "0123456789abcdef") == 16 &&
           strncmp(hash + 16, ENDING, strlen(ENDING)) == 0;
}

/* Lists the tables of the folder; NULL if there are none. Removes on the way what
 * killed runs of others have left. */
static cached_file *list_files(const char *folder, int64_t *count)
{
    cached_file *list = NULL;
    int64_t capacity = 0;
    struct dirent *entry;
    DIR *open = opendir(folder);
    *count = 0;
    while (open && (entry = readdir(open)) != NULL) {
        struct stat found;
        if (!begins_as_table(entry->d_name) ||
            tess_grow((void **)&list, &capacity, *count + 1, sizeof *list) != 0)
            continue;
        cached_file *file = &list[*count];
        snprintf(file->path, sizeof file->path, "%s/%.*s", folder, (int)NAME_BYTES,
                 entry->d_name);
        if (entry->d_name[NAME_BYTES] != '\0') {
            tess_out_file_remove_left(file->path);
            continue;
        }
        if (lstat(file->path, &found) != 0 || !S_ISREG(found.st_mode)) continue;
        file->used = found.st_mtim;
        file->bytes = found.st_size;
        ++*count;
    }
    if (open) closedir(open);
    return list;
}

static void make_room(int64_t bytes)
{
    char folder[900];
    int64_t count = 0, total = bytes;
    if (!tess_cache_folder(folder, sizeof folder)) return;
    cached_file *list = list_files(folder, &count);
    for (int64_t k = 0; k < count; ++k)
        total += list[k].bytes;
    if (count > 1) qsort(list, (size_t)count, sizeof *list, older_first);
    for (int64_t k = 0; k < count && total > MOST_BYTES; ++k) {
        unlink(list[k].path);
        total -= list[k].bytes;
    }
    tess_free(list);
}

tess_status tess_gcf_create_cached(const tess_gcf_opts *opts, tess_gcf **gcf,
                                   bool *was_cached)
{
    tess_status status = TESS_OK;
    char key[KEY_BYTES], path[PATH_BYTES];
    tess_gcf *made = NULL;
    *was_cached = false;
    if (opts->support) return tess_gcf_create(opts, gcf);
    TESS_TRY(gcf_check_opts(opts));
    key_of(opts, key);
    const bool has_folder = path_of(key, path);
    if (has_folder) made = read_file(path, key, opts);
    *was_cached = made != NULL;
    if (!made) {
        TESS_TRY(tess_gcf_create(opts, &made));
        const int64_t bytes = tess_gcf_bytes(made);
        if (has_folder && bytes <= MOST_BYTES) {
            make_room(bytes);
            write_file(path, key, made);
        }
    }
    *gcf = made;
cleanup:
    return status;
}
