/* Plans one-dimensional transforms of many lines with FFTW, and keeps its wisdom
 * between runs. */
#define _GNU_SOURCE
#include "tess_fft.h"

#include <fftw3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tess_cache.h"
#include "tess_mem.h"

typedef enum fft_kind { COMPLEX, REAL_FORWARD, REAL_BACKWARD } fft_kind;

struct tess_fft {
    bool is_double;
    fft_kind kind;
    fftw_plan plan;
    fftwf_plan plan_single;
};

/* FFTW plans in one thread at a time; calls of the library may come from several. */
static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

void tess_fft_lock_planner(void)
{
    pthread_mutex_lock(&planner);
}

void tess_fft_unlock_planner(void)
{
    pthread_mutex_unlock(&planner);
}

/* Lines × length above which a measured plan saves more time than measuring takes. */
static const double MEASURE_FROM = 3e7;
/* Measuring is cut off after this; FFTW then takes the best plan so far [s]. */
static const double MEASURE_LIMIT_S = 2.0;

/* Wisdom holds for one kind of processor only: its name is part of the file's. */
static bool wisdom_path(bool is_double, char *path, size_t size)
{
    char folder[900], processor[200];
    if (!tess_cache_folder(folder, sizeof folder)) return false;
    tess_cache_processor(processor, sizeof processor);
    snprintf(path, size, "%s/fftw-%s-%s.wisdom", folder,
             is_double ? "double" : "single", processor);
    return true;
}

static void wisdom_load(bool is_double)
{
    char path[1200];
    FILE *file =
        wisdom_path(is_double, path, sizeof path) ? tess_cache_read(path) : NULL;
    if (!file) return;
    if (is_double)
        fftw_import_wisdom_from_file(file);
    else
        fftwf_import_wisdom_from_file(file);
    fclose(file);
}

/* Writes wisdom to another file and renames it, so that concurrent jobs, of other nodes
 * too, never read half a file. */
static void wisdom_save(bool is_double)
{
    char path[1200], temp[TESS_OUT_FILE_NAME];
    FILE *file =
        wisdom_path(is_double, path, sizeof path) ? tess_cache_begin(path, temp) : NULL;
    if (!file) return;
    if (is_double)
        fftw_export_wisdom_to_file(file);
    else
        fftwf_export_wisdom_to_file(file);
    tess_cache_end(file, true, true, temp, path);
}

/* FFTW takes what it knows into plans that it only estimates, too. */
static void forget(bool is_double)
{
    if (is_double)
        fftw_forget_wisdom();
    else
        fftwf_forget_wisdom();
}

static void plan_double(tess_fft *fft, int length, int sign, unsigned flags, void *line,
                        void *out)
{
    fftw_set_timelimit(MEASURE_LIMIT_S);
    if (fft->kind == REAL_FORWARD)
        fft->plan = fftw_plan_dft_r2c_1d(length, line, out, flags);
    else if (fft->kind == REAL_BACKWARD)
        fft->plan = fftw_plan_dft_c2r_1d(length, line, out, flags);
    else
        fft->plan = fftw_plan_dft_1d(length, line, out, sign, flags);
}

static void plan_single(tess_fft *fft, int length, int sign, unsigned flags, void *line,
                        void *out)
{
    fftwf_set_timelimit(MEASURE_LIMIT_S);
    if (fft->kind == REAL_FORWARD)
        fft->plan_single = fftwf_plan_dft_r2c_1d(length, line, out, flags);
    else if (fft->kind == REAL_BACKWARD)
        fft->plan_single = fftwf_plan_dft_c2r_1d(length, line, out, flags);
    else
        fft->plan_single = fftwf_plan_dft_1d(length, line, out, sign, flags);
}

/* Returns false when these flags yield no plan. */
static bool make_plan(tess_fft *fft, int length, int sign, unsigned flags, void *line,
                      void *out)
{
    flags |= FFTW_DESTROY_INPUT;
    (fft->is_double ? plan_double : plan_single)(fft, length, sign, flags, line, out);
    return fft->plan || fft->plan_single;
}

/* FFTW knows what this process has measured, and the file has what other processes have
 * measured. A plan is measured, and the file written again, only if neither has it. */
static void find_plan(tess_fft *fft, int length, int sign, int64_t lines, void *line,
                      void *out)
{
    const unsigned known = FFTW_MEASURE | FFTW_WISDOM_ONLY;
    const bool measure = (double)length * (double)lines > MEASURE_FROM;
    if (lines == 0) forget(fft->is_double);
    if (lines > 0 && make_plan(fft, length, sign, known, line, out)) return;
    if (!measure) {
        make_plan(fft, length, sign, FFTW_ESTIMATE, line, out);
        return;
    }
    wisdom_load(fft->is_double);
    if (make_plan(fft, length, sign, known, line, out)) return;
    if (make_plan(fft, length, sign, FFTW_MEASURE, line, out))
        wisdom_save(fft->is_double);
}

static tess_status create(int64_t length, fft_kind kind, bool forward, bool is_double,
                          int64_t lines, tess_fft **fft_out)
{
    tess_status status = TESS_OK;
    const int sign = forward ? FFTW_FORWARD : FFTW_BACKWARD, n = (int)length;
    tess_fft *fft = tess_alloc_zero(1, sizeof *fft);
    void *line = tess_alloc_zero(length, is_double ? 16 : 8);
    void *out = tess_alloc_zero(length, is_double ? 16 : 8);
    if (!fft || !line || !out)
        TESS_FAIL(TESS_ERR_ALLOC, "FFT of %lld values", (long long)length);
    fft->is_double = is_double;
    fft->kind = kind;
    tess_fft_lock_planner();
    find_plan(fft, n, sign, lines, line, out);
    tess_fft_unlock_planner();
    if (!fft->plan && !fft->plan_single)
        TESS_FAIL(TESS_ERR_INTERNAL, "FFTW makes no plan for %lld values",
                  (long long)length);
    *fft_out = fft;
    fft = NULL;
cleanup:
    tess_free(line);
    tess_free(out);
    tess_fft_destroy(fft);
    return status;
}

tess_status tess_fft_create(int64_t length, bool forward, bool is_double, int64_t lines,
                            tess_fft **fft)
{
    return create(length, COMPLEX, forward, is_double, lines, fft);
}

tess_status tess_fft_create_real(int64_t length, bool forward, bool is_double,
                                 int64_t lines, tess_fft **fft)
{
    return create(length, forward ? REAL_FORWARD : REAL_BACKWARD, forward, is_double,
                  lines, fft);
}

static void execute_double(const tess_fft *fft, void *line, void *out)
{
    if (fft->kind == REAL_FORWARD)
        fftw_execute_dft_r2c(fft->plan, line, out);
    else if (fft->kind == REAL_BACKWARD)
        fftw_execute_dft_c2r(fft->plan, line, out);
    else
        fftw_execute_dft(fft->plan, line, out);
}

static void execute_single(const tess_fft *fft, void *line, void *out)
{
    if (fft->kind == REAL_FORWARD)
        fftwf_execute_dft_r2c(fft->plan_single, line, out);
    else if (fft->kind == REAL_BACKWARD)
        fftwf_execute_dft_c2r(fft->plan_single, line, out);
    else
        fftwf_execute_dft(fft->plan_single, line, out);
}

void tess_fft_execute(const tess_fft *fft, void *line, void *out)
{
    (fft->is_double ? execute_double : execute_single)(fft, line, out);
}

void tess_fft_destroy(tess_fft *fft)
{
    if (!fft) return;
    tess_fft_lock_planner();
    if (fft->plan) fftw_destroy_plan(fft->plan);
    if (fft->plan_single) fftwf_destroy_plan(fft->plan_single);
    tess_fft_unlock_planner();
    tess_free(fft);
}
