/* UVFITS files as `tessera info` and `tessera image` read them: tables, rows, samples.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_file.h"
#include "info.h"
#include "source.h"
#include "tess_comm.h"
#include "tess_mem.h"
#include "tess_polar.h"
#include "tess_samples.h"
#include "tess_vis.h"

static tess_comm *comm;
static FILE *nowhere;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    nowhere = fopen("/dev/null", "w");
    if (!nowhere || tess_comm_self(&comm) != TESS_OK) abort();
    return 0;
}

/* What the reader's header says of an open set. */
static void check_meta(const tess_vis_meta *meta)
{
    fuzz_assert(isfinite(meta->ra_rad) && isfinite(meta->dec_rad),
                "phase centres are finite");
    for (int k = 0; k < meta->num_segments; ++k) {
        const tess_vis_segment *segment = &meta->segment[k];
        fuzz_assert(segment->num_rows >= 0 && segment->num_chan > 0 &&
                        segment->num_corr > 0 && segment->num_corr <= TESS_MAX_CORR,
                    "sizes of a segment are in range");
        for (int64_t c = 0; c < segment->num_chan; ++c)
            fuzz_assert(isfinite(segment->freq_hz[c]) && segment->freq_hz[c] > 0 &&
                            isfinite(segment->chan_width_hz[c]) &&
                            segment->chan_width_hz[c] > 0,
                        "frequencies and widths are positive");
    }
}

/* Rows as they lie in the file, where they can be read so. */
static tess_status read_raw(const tess_vis_reader *reader, int segment)
{
    tess_status status = TESS_OK;
    tess_vis_raw raw;
    void *bytes = NULL;
    const tess_vis_meta *meta = tess_vis_reader_meta(reader);
    const int64_t num_rows = meta->segment[segment].num_rows;
    if (!tess_vis_raw_rows(reader, segment, &raw)) return TESS_OK;
    bytes = tess_alloc(num_rows, (size_t)raw.row_bytes);
    if (!bytes) TESS_FAIL(TESS_ERR_ALLOC, "rows");
    TESS_TRY(tess_vis_read_raw(reader, segment, 0, num_rows, bytes));
cleanup:
    tess_free(bytes);
    return status;
}

/* As `tessera info --flags`, and the rows of each segment in blocks. */
static tess_status describe(const char *path)
{
    tess_status status = TESS_OK;
    const tess_vis_select select = {.any_field = true};
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    tess_info info = {0};
    TESS_TRY(tess_vis_open(path, &select, &reader));
    const tess_vis_meta *meta = tess_vis_reader_meta(reader);
    check_meta(meta);
    TESS_TRY(tess_info_add(reader, true, true, &info));
    tess_info_finish(meta, &info);
    tess_info_print(nowhere, meta, &info, true);
    TESS_TRY(tess_info_print_json(nowhere, meta, &info));
    for (int k = 0; k < meta->num_segments; ++k) {
        const int64_t num_rows = meta->segment[k].num_rows, half = num_rows / 2;
        TESS_TRY(tess_vis_read(reader, k, 0, half, 1, &block));
        TESS_TRY(tess_vis_read(reader, k, half, num_rows - half, 1, &block));
        for (int64_t row = 0; row < block.num_rows; ++row)
            fuzz_assert(block.antenna1[row] >= 0 &&
                            block.antenna1[row] < meta->num_antennas &&
                            block.antenna2[row] >= 0 &&
                            block.antenna2[row] < meta->num_antennas,
                        "antennas of rows are in the table");
        TESS_TRY(read_raw(reader, k));
    }
cleanup:
    tess_vis_block_free(&block);
    tess_info_free(&info);
    tess_vis_close(reader);
    return status;
}

static tess_status read_samples(tess_source *source, tess_samples *samples)
{
    tess_status status = TESS_OK;
    int64_t num_blocks;
    TESS_TRY(tess_source_num_blocks(source, &num_blocks));
    tess_source_rewind(source);
    for (int64_t k = 0; k < num_blocks; ++k)
        TESS_TRY(tess_source_next(source, samples, NULL, NULL));
cleanup:
    return status;
}

/* As `tessera image`, with or without --center. */
static tess_status image(const char *path, bool has_center)
{
    tess_status status = TESS_OK;
    const tess_selection selection = {
        .has_center = has_center, .center_ra_rad = 1.0, .center_dec_rad = -0.5};
    const tess_corr stokes = 1;
    tess_pol pol[2];
    tess_source *source = NULL;
    tess_samples samples = {0};
    double *times = NULL;
    int64_t num_times;
    const int num_pol = tess_pol_expand(&stokes, 1, pol);
    TESS_TRY(tess_source_open(comm, &path, 1, &selection, &source));
    TESS_TRY(tess_source_setup(source, pol, num_pol, 1e5, false, 1, 1 << 16));
    tess_source_read_in_turn(source, true);
    samples = tess_source_samples(source);
    TESS_TRY(read_samples(source, &samples));
    TESS_TRY(tess_source_times(source, &times, &num_times));
cleanup:
    tess_free(times);
    tess_samples_free(&samples);
    tess_source_close(source);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    fuzz_check(describe(path));
    fuzz_check(image(path, false));
    fuzz_check(image(path, true));
    return 0;
}
