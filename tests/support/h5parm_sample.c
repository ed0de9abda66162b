/* Writes h5parm files for tests, by HDF5. */
#include "h5parm_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const axis_names[SAMPLE_AXES] = {"dir", "ant", "time", "freq",
                                                    "pol"};

static hid_t need(hid_t id)
{
    if (id < 0) {
        fprintf(stderr, "a sample of an h5parm cannot be written\n");
        abort();
    }
    return id;
}

/* The type of texts of at most `longest` bytes. */
static hid_t text_type(sample_text kind, size_t longest)
{
    const hid_t type = need(H5Tcopy(H5T_C_S1));
    const size_t least = longest > 0 ? longest : 1;
    if (kind == SAMPLE_VARIABLE) {
        H5Tset_size(type, H5T_VARIABLE);
        H5Tset_cset(type, H5T_CSET_UTF8);
    } else {
        H5Tset_size(type, kind == SAMPLE_FULL ? least : least + 3);
        H5Tset_strpad(type, kind == SAMPLE_BLANKS ? H5T_STR_SPACEPAD : H5T_STR_NULLPAD);
    }
    return type;
}

static void put_text(char *to, const char *text, size_t size, sample_text kind)
{
    memset(to, kind == SAMPLE_BLANKS ? ' ' : '\0', size);
    memcpy(to, text, strlen(text));
}

static void write_attribute(hid_t object, const char *name, const char *text,
                            sample_text kind)
{
    const hid_t type = text_type(kind, strlen(text)), space = H5Screate(H5S_SCALAR);
    const hid_t set =
        need(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
    char value[300];
    put_text(value, text, kind == SAMPLE_VARIABLE ? strlen(text) : H5Tget_size(type),
             kind);
    need(H5Awrite(set, type, kind == SAMPLE_VARIABLE ? (const void *)&text : value));
    H5Aclose(set);
    H5Sclose(space);
    H5Tclose(type);
}

static void write_texts(hid_t group, const char *name, const char *const *text, int num,
                        sample_text kind)
{
    const hsize_t length = (hsize_t)num;
    size_t longest = 0;
    for (int k = 0; k < num; ++k)
        longest = strlen(text[k]) > longest ? strlen(text[k]) : longest;
    const hid_t type = text_type(kind, longest);
    const hid_t space = need(H5Screate_simple(1, &length, NULL));
    const hid_t set = need(
        H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const size_t size = H5Tget_size(type);
    char *packed = calloc((size_t)num + 1, size);
    for (int k = 0; k < num && kind != SAMPLE_VARIABLE; ++k)
        put_text(packed + (size_t)k * size, text[k], size, kind);
    need(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                  kind == SAMPLE_VARIABLE ? (const void *)text : packed));
    free(packed);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
}

static void write_numbers(hid_t group, const char *name, const double *value, int num)
{
    const hsize_t length = (hsize_t)num;
    const hid_t space = need(H5Screate_simple(1, &length, NULL));
    const hid_t set = need(H5Dcreate2(group, name, H5T_NATIVE_DOUBLE, space,
                                      H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    need(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value));
    H5Dclose(set);
    H5Sclose(space);
}

typedef struct source_row {
    char name[128];
    float dir[2];
} source_row;

static void write_sources(hid_t group, const sample_file *file)
{
    const hsize_t two = 2, length = (hsize_t)file->num_sources;
    const hid_t text = need(H5Tcopy(H5T_C_S1));
    H5Tset_size(text, 128);
    const hid_t pair = need(H5Tarray_create2(H5T_NATIVE_FLOAT, 1, &two));
    const hid_t type = need(H5Tcreate(H5T_COMPOUND, sizeof(source_row)));
    H5Tinsert(type, "name", offsetof(source_row, name), text);
    H5Tinsert(type, "dir", offsetof(source_row, dir), pair);
    source_row *row = calloc((size_t)file->num_sources + 1, sizeof *row);
    for (int k = 0; k < file->num_sources; ++k) {
        strcpy(row[k].name, file->source[k]);
        row[k].dir[0] = (float)file->direction[k][0];
        row[k].dir[1] = (float)file->direction[k][1];
    }
    const hid_t space = need(H5Screate_simple(1, &length, NULL));
    const hid_t set = need(H5Dcreate2(group, "source", type, space, H5P_DEFAULT,
                                      H5P_DEFAULT, H5P_DEFAULT));
    need(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, row));
    free(row);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
    H5Tclose(pair);
    H5Tclose(text);
}

/* The axes that a list names, in its order, each once: their number. */
static int find_axes(const char *axes, int order[SAMPLE_AXES])
{
    int num = 0;
    while (*axes && num < SAMPLE_AXES) {
        const size_t length = strcspn(axes, ",");
        for (int k = 0; k < SAMPLE_AXES; ++k)
            if (strlen(axis_names[k]) == length &&
                strncmp(axes, axis_names[k], length) == 0)
                order[num++] = k;
        axes += length + (axes[length] == ',');
    }
    return num;
}

/* Values, or weights, in the order of the stored axes. */
static void write_values(hid_t group, const char *name, const sample_table *table,
                         double (*value)(const int index[SAMPLE_AXES]),
                         sample_text kind)
{
    int order[SAMPLE_AXES] = {0};
    hsize_t dims[SAMPLE_AXES];
    size_t count = 1;
    int num = find_axes(table->axes ? table->axes : "", order);
    num = table->stored_axes > 0 ? table->stored_axes : num;
    for (int k = 0; k < num; ++k) {
        dims[k] = (hsize_t)table->length[order[k]];
        count *= (size_t)dims[k];
    }
    double *packed = calloc(count + 1, sizeof *packed);
    for (size_t k = 0; k < count; ++k) {
        int index[SAMPLE_AXES] = {0};
        size_t rest = k;
        for (int j = num - 1; j >= 0; --j) {
            index[order[j]] = (int)(rest % dims[j]);
            rest /= dims[j];
        }
        packed[k] = value ? value(index) : 1;
    }
    const hid_t type = table->type > 0 ? table->type : H5T_NATIVE_DOUBLE;
    const hid_t space =
        num > 0 ? need(H5Screate_simple(num, dims, NULL)) : need(H5Screate(H5S_SCALAR));
    const hid_t set = need(
        H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    if (H5Tget_class(type) != H5T_STRING)
        need(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, packed));
    if (table->axes) write_attribute(set, "AXES", table->axes, kind);
    free(packed);
    H5Dclose(set);
    H5Sclose(space);
}

static void write_table(hid_t solutions, const sample_table *table, sample_text kind)
{
    const hid_t group =
        need(H5Gcreate2(solutions, table->name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    if (table->title) write_attribute(group, "TITLE", table->title, kind);
    for (int k = 0; k < SAMPLE_AXES; ++k) {
        if (table->missing == k + 1) continue;
        if (table->text[k])
            write_texts(group, axis_names[k], table->text[k], table->length[k], kind);
        else if (table->number[k])
            write_numbers(group, axis_names[k], table->number[k], table->length[k]);
    }
    if (!table->no_values) write_values(group, "val", table, table->value, kind);
    if (!table->no_weight) write_values(group, "weight", table, table->weight, kind);
    H5Gclose(group);
}

void sample_write(const char *path, const sample_file *file)
{
    const hid_t to = need(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const hid_t group = need(H5Gcreate2(to, file->group ? file->group : "sol000",
                                        H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    if (file->kind) write_attribute(group, "KIND", file->kind, file->texts);
    if (file->direction) write_sources(group, file);
    for (int k = 0; k < file->num_tables; ++k)
        write_table(group, &file->table[k], file->texts);
    H5Gclose(group);
    need(H5Fclose(to));
}
