/* Reads MeasurementSets (version 2) by casacore. vis_ms*.cc and casa_image.cc are the
 * only C++ of the project, so that no other file sees casacore. Rows of one
 * DATA_DESC_ID are one segment. Arrays of a block have the memory layout of casacore's
 * columns and are filled in place. */
#include "vis_ms.h"
#include "vis_ms_check.h"

#include <cstring>

namespace tess_ms
{
namespace
{

/* Fewer rows are not worth a thread, because the tiles at the ends of a thread's share
 * are read twice. */
enum { ROWS_PER_THREAD = TEAM_ROWS_AT_ONCE };

enum class Spectrum { absent, every_row, some_rows };

/* Finds which rows have a WEIGHT_SPECTRUM cell of the right shape. The sets of some
 * packages have the column and leave it empty, in all rows or in some. */
Spectrum spectrum_of(const View &view, const Segment &segment, const Rows &rows)
{
    if (!view.has_spectrum) return Spectrum::absent;
    const ArrayColumn<Float> &column = view.weight_spectrum;
    const IPosition shape = segment.cell_shape();
    if (column.columnDesc().isFixedShape())
        return column.shapeColumn().isEqual(shape) ? Spectrum::every_row
                                                   : Spectrum::absent;
    int64_t num_good = 0, num_rows = 0;
    for (const Run &run : rows.runs()) {
        for (int64_t k = run.table_row; k < run.table_row + run.num_rows; ++k) {
            const rownr_t row = static_cast<rownr_t>(k);
            if (column.isDefined(row) && column.shape(row).isEqual(shape)) ++num_good;
        }
        num_rows += run.num_rows;
    }
    return num_good == 0          ? Spectrum::absent
           : num_good == num_rows ? Spectrum::every_row
                                  : Spectrum::some_rows;
}

void broadcast_weight(const Float *row_weight, tess_vis_block &block)
{
    const int64_t num_corr = block.num_corr;
    for (int64_t row = 0; row < block.num_rows; ++row)
        for (int64_t chan = 0; chan < block.num_chan; ++chan)
            for (int64_t corr = 0; corr < num_corr; ++corr)
                block.weight[(row * block.num_chan + chan) * num_corr + corr] =
                    row_weight[row * num_corr + corr];
}

/* Tiled managers crash on weights that are not there. */
void check_row_weights(const View &view, const tess_vis_meta &meta,
                       const Segment &segment, const Rows &rows)
{
    const IPosition shape(1, segment.num_corr);
    if (view.weight.columnDesc().isFixedShape() &&
        view.weight.shapeColumn().isEqual(shape))
        return;
    for (const Run &run : rows.runs())
        for (int64_t k = run.table_row; k < run.table_row + run.num_rows; ++k) {
            const rownr_t row = static_cast<rownr_t>(k);
            if (!view.weight.isDefined(row) || !view.weight.shape(row).isEqual(shape))
                MS_FAIL(TESS_ERR_INPUT,
                        "%s: row %lld has no WEIGHT of its %d correlations; the set is "
                        "damaged",
                        meta.path, static_cast<long long>(k), segment.num_corr);
        }
}

void read_weights(View &view, const tess_vis_meta &meta, const Segment &segment,
                  const Rows &rows, tess_vis_block &block)
{
    const Spectrum spectrum = spectrum_of(view, segment, rows);
    const IPosition cell(2, block.num_corr, block.num_chan);
    if (spectrum == Spectrum::every_row) {
        rows.get(
            view.weight_spectrum, segment,
            array_over(block.weight, IPosition(3, cell[0], cell[1], block.num_rows)));
        return;
    }
    check_row_weights(view, meta, segment, rows);
    view.row_weight.resize(static_cast<size_t>(block.num_rows * block.num_corr));
    rows.get(view.weight,
             array_over(view.row_weight.data(), IPosition(2, cell[0], block.num_rows)));
    broadcast_weight(view.row_weight.data(), block);
    if (spectrum == Spectrum::absent) return;
    Float *into = block.weight;
    for (const Run &run : rows.runs())
        for (int64_t k = run.table_row; k < run.table_row + run.num_rows; ++k) {
            const rownr_t row = static_cast<rownr_t>(k);
            if (view.weight_spectrum.isDefined(row) &&
                view.weight_spectrum.shape(row).isEqual(segment.cell_shape())) {
                Array<Float> cells = array_over(into, cell);
                view.weight_spectrum.getSlice(row, segment.selected_cell(), cells);
            }
            into += block.num_chan * block.num_corr;
        }
}

void apply_flags(View &view, const Segment &segment, const Rows &rows,
                 tess_vis_block &block)
{
    const int64_t per_row = block.num_chan * block.num_corr;
    const int64_t cells = block.num_rows * per_row;
    if (view.capacity_flags < cells + block.num_rows) {
        view.flags.reset(new Bool[static_cast<size_t>(cells + block.num_rows)]);
        view.capacity_flags = cells + block.num_rows;
    }
    Bool *flag = view.flags.get(), *flag_row = flag + cells;
    rows.get(
        view.flag, segment,
        array_over(flag, IPosition(3, block.num_corr, block.num_chan, block.num_rows)));
    rows.get(view.flag_row, vector_over(flag_row, block.num_rows));
    for (int64_t k = 0; k < cells; ++k)
        block.weight[k] = flag[k] ? TESS_WEIGHT_FLAGGED : block.weight[k];
    for (int64_t row = 0; row < block.num_rows; ++row)
        if (flag_row[row])
            std::fill_n(block.weight + row * per_row, per_row, TESS_WEIGHT_FLAGGED);
}

void check_antennas(const tess_vis_meta &meta, const tess_vis_block &block)
{
    for (int64_t row = 0; row < block.num_rows; ++row)
        if (block.antenna1[row] < 0 || block.antenna1[row] >= meta.num_antennas ||
            block.antenna2[row] < 0 || block.antenna2[row] >= meta.num_antennas)
            MS_FAIL(TESS_ERR_INPUT,
                    "%s: row %lld has antennas %d and %d of %d; the set is damaged",
                    meta.path, static_cast<long long>(block.row_first + row),
                    block.antenna1[row], block.antenna2[row], meta.num_antennas);
}

/* Checks that cells have the size of the spectral window. Of larger cells, casacore
 * would hand out the first channels as if nothing were wrong. */
template <class T>
void check_shapes(const ArrayColumn<T> &column, const tess_vis_meta &meta,
                  const Segment &segment, const Rows &rows)
{
    const IPosition shape = segment.cell_shape();
    const auto &desc = column.columnDesc();
    if (desc.isFixedShape() && column.shapeColumn().isEqual(shape)) return;
    for (const Run &run : rows.runs())
        for (int64_t k = run.table_row; k < run.table_row + run.num_rows; ++k) {
            const rownr_t row = static_cast<rownr_t>(k);
            if (!column.isDefined(row) || !column.shape(row).isEqual(shape))
                MS_FAIL(
                    TESS_ERR_INPUT,
                    "%s: row %lld has no %s of the %d correlations and %lld channels "
                    "of its spectral window; the set is damaged",
                    meta.path, static_cast<long long>(k), desc.name().c_str(),
                    segment.num_corr, static_cast<long long>(segment.num_chan_file));
        }
}

/* Fills in what a row is beside its uvw: zeros, of which a block has few. */
void blank_rows(tess_vis_block &block)
{
    std::fill_n(block.time_mjd_s, block.num_rows, 0.0);
    std::fill_n(block.integration_s, block.num_rows, 0.0);
    std::fill_n(block.antenna1, block.num_rows, 0);
    std::fill_n(block.antenna2, block.num_rows, 0);
}

/* Subtracts the visibilities of another column from those of the block. */
void subtract_column(View &view, const tess_vis_meta &meta, const Segment &segment,
                     const Rows &rows, tess_vis_block &block)
{
    const int64_t count = block.num_rows * block.num_chan * block.num_corr;
    check_shapes(view.subtract, meta, segment, rows);
    view.other.resize(static_cast<size_t>(count));
    rows.get(view.subtract, segment,
             array_over(view.other.data(),
                        IPosition(3, block.num_corr, block.num_chan, block.num_rows)));
    Complex *vis = reinterpret_cast<Complex *>(block.vis);
    for (int64_t k = 0; k < count; ++k)
        vis[k] -= view.other[static_cast<size_t>(k)];
}

void read_rows(const Reader &reader, View &view, const tess_vis_meta &meta,
               const Segment &segment, tess_vis_block &block)
{
    const int64_t num_rows = block.num_rows;
    const Rows rows(segment, block.row_first, num_rows);
    rows.get(view.uvw, array_over(block.uvw_m, IPosition(2, 3, num_rows)));
    if (reader.uvw_only) {
        blank_rows(block);
        return;
    }
    rows.get(view.time, vector_over(block.time_mjd_s, num_rows));
    rows.get(view.interval, vector_over(block.integration_s, num_rows));
    rows.get(view.antenna1, vector_over(block.antenna1, num_rows));
    rows.get(view.antenna2, vector_over(block.antenna2, num_rows));
    check_antennas(meta, block);
    if (!reader.model_only) check_shapes(view.data, meta, segment, rows);
    check_shapes(view.flag, meta, segment, rows);
    if (reader.model_only)
        memset(block.vis, 0,
               static_cast<size_t>(num_rows * block.num_chan * block.num_corr) * 2 *
                   sizeof(float));
    else
        rows.get(view.data, segment, vis_over(block));
    if (!reader.subtract_column.empty())
        subtract_column(view, meta, segment, rows, block);
    read_weights(view, meta, segment, rows, block);
    apply_flags(view, segment, rows, block);
}

/* Returns the rows [first, first + count) of a block. */
tess_vis_block rows_of(const tess_vis_block &block, int64_t first, int64_t count)
{
    tess_vis_block part = block;
    const int64_t per_row = block.num_chan * block.num_corr;
    part.row_first += first;
    part.num_rows = count;
    part.uvw_m += 3 * first;
    part.time_mjd_s += first;
    part.integration_s += first;
    part.antenna1 += first;
    part.antenna2 += first;
    part.vis += 2 * per_row * first;
    part.weight += per_row * first;
    return part;
}

/* Returns how many threads a block is worth. */
int team_for(const tess_vis_block &block, int num_threads)
{
    const int64_t enough = 1 + (block.num_rows - 1) / ROWS_PER_THREAD;
    return static_cast<int>(std::min<int64_t>(enough, std::max(num_threads, 1)));
}

/* Reads a thread's share of the rows through its view, `at_once` rows at a time. */
void read_share(const Reader &reader, View &view, const tess_vis_meta &meta,
                const Segment &segment, const tess_vis_block &share, int64_t at_once)
{
    for (int64_t first = 0; first < share.num_rows; first += at_once) {
        tess_vis_block part =
            rows_of(share, first, std::min(share.num_rows - first, at_once));
        read_rows(reader, view, meta, segment, part);
    }
}

/* Each thread of a team reads its share of the rows through a view of its own. */
void read_by_team(Reader &reader, const tess_vis_meta &meta, const Segment &segment,
                  const tess_vis_block &block, int team)
{
    const int64_t at_once = team > 1 ? TEAM_ROWS_AT_ONCE : ROWS_AT_ONCE;
    tess_status status = TESS_OK;
#pragma omp parallel for num_threads(team) schedule(static, 1)
    for (int k = 0; k < team; ++k) {
        const int64_t first = block.num_rows * k / team;
        const int64_t end = block.num_rows * (k + 1) / team;
        const tess_status own = caught(TESS_ERR_INPUT, meta.path, damaged, [&] {
            read_share(reader, *reader.views[static_cast<size_t>(k)], meta, segment,
                       rows_of(block, first, end - first), at_once);
        });
#pragma omp critical(tess_ms_status)
        if (status == TESS_OK) status = own;
    }
    if (status != TESS_OK) throw Failure{status};
}

void ms_rest(tess_vis_reader *reader)
{
    Reader &state = *static_cast<Reader *>(reader->state);
    (void)guarded(TESS_ERR_IO, state.path.c_str(), damaged,
                  [&] { state.views.resize(1); });
}

void ms_close(tess_vis_reader *reader)
{
    Reader *state = static_cast<Reader *>(reader->state);
    reader->state = nullptr;
    if (!state) return;
    (void)guarded(TESS_ERR_IO, state->path.c_str(), damaged, [&] { delete state; });
}

tess_status ms_open(const char *path, const tess_vis_select *select,
                    tess_vis_reader *reader)
{
    const tess_vis_select everything = {};
    Reader *state = new (std::nothrow) Reader;
    if (!state)
        return tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                 "%s: not enough memory", path);
    const tess_status status = guarded(TESS_ERR_INPUT, path, damaged, [&] {
        state->path = path;
        state->segments = std::make_shared<Segments>();
        open_set(*state, select ? *select : everything, reader->meta);
    });
    reader->state = state;
    if (status != TESS_OK) {
        ms_close(reader);
        tess_vis_meta_free(&reader->meta);
    }
    return status;
}

tess_status ms_read(tess_vis_reader *reader, int segment, int64_t row_first,
                    int64_t num_rows, int num_threads, tess_vis_block *block)
{
    (void)row_first, (void)num_rows; /* checked, and the block has room */
    Reader &state = *static_cast<Reader *>(reader->state);
    return guarded(TESS_ERR_INPUT, reader->meta.path, damaged, [&] {
        const int wanted = team_for(*block, num_threads);
        open_views(state, wanted);
        read_by_team(state, reader->meta,
                     (*state.segments)[static_cast<size_t>(segment)], *block,
                     std::min(wanted, static_cast<int>(state.views.size())));
    });
}

} // namespace
} // namespace tess_ms

static bool is_ms(const char *path, const struct stat *info)
{
    return vis_folder_has(path, info, "table.dat");
}

/* Rows are neither read nor written as they are. */
extern "C" const tess_vis_format tess_vis_format_ms = {
    "MS",
    "a folder with table.dat",
    ".ms",
    true,  /* has_columns */
    false, /* copies */
    true,  /* gathers */
    is_ms,
    vis_ms_check,
    tess_ms::ms_open,
    tess_ms::ms_read,
    nullptr, /* raw_rows */
    nullptr, /* read_raw */
    tess_ms::ms_rest,
    tess_ms::ms_close,
    tess_ms::create,
    tess_ms::write,
    nullptr, /* write_raw */
    tess_ms::finish,
    tess_ms::destroy,
    tess_ms::check_column,
    nullptr, /* order_corr */
    nullptr, /* stored_uvw */
};
