/** @file vis_format.h  (private to io/)
 *  What a format of visibility sets can do: a table of functions and flags behind
 *  tess_vis.h. Nothing but TESS_VIS_FORMATS below names a format, so a new one is a
 *  source, a line of CMakeLists.txt and a word of that list.
 */
#ifndef TESS_VIS_FORMAT_H
#define TESS_VIS_FORMAT_H

#include <sys/stat.h>

#include "tess_vis.h"
#include "tess_vis_caller.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_vis_format {
    const char *name;   /* in descriptions and messages: "UVFITS" */
    const char *sign;   /* how a set is recognised: "a folder with table.dat" */
    const char *suffix; /* new sets are named so: ".ms"; NULL: any name that ends in no
                           other format's */
    bool has_columns;   /* data columns are added and replaced in place */
    bool copies;        /* `create` copies the set `like` with all of its tables */
    bool gathers;       /* one rank writes the blocks of all */
    bool (*recognise)(const char *path, const struct stat *info);
    tess_status (*check)(const char *const *paths, int num_paths,
                         const tess_vis_select *select); /* NULL: opening is safe */
    tess_status (*open)(const char *path, const tess_vis_select *select,
                        tess_vis_reader *reader);
    tess_status (*read)(tess_vis_reader *reader, int segment, int64_t row_first,
                        int64_t num_rows, int num_threads, tess_vis_block *block);
    bool (*raw_rows)(const tess_vis_reader *reader, int segment, tess_vis_raw *raw);
    tess_status (*read_raw)(const tess_vis_reader *reader, int segment,
                            int64_t row_first, int64_t num_rows,
                            void *to);     /* NULL with raw_rows */
    void (*rest)(tess_vis_reader *reader); /* NULL: holds little */
    void (*close)(tess_vis_reader *reader);
    tess_status (*create)(tess_comm *comm, const char *path, const tess_vis_meta *meta,
                          tess_vis_reader *like, const char *column, bool overwrite,
                          tess_vis_writer *writer);
    tess_status (*write)(tess_vis_writer *writer, const tess_vis_block *block);
    tess_status (*write_raw)(tess_vis_writer *writer, int segment, int64_t row_first,
                             int64_t num_rows,
                             const void *from); /* NULL with raw_rows */
    tess_status (*finish)(tess_vis_writer *writer);
    void (*destroy)(tess_vis_writer *writer); /* also removes an unfinished file */
    tess_status (*check_column)(const tess_vis_reader *reader, const char *column,
                                bool of_weights);      /* with has_columns */
    void (*order_corr)(int num_corr, tess_corr *corr); /* NULL: any order is stored */
    double (*stored_uvw)(double uvw_m); /* what is read back; NULL: the same */
} tess_vis_format;

struct tess_vis_reader {
    const tess_vis_format *format;
    tess_vis_meta meta;
    void *state; /* the format's own */
};

struct tess_vis_writer {
    const tess_vis_format *format;
    tess_comm *comm;
    void *state;
    bool by_rows;                    /* all rows come by write_raw */
    bool of_weights;                 /* of a column of weights */
    const char *const *more_columns; /* [num_more] beside the first; while it is made */
    int num_more;
    int column;                    /* which of all columns the next block is of */
    int raw_writers;               /* threads that write_raw takes best; 0: all */
    const tess_vis_origin *origin; /* of the visibilities, or NULL */
    bool finished;
};

/** The formats, FORMAT(name) for each: tess_vis_format_NAME is its table. The first one
 *  that recognises a path reads it; uvfits, which takes every file, is the last. The
 *  last one without a suffix makes the new sets whose names tell nothing. */
#define TESS_VIS_FORMATS(FORMAT)                                                       \
    FORMAT(caller)                                                                     \
    FORMAT(ms) /* vis_ms.cc, or vis_ms_absent.c */                                     \
    FORMAT(uvfits)

#define TESS_VIS_DECLARED(name) extern const tess_vis_format tess_vis_format_##name;
TESS_VIS_FORMATS(TESS_VIS_DECLARED)
#undef TESS_VIS_DECLARED

/** Whether a path is a folder that holds `file`. Local. */
bool vis_folder_has(const char *path, const struct stat *info, const char *file);

/** Longest time to wait for other programs (tess_vis_set_lock_timeout) [s]. Local. */
double vis_lock_timeout_s(void);

#ifdef __cplusplus
}
#endif
#endif
