/* Reads h5parm files by HDF5's C library: groups, texts, axes and values. */
#define _GNU_SOURCE
#include "h5parm.h"

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tess_input.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_text.h"

enum { NAME_BYTES = sizeof(tess_solution_name), MOST_AXES = H5PARM_AXES };

/* Values that are read at a time. */
static const int64_t BLOCK_VALUES = (int64_t)1 << 20;

/* No calibration has more, and their number of bytes is an int64_t. */
static const double MOST_VALUES = 1e13;

static const char *const axis_names[] = {"dir", "ant", "time", "freq", "pol"};

struct h5parm {
    char *path;
    hid_t file, group; /* the group of solutions; below 0: not open */
    char group_name[64];
    H5E_auto2_t speak; /* HDF5's messages, as they were */
    void *speak_data;
};

/* Closes an object of any kind; below 0: none. */
static void leave(hid_t id)
{
    if (id >= 0) H5Idec_ref(id);
}

/* ---- files ---- */

/* Finds the first group whose name begins with "sol". */
static tess_status find_group(h5parm *file)
{
    tess_status status = TESS_OK;
    H5G_info_t info;
    if (H5Gget_info(file->file, &info) < 0) info.nlinks = 0;
    for (hsize_t k = 0; k < info.nlinks && file->group < 0; ++k) {
        const ssize_t length =
            H5Lget_name_by_idx(file->file, ".", H5_INDEX_NAME, H5_ITER_INC, k,
                               file->group_name, sizeof file->group_name, H5P_DEFAULT);
        if (length > 0 && strncmp(file->group_name, "sol", 3) == 0)
            file->group = H5Gopen2(file->file, file->group_name, H5P_DEFAULT);
    }
    if (file->group < 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: has no group of solutions like sol000; it is no h5parm",
                  file->path);
    tess_text_clean(file->group_name);
cleanup:
    return status;
}

/* Files that cannot be locked, as on some shared disks, are read without. */
static hid_t access_list(void)
{
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
#if H5_VERSION_GE(1, 10, 7)
    if (list >= 0) H5Pset_file_locking(list, 1, 1);
#endif
    return list;
}

tess_status h5parm_open(const char *path, h5parm **out)
{
    tess_status status = TESS_OK;
    hid_t list = -1;
    int64_t size;
    int fd = -1;
    h5parm *file = tess_alloc_zero(1, sizeof *file);
    if (!file) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory to open it", path);
    file->file = file->group = -1;
    H5Eget_auto2(H5E_DEFAULT, &file->speak, &file->speak_data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    file->path = tess_strdup(path);
    if (!file->path) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory to open it", path);
    TESS_TRY(tess_input_open(path, &fd, &size)); /* says why not, as of other files */
    list = access_list();
    file->file = H5Fopen(path, H5F_ACC_RDONLY, list);
    if (file->file < 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is no HDF5 file, or is damaged", path);
    TESS_TRY(find_group(file));
    *out = file;
    file = NULL;
cleanup:
    if (fd >= 0) close(fd);
    leave(list);
    h5parm_close(file);
    return status;
}

void h5parm_close(h5parm *file)
{
    if (!file) return;
    leave(file->group);
    leave(file->file);
    H5Eset_auto2(H5E_DEFAULT, file->speak, file->speak_data);
    tess_free(file->path);
    tess_free(file);
}

/* ---- texts ---- */

/* Copies a text that ends with NUL or after `size` bytes, without blanks at its end. */
static void copy_text(const char *from, size_t size, char *to, size_t room)
{
    size_t length = from ? strnlen(from, size) : 0;
    while (length > 0 && from[length - 1] == ' ')
        --length;
    length = length < room ? length : room - 1;
    snprintf(to, room, "%.*s", (int)length, from ? from : "");
    tess_text_clean(to);
}

/* The type of texts in memory that texts of a type of the file are read as: the file's
 * own alphabet, since HDF5 converts none. */
static hid_t text_type(hid_t stored)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0) return type;
    H5Tset_size(type, H5Tis_variable_str(stored) > 0 ? H5T_VARIABLE : NAME_BYTES);
    H5Tset_cset(type, H5Tget_cset(stored));
    return type;
}

/* An attribute of one text; false if there is none such. */
static bool read_attribute(hid_t object, const char *name, char *text, size_t room)
{
    hid_t attribute = -1, stored = -1, space = -1, type = -1;
    bool is_read = false;
    if (H5Aexists(object, name) <= 0) return false;
    attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute >= 0) stored = H5Aget_type(attribute);
    if (attribute >= 0) space = H5Aget_space(attribute);
    if (stored >= 0 && H5Tget_class(stored) == H5T_STRING &&
        H5Sget_simple_extent_npoints(space) == 1)
        type = text_type(stored);
    if (type >= 0 && H5Tis_variable_str(type) > 0) {
        char *value = NULL;
        is_read = H5Aread(attribute, type, &value) >= 0 && value;
        if (is_read) copy_text(value, SIZE_MAX / 2, text, room);
        H5free_memory(value);
    } else if (type >= 0) {
        char value[NAME_BYTES] = "";
        is_read = H5Aread(attribute, type, value) >= 0;
        copy_text(value, sizeof value, text, room);
    }
    leave(type);
    leave(space);
    leave(stored);
    leave(attribute);
    return is_read;
}

bool h5parm_is_beam(h5parm *file)
{
    char kind[NAME_BYTES];
    return read_attribute(file->group, "KIND", kind, sizeof kind) &&
           strcasecmp(kind, "beam") == 0;
}

/* The texts of a data set of one axis, text[length]. Returns whether they could be
 * read. */
static bool read_texts(hid_t set, hid_t stored, int64_t length,
                       tess_solution_name *text)
{
    bool is_read = false;
    const hid_t type = text_type(stored), space = H5Dget_space(set);
    if (type >= 0 && space >= 0 && H5Tis_variable_str(type) > 0) {
        char **value = tess_alloc_zero(length, sizeof *value);
        is_read = value &&
                  H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, (void *)value) >= 0;
        for (int64_t k = 0; is_read && k < length; ++k)
            copy_text(value[k], SIZE_MAX / 2, text[k], NAME_BYTES);
        if (is_read) H5Dvlen_reclaim(type, space, H5P_DEFAULT, (void *)value);
        tess_free((void *)value);
    } else if (type >= 0) {
        is_read = H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0;
        for (int64_t k = 0; is_read && k < length; ++k) {
            tess_solution_name copy;
            memcpy(copy, text[k], sizeof copy);
            copy_text(copy, sizeof copy, text[k], NAME_BYTES);
        }
    }
    leave(space);
    leave(type);
    return is_read;
}

/* ---- data sets ---- */

/* Opens a data set, whose number of dimensions is `num_dims`; below 0: none such. */
static hid_t open_set(hid_t group, const char *name, int num_dims, hsize_t *dims)
{
    hid_t set = -1, space = -1;
    bool is_good = false;
    if (H5Lexists(group, name, H5P_DEFAULT) > 0)
        set = H5Dopen2(group, name, H5P_DEFAULT);
    if (set >= 0) space = H5Dget_space(set);
    if (space >= 0 && H5Sget_simple_extent_ndims(space) == num_dims)
        is_good = H5Sget_simple_extent_dims(space, dims, NULL) == num_dims;
    for (int k = 0; is_good && k < num_dims; ++k)
        is_good = dims[k] > 0 && dims[k] < (hsize_t)1 << 40;
    leave(space);
    if (!is_good) leave(set);
    return is_good ? set : -1;
}

static bool is_number(hid_t type)
{
    const H5T_class_t kind = H5Tget_class(type);
    return kind == H5T_FLOAT || kind == H5T_INTEGER;
}

/* ---- directions ---- */

/* A row of the table `source` in memory. */
typedef struct source_row {
    tess_solution_name name;
    double dir[2];
} source_row;

/* The type of a row in memory, for a type of the file; below 0: it has no such columns.
 */
static hid_t row_type(hid_t stored)
{
    const hsize_t two = 2;
    hid_t row = -1, name = -1, text = -1, pair = -1;
    if (H5Tget_class(stored) == H5T_COMPOUND &&
        H5Tget_member_index(stored, "name") >= 0 &&
        H5Tget_member_index(stored, "dir") >= 0)
        name =
            H5Tget_member_type(stored, (unsigned)H5Tget_member_index(stored, "name"));
    if (name >= 0 && H5Tget_class(name) == H5T_STRING && H5Tis_variable_str(name) == 0)
        text = text_type(name);
    pair = H5Tarray_create2(H5T_NATIVE_DOUBLE, 1, &two);
    if (text >= 0 && pair >= 0) {
        row = H5Tcreate(H5T_COMPOUND, sizeof(source_row));
        if (H5Tinsert(row, "name", offsetof(source_row, name), text) < 0 ||
            H5Tinsert(row, "dir", offsetof(source_row, dir), pair) < 0) {
            leave(row);
            row = -1;
        }
    }
    leave(pair);
    leave(text);
    leave(name);
    return row;
}

static tess_status copy_sources(const h5parm *file, const source_row *row, int64_t num,
                                tess_solution_source *source)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < num; ++k) {
        copy_text(row[k].name, NAME_BYTES, source[k].name, NAME_BYTES);
        source[k].ra_rad = row[k].dir[0];
        source[k].dec_rad = row[k].dir[1];
        if (!(fabs(row[k].dir[0]) <= 10 && fabs(row[k].dir[1]) <= 1.571))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: direction '%s' of %s/source is not on the sky", file->path,
                      source[k].name, file->group_name);
    }
cleanup:
    return status;
}

tess_status h5parm_sources(h5parm *file, tess_solution_source **out, int64_t *num)
{
    tess_status status = TESS_OK;
    hsize_t length = 0;
    hid_t stored = -1, type = -1;
    source_row *row = NULL;
    tess_solution_source *source = NULL;
    const hid_t set = open_set(file->group, "source", 1, &length);
    if (set >= 0) stored = H5Dget_type(set);
    if (stored >= 0) type = row_type(stored);
    if (type < 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: has no table %s/source of names and directions",
                  file->path, file->group_name);
    row = tess_alloc_zero((int64_t)length, sizeof *row);
    source = tess_alloc_zero((int64_t)length, sizeof *source);
    if (!row || !source)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for %lld directions", file->path,
                  (long long)length);
    if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, row) < 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %s/source cannot be read", file->path,
                  file->group_name);
    TESS_TRY(copy_sources(file, row, (int64_t)length, source));
    *out = source;
    *num = (int64_t)length;
    source = NULL;
cleanup:
    leave(type);
    leave(stored);
    leave(set);
    tess_free(row);
    tess_free(source);
    return status;
}

/* ---- tables ---- */

/* Whether a name is that of an object in the group, and no path to elsewhere. */
bool h5parm_has_table(h5parm *file, const char *name)
{
    hid_t group = -1;
    if (*name && !strchr(name, '/') && strcmp(name, ".") != 0 &&
        H5Lexists(file->group, name, H5P_DEFAULT) > 0)
        group = H5Gopen2(file->group, name, H5P_DEFAULT);
    leave(group);
    return group >= 0;
}

void h5parm_table_names(h5parm *file, char *names, size_t size)
{
    H5G_info_t info;
    names[0] = '\0';
    if (H5Gget_info(file->group, &info) < 0) return;
    for (hsize_t k = 0; k < info.nlinks; ++k) {
        char name[64];
        const size_t used = strlen(names);
        const ssize_t length =
            H5Lget_name_by_idx(file->group, ".", H5_INDEX_NAME, H5_ITER_INC, k, name,
                               sizeof name, H5P_DEFAULT);
        if (length > 0 && h5parm_has_table(file, name))
            snprintf(names + used, size - used, "%s%s", used > 0 ? ", " : "", name);
    }
    tess_text_clean(names);
}

/* Finds the place of each axis that a list of names has. False: a name is not known, or
 * comes twice. */
static bool place_axes(const char *list, h5parm_table *table)
{
    char copy[NAME_BYTES], *next = copy;
    snprintf(copy, sizeof copy, "%s", list);
    while (next) {
        const char *name = tess_text_trim(strsep(&next, ","));
        int k = 0;
        while (k < MOST_AXES && strcasecmp(name, axis_names[k]) != 0)
            ++k;
        if (k == MOST_AXES || table->axis[k].place >= 0) return false;
        table->axis[k].place = table->num_axes++;
    }
    return true;
}

/* The numbers or texts of an axis, of its length. */
static tess_status read_axis(const h5parm *file, const h5parm_table *table, hid_t group,
                             int which, h5parm_axis *axis)
{
    tess_status status = TESS_OK;
    const bool is_text = which != H5PARM_TIME && which != H5PARM_FREQ;
    bool is_read = false;
    hsize_t length = 0;
    hid_t stored = -1;
    const hid_t set = open_set(group, axis_names[which], 1, &length);
    if (set >= 0) stored = H5Dget_type(set);
    const bool fits = stored >= 0 && (int64_t)length == axis->length;
    if (fits && is_text && H5Tget_class(stored) == H5T_STRING) {
        axis->text = tess_alloc_zero(axis->length, sizeof *axis->text);
        if (!axis->text) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory", file->path);
        is_read = read_texts(set, stored, axis->length, axis->text);
    } else if (fits && !is_text && is_number(stored)) {
        axis->number = tess_alloc_zero(axis->length, sizeof *axis->number);
        if (!axis->number) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory", file->path);
        is_read = H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                          axis->number) >= 0;
    }
    if (!is_read)
        TESS_FAIL(TESS_ERR_INPUT, "%s: axis '%s' of %s cannot be read as %lld %s",
                  file->path, axis_names[which], table->name, (long long)axis->length,
                  is_text ? "names" : "numbers");
    for (int64_t k = 0; axis->number && k < axis->length; ++k)
        if (!isfinite(axis->number[k]) ||
            (k > 0 && !(axis->number[k] > axis->number[k - 1])))
            TESS_FAIL(TESS_ERR_INPUT, "%s: axis '%s' of %s does not ascend", file->path,
                      axis_names[which], table->name);
cleanup:
    leave(stored);
    leave(set);
    return status;
}

/* Reads type and axes of a table in an open group. */
static tess_status read_table(h5parm *file, hid_t group, h5parm_table *table)
{
    tess_status status = TESS_OK;
    char axes[NAME_BYTES];
    hsize_t dims[MOST_AXES];
    double count = 1;
    hid_t set = -1;
    if (!read_attribute(group, "TITLE", table->type, sizeof table->type))
        TESS_FAIL(TESS_ERR_INPUT, "%s: %s has no attribute TITLE, its type", file->path,
                  table->name);
    if (H5Lexists(group, "val", H5P_DEFAULT) > 0)
        set = H5Dopen2(group, "val", H5P_DEFAULT);
    if (set < 0 || !read_attribute(set, "AXES", axes, sizeof axes))
        TESS_FAIL(TESS_ERR_INPUT, "%s: %s has no values ('val') with an attribute AXES",
                  file->path, table->name);
    leave(set);
    set = -1;
    if (!place_axes(axes, table))
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: the axes '%s' of %s are not some of time, freq, ant, dir and pol",
            file->path, axes, table->name);
    set = open_set(group, "val", table->num_axes, dims);
    if (set < 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: the values of %s do not have the axes '%s'",
                  file->path, table->name, axes);
    for (int k = 0; k < table->num_axes; ++k)
        count *= (double)dims[k];
    if (count > MOST_VALUES)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %s claims to have %.3g values", file->path,
                  table->name, count);
    for (int k = 0; k < MOST_AXES; ++k) {
        h5parm_axis *axis = &table->axis[k];
        axis->length = axis->place >= 0 ? (int64_t)dims[axis->place] : 1;
        if (axis->place >= 0) TESS_TRY(read_axis(file, table, group, k, axis));
    }
cleanup:
    leave(set);
    return status;
}

tess_status h5parm_table_open(h5parm *file, const char *name, h5parm_table *out)
{
    tess_status status = TESS_OK;
    h5parm_table table = {.num_axes = 0};
    const hid_t group = H5Gopen2(file->group, name, H5P_DEFAULT);
    snprintf(table.name, sizeof table.name, "%s", name);
    for (int k = 0; k < MOST_AXES; ++k)
        table.axis[k].place = -1;
    if (group < 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %s/%s cannot be opened", file->path,
                  file->group_name, name);
    TESS_TRY(read_table(file, group, &table));
    *out = table;
    table = (h5parm_table){.num_axes = 0};
cleanup:
    leave(group);
    h5parm_table_free(&table);
    return status;
}

void h5parm_table_free(h5parm_table *table)
{
    for (int k = 0; k < MOST_AXES; ++k) {
        tess_free(table->axis[k].number);
        tess_free(table->axis[k].text);
    }
    *table = (h5parm_table){.num_axes = 0};
}

/* ---- values ---- */

/* The part of a data set that is read at a time: of each stored axis a range. */
typedef struct value_block {
    hid_t set;
    int num_axes;
    hsize_t start[MOST_AXES], count[MOST_AXES];
    double *value; /* [count[0]][count[1]]... */
} value_block;

/* The stored ranges that hold a pick. */
static void cover(const h5parm_table *table, const h5parm_pick *pick,
                  value_block *block)
{
    block->num_axes = table->num_axes;
    for (int k = 0; k < MOST_AXES; ++k) {
        const int place = table->axis[k].place;
        if (place < 0) continue;
        int64_t first = pick->index[k][0], last = first;
        for (int64_t j = 1; j < pick->num[k]; ++j) {
            first = tess_min_i64(first, pick->index[k][j]);
            last = tess_max_i64(last, pick->index[k][j]);
        }
        block->start[place] = (hsize_t)first;
        block->count[place] = (hsize_t)(last - first + 1);
    }
}

static bool read_block(const value_block *block)
{
    const hid_t stored = H5Dget_space(block->set);
    const hid_t held = H5Screate_simple(block->num_axes, block->count, NULL);
    const bool is_read = stored >= 0 && held >= 0 &&
                         H5Sselect_hyperslab(stored, H5S_SELECT_SET, block->start, NULL,
                                             block->count, NULL) >= 0 &&
                         H5Dread(block->set, H5T_NATIVE_DOUBLE, held, stored,
                                 H5P_DEFAULT, block->value) >= 0;
    leave(held);
    leave(stored);
    return is_read;
}

/* How far it is in a block from one index of an axis to the next [values]; 0: the table
 * has no such axis. */
static int64_t stride_of(const h5parm_table *table, const value_block *block, int axis)
{
    int64_t stride = 1;
    if (table->axis[axis].place < 0) return 0;
    for (int k = table->axis[axis].place + 1; k < block->num_axes; ++k)
        stride *= (int64_t)block->count[k];
    return stride;
}

/* How the values of a block lie, and where they are put. */
typedef struct value_layout {
    int first; /* the axis along which blocks follow one another */
    int64_t
        stride[MOST_AXES];    /* in the block, from one index to the next; 0: no axis */
    int64_t put[MOST_AXES];   /* in what is held */
    int64_t start[MOST_AXES]; /* of the block, along each axis */
    int64_t rest;             /* number of values for each index of `first` */
} value_layout;

static value_layout layout_of(const h5parm_table *table, const h5parm_pick *pick,
                              const value_block *block)
{
    value_layout layout = {.rest = 1};
    int64_t held = 1;
    for (int k = MOST_AXES - 1; k >= 0; --k) {
        const int place = table->axis[k].place;
        layout.stride[k] = stride_of(table, block, k);
        layout.start[k] = place >= 0 ? (int64_t)block->start[place] : 0;
        layout.put[k] = held;
        held *= pick->num[k];
        if (place == 0)
            layout.first = k;
        else
            layout.rest *= pick->num[k];
    }
    return layout;
}

/* Puts the values of one index of the first axis where they belong: value[at] is those
 * of the block, and held[...] what is held. With `is_weight` values of no weight become
 * NaN. */
static void take_index(const h5parm_pick *pick, const value_layout *layout,
                       const double *value, bool is_weight, double *held)
{
    for (int64_t k = 0; k < layout->rest; ++k) {
        int64_t left = k, at = 0, to = 0;
        for (int axis = MOST_AXES - 1; axis >= 0; --axis) {
            if (axis == layout->first) continue;
            const int64_t which = left % pick->num[axis];
            left /= pick->num[axis];
            at +=
                (pick->index[axis][which] - layout->start[axis]) * layout->stride[axis];
            to += which * layout->put[axis];
        }
        if (!is_weight)
            held[to] = isfinite(value[at]) ? value[at] : (double)NAN;
        else if (!(value[at] > 0))
            held[to] = (double)NAN;
    }
}

/* Takes those picked values that are in a block. */
static void take_block(const h5parm_table *table, const h5parm_pick *pick,
                       const value_block *block, bool is_weight, double *held)
{
    const value_layout layout = layout_of(table, pick, block);
    const int first = layout.first;
    for (int64_t k = 0; k < pick->num[first]; ++k) {
        const int64_t in = pick->index[first][k] - layout.start[first];
        if (in >= 0 && in < (int64_t)block->count[0])
            take_index(pick, &layout, block->value + in * layout.stride[first],
                       is_weight, held + k * layout.put[first]);
    }
}

/* Reads a data set of a table block by block along its first axis. */
static tess_status read_values(const h5parm *file, const h5parm_table *table,
                               const h5parm_pick *pick, value_block *block,
                               bool is_weight, double *value)
{
    tess_status status = TESS_OK;
    int64_t each = 1;
    cover(table, pick, block);
    const hsize_t end = block->start[0] + block->count[0];
    for (int k = 1; k < block->num_axes; ++k)
        each *= (int64_t)block->count[k];
    const int64_t most = tess_max_i64(BLOCK_VALUES / each, 1);
    block->count[0] = (hsize_t)tess_min_i64(most, (int64_t)block->count[0]);
    if ((double)each * (double)block->count[0] * sizeof(double) >
        (double)tess_mem_node_limit_bytes())
        TESS_FAIL(TESS_ERR_RESOURCE, "%s: %s is larger than the memory", file->path,
                  table->name);
    block->value = tess_alloc(each * (int64_t)block->count[0], sizeof *block->value);
    if (!block->value)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for values of %s", file->path,
                  table->name);
    for (; block->start[0] < end; block->start[0] += block->count[0]) {
        if (block->count[0] > end - block->start[0])
            block->count[0] = end - block->start[0];
        if (!read_block(block))
            TESS_FAIL(TESS_ERR_INPUT, "%s: the %s of %s cannot be read", file->path,
                      is_weight ? "weights" : "values", table->name);
        take_block(table, pick, block, is_weight, value);
    }
cleanup:
    tess_free(block->value);
    block->value = NULL;
    return status;
}

tess_status h5parm_values(h5parm *file, const h5parm_table *table,
                          const h5parm_pick *pick, double *value)
{
    tess_status status = TESS_OK;
    static const char *const names[] = {"val", "weight"};
    value_block block = {.set = -1};
    hid_t type = -1;
    const hid_t group = H5Gopen2(file->group, table->name, H5P_DEFAULT);
    if (group < 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %s cannot be opened", file->path, table->name);
    for (int k = 0; k < 2; ++k) {
        hsize_t dims[MOST_AXES];
        bool fits = true;
        if (k == 1 && H5Lexists(group, names[k], H5P_DEFAULT) <= 0) break; /* all 1 */
        block.set = open_set(group, names[k], table->num_axes, dims);
        for (int axis = 0; block.set >= 0 && axis < MOST_AXES; ++axis)
            fits = fits &&
                   (table->axis[axis].place < 0 ||
                    (int64_t)dims[table->axis[axis].place] == table->axis[axis].length);
        if (block.set >= 0) type = H5Dget_type(block.set);
        if (!fits || type < 0 || !is_number(type))
            TESS_FAIL(TESS_ERR_INPUT, "%s: '%s' of %s has other axes, or no numbers",
                      file->path, names[k], table->name);
        TESS_TRY(read_values(file, table, pick, &block, k == 1, value));
        leave(type);
        leave(block.set);
        type = block.set = -1;
    }
cleanup:
    leave(type);
    leave(block.set);
    leave(group);
    return status;
}
