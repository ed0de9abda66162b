/* Writes a MeasurementSet. A casacore table has one writer: rank 0 takes the blocks of
 * the others. A new set grows under a temporary name; a column is written in place. */
#include <casacore/casa/Containers/Record.h>
#include <casacore/tables/DataMan/TiledColumnStMan.h>
#include <casacore/tables/DataMan/TiledShapeStMan.h>
#include <casacore/tables/DataMan/TiledStManAccessor.h>
#include <casacore/tables/Tables/ArrColDesc.h>
#include <casacore/tables/Tables/TableRecord.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_text.h"
#include "vis_gather.h"
#include "vis_ms.h"
#include "vis_ms_lock.h"

namespace fs = std::filesystem;

namespace tess_ms
{
namespace
{

/* The columns of a new set that are written row by row. */
struct SetColumns {
    explicit SetColumns(const Table &table)
        : data(table, "DATA"), time(table, "TIME"),
          time_centroid(table, "TIME_CENTROID"), interval(table, "INTERVAL"),
          exposure(table, "EXPOSURE"), antenna1(table, "ANTENNA1"),
          antenna2(table, "ANTENNA2"), flag_row(table, "FLAG_ROW"), uvw(table, "UVW"),
          flag(table, "FLAG"), weight(table, "WEIGHT"), sigma(table, "SIGMA"),
          weight_spectrum(table, "WEIGHT_SPECTRUM")
    {
    }
    ArrayColumn<Complex> data;
    ScalarColumn<Double> time, time_centroid, interval, exposure;
    ScalarColumn<Int> antenna1, antenna2;
    ScalarColumn<Bool> flag_row;
    ArrayColumn<Double> uvw;
    ArrayColumn<Bool> flag;
    ArrayColumn<Float> weight, sigma, weight_spectrum;
    std::vector<Float> row_weight, row_sigma, cell_weight; /* reused */
    std::unique_ptr<Bool[]> flags;
    int64_t capacity_flags = 0;
};

/* A column that is written in place. */
struct SetColumn {
    std::string name;
    bool is_added = false;          /* and not finished */
    std::vector<std::string> files; /* of the column, noted for signals */
    ArrayColumn<Complex> data;
    ArrayColumn<Float> weights; /* in its place, of a column of weights */
};

/* Everything but path and comm belongs to rank 0. */
struct Writer {
    std::string path;
    tess_comm *comm = nullptr;
    bool is_column = false, of_weights = false;
    std::shared_ptr<const Segments> segments;
    WriteLock casacore_lock; /* of the set that is changed; outlives `table` */
    Table table;
    std::string reserve; /* file that holds disk back, "" for none */
    int lock = -1;       /* the folder that is written to, locked */

    std::string temporary; /* of a new set, until it has its final name */
    bool overwrite = false;
    int64_t rows_written = 0;
    std::unique_ptr<SetColumns> set;

    std::vector<SetColumn> columns;
    size_t at = 0; /* the column that the next block is of */
    std::string command_line, message;
    std::vector<Float> kept; /* reused: what a column of weights has */
};

/* Whether any column is new to the set. */
bool adds_columns(const Writer &writer)
{
    return std::any_of(writer.columns.begin(), writer.columns.end(),
                       [](const SetColumn &column) { return column.is_added; });
}

void must(tess_status status)
{
    if (status != TESS_OK) throw Failure{status};
}

/* Makes sure that there is space. casacore's data files report a full disk, but it
 * writes its small files in destructors, where a full disk ends the program. So what
 * cannot fit is refused first, and some of the disk is held back until the small files
 * are written. */
void check_space(const fs::path &folder, const std::string &path, double bytes)
{
    std::error_code error;
    const fs::space_info space = fs::space(folder, error);
    if (error)
        MS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path.c_str(),
                error.message().c_str());
    if (static_cast<double>(space.available) < bytes)
        MS_FAIL(TESS_ERR_IO,
                "%s: needs %s of disk, and only %s are free; choose another "
                "folder or free some",
                path.c_str(), tess_mem_text(bytes),
                tess_mem_text(static_cast<double>(space.available)));
}

/* Computes the size of the small files, and of the tiles across the band that casacore
 * may hold back. */
int64_t reserve_bytes(int64_t num_chan)
{
    const int64_t tiles = num_chan / tile_shape(1, num_chan)[1] + 1;
    return (2 + 2 * tiles) << 20;
}

/* Holds some of the disk back, by a file in a folder of the set. */
void hold_reserve(Writer &writer, const std::string &folder, int64_t bytes)
{
    char name[TESS_OUT_FILE_NAME];
    int fd = -1;
    const std::string path = folder + "/.reserve";
    tess_out_file_remove_left(path.c_str());
    must(tess_out_file_create(path.c_str(), name, &fd));
    writer.reserve = name;
    const int error = posix_fallocate(fd, 0, bytes);
    close(fd);
    if (error != 0)
        MS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", writer.path.c_str(),
                strerror(error));
}

void release_reserve(Writer &writer)
{
    if (!writer.reserve.empty()) tess_out_file_discard(writer.reserve.c_str());
    writer.reserve.clear();
}

/* Returns what the table.info of a table says that it is; "" if the file cannot be
 * read. casacore takes no notice of a disk that fails there. */
std::string type_line(const std::string &folder)
{
    std::ifstream file(folder + "/table.info");
    std::string line;
    (void)std::getline(file, line);
    return line;
}

double cells_of(const tess_vis_segment &segment)
{
    return static_cast<double>(segment.num_rows) *
           static_cast<double>(segment.num_chan) * segment.num_corr;
}

/* ---- a new set ---- */

void check_target(const Writer &writer)
{
    std::error_code error;
    if (!fs::exists(fs::symlink_status(writer.path, error))) return;
    if (!writer.overwrite)
        MS_FAIL(TESS_ERR_IO, "%s: exists; give --overwrite or another name",
                writer.path.c_str());
    if (!fs::is_regular_file(fs::path(writer.path) / "table.dat", error))
        MS_FAIL(TESS_ERR_IO,
                "%s: exists and is not a MeasurementSet; it is not overwritten",
                writer.path.c_str());
}

void create_set(Writer &writer, const tess_vis_meta &meta)
{
    check_target(writer);
    if (meta.segment[0].num_rows < 1)
        MS_FAIL(TESS_ERR_INPUT, "%s: no rows to write", writer.path.c_str());
    const fs::path path = casacore_name(writer.path), folder = path.parent_path();
    const tess_vis_segment &segment = meta.segment[0];
    const double bytes_per_cell = 8.0 + 4.0 + 0.125;
    const double bytes_per_row = 80.0 + 8.0 * segment.num_corr, subtables = 4e6;
    const int64_t reserve = reserve_bytes(segment.num_chan);
    check_space(folder, writer.path,
                bytes_per_cell * cells_of(segment) + subtables +
                    static_cast<double>(reserve) +
                    bytes_per_row * static_cast<double>(segment.num_rows));
    char name[TESS_OUT_FILE_NAME];
    const std::string hidden = (folder / ("." + path.filename().string())).string();
    tess_out_file_remove_left(hidden.c_str());
    must(tess_out_folder_create(hidden.c_str(), name, &writer.lock));
    writer.temporary = name;
    hold_reserve(writer, writer.temporary, reserve);
    release_reserve(writer);
    make_set(writer.temporary, meta);
    hold_reserve(writer, writer.temporary, reserve);
    writer.table =
        Table(writer.temporary, TableLock(TableLock::NoLocking), Table::Update);
    /* after the first flush, which would fill the data files with zeros */
    if (segment.num_rows > 1)
        writer.table.addRow(static_cast<rownr_t>(segment.num_rows - 1));
    put_scans(writer.table, segment);
    writer.set = std::make_unique<SetColumns>(writer.table);
    auto segments = std::make_shared<Segments>(1);
    segments->front().runs.push_back({0, 0, segment.num_rows});
    segments->front().num_rows = segment.num_rows;
    segments->front().num_chan = segments->front().num_chan_file = segment.num_chan;
    segments->front().num_corr = segment.num_corr;
    writer.segments = segments;
}

/* Flags a correlation of a row, whose `count` cells are `step` apart: flagged cells
 * lose their weight. Returns the mean of the good weights; 0 if there are none. */
double split_flags(Float *weight, Bool *flag, size_t count, size_t step,
                   size_t &num_flagged)
{
    double sum = 0.0;
    size_t num_good = 0;
    for (size_t k = 0; k < count * step; k += step) {
        flag[k] = weight[k] == TESS_WEIGHT_FLAGGED;
        if (flag[k]) {
            weight[k] = 0.0F;
            ++num_flagged;
        } else if (std::isfinite(weight[k]) && weight[k] > 0.0F) {
            sum += static_cast<double>(weight[k]);
            ++num_good;
        }
    }
    return num_good > 0 ? sum / static_cast<double>(num_good) : 0.0;
}

/* Makes weights and flags of a block as the columns hold them: a flagged cell has no
 * weight, a row has the mean weight of its good channels, and sigma follows from that
 * weight. */
void convert_weights(SetColumns &set, const tess_vis_block &block)
{
    const size_t num_rows = static_cast<size_t>(block.num_rows);
    const size_t num_chan = static_cast<size_t>(block.num_chan);
    const size_t num_corr = static_cast<size_t>(block.num_corr);
    const size_t num_cells = num_rows * num_chan * num_corr;
    set.cell_weight.assign(block.weight, block.weight + num_cells);
    set.row_weight.assign(num_rows * num_corr, 0.0F);
    set.row_sigma.assign(num_rows * num_corr, 0.0F);
    const int64_t needed = static_cast<int64_t>(num_cells + num_rows);
    if (set.capacity_flags < needed) {
        set.flags.reset(new Bool[num_cells + num_rows]);
        set.capacity_flags = needed;
    }
    Bool *flag = set.flags.get(), *flag_row = flag + num_cells;
    for (size_t row = 0; row < num_rows; ++row) {
        Float *weight = set.cell_weight.data() + row * num_chan * num_corr;
        size_t num_flagged = 0;
        for (size_t corr = 0; corr < num_corr; ++corr) {
            const double mean =
                split_flags(weight + corr, flag + row * num_chan * num_corr + corr,
                            num_chan, num_corr, num_flagged);
            if (!(mean > 0)) continue;
            set.row_weight[row * num_corr + corr] = static_cast<Float>(mean);
            set.row_sigma[row * num_corr + corr] =
                static_cast<Float>(1.0 / std::sqrt(mean));
        }
        flag_row[row] = num_flagged == num_chan * num_corr;
    }
}

void put_set_rows(SetColumns &set, const Rows &rows, const tess_vis_block &block)
{
    const int64_t num_rows = block.num_rows;
    const IPosition cells(3, block.num_corr, block.num_chan, num_rows);
    const IPosition per_row(2, block.num_corr, num_rows);
    convert_weights(set, block);
    Bool *flag_row = set.flags.get() + num_rows * block.num_chan * block.num_corr;
    rows.put(set.uvw, array_over(block.uvw_m, IPosition(2, 3, num_rows)));
    rows.put(set.time, vector_over(block.time_mjd_s, num_rows));
    rows.put(set.time_centroid, vector_over(block.time_mjd_s, num_rows));
    rows.put(set.interval, vector_over(block.integration_s, num_rows));
    rows.put(set.exposure, vector_over(block.integration_s, num_rows));
    rows.put(set.antenna1, vector_over(block.antenna1, num_rows));
    rows.put(set.antenna2, vector_over(block.antenna2, num_rows));
    rows.put(set.flag_row, vector_over(flag_row, num_rows));
    rows.put(set.flag, array_over(set.flags.get(), cells));
    rows.put(set.weight, array_over(set.row_weight.data(), per_row));
    rows.put(set.sigma, array_over(set.row_sigma.data(), per_row));
    rows.put(set.weight_spectrum, array_over(set.cell_weight.data(), cells));
    rows.put(set.data, vis_over(block));
}

/* Moves the finished set to its final name. A set that it replaces is removed last. */
void publish(Writer &writer)
{
    check_target(writer);
    if (type_line(writer.temporary) != "Type = Measurement Set")
        MS_FAIL(TESS_ERR_IO, "%s: its table.info cannot be written",
                writer.path.c_str());
    must(tess_out_folder_publish(writer.temporary.c_str(), writer.path.c_str(),
                                 writer.overwrite));
    writer.temporary.clear();
}

/* ---- a column ---- */

/* Returns the tiles of the column `like`, or tiles of its own if it has none. */
IPosition tiles_like(const Table &table, const char *like, const IPosition &cell)
{
    try {
        const casacore::ROTiledStManAccessor tiled(table, like, casacore::True);
        for (casacore::uInt k = 0; k < tiled.nhypercubes(); ++k)
            if (tiled.getTileShape(k).size() == 3) return tiled.getTileShape(k);
    } catch (const casacore::AipsError &) {
    }
    return tile_shape(cell[0], cell[1]);
}

/* Until the table is flushed its description has no added column, so that a run that is
 * stopped leaves no column behind if only its data files go: a header and a file for
 * each shape of cells, of which few sets have more than two. */
void note_column_files(const Writer &writer, SetColumn &column)
{
    const casacore::Record managers = writer.table.dataManagerInfo();
    for (casacore::uInt k = 0; k < managers.nfields(); ++k) {
        const casacore::Record &manager = managers.subRecord(k);
        const Vector<String> columns(manager.asArrayString("COLUMNS"));
        if (std::find(columns.begin(), columns.end(), String(column.name)) ==
            columns.end())
            continue;
        const std::string name =
            writer.path + "/table.f" + std::to_string(manager.asuInt("SEQNR"));
        column.files.push_back(name);
        for (int cube = 0; cube < 64; ++cube)
            column.files.push_back(name + "_TSM" + std::to_string(cube));
    }
    for (const std::string &file : column.files)
        tess_out_file_note(file.c_str());
}

void forget_column_files(Writer &writer)
{
    for (SetColumn &column : writer.columns) {
        for (const std::string &file : column.files)
            tess_out_file_forget(file.c_str());
        column.files.clear();
    }
}

/* Adds the column, which is zero in every row that has a cell. Its cells and tiles are
 * those of DATA, or of FLAG in a set without data. */
template <class T>
void add_column(Writer &writer, SetColumn &of, ArrayColumn<T> &column)
{
    Table &table = writer.table;
    const char *like = is_data_column(table, "DATA") ? "DATA" : "FLAG";
    const casacore::TableColumn cells(table, like);
    const Segment &segment = writer.segments->front();
    const IPosition tiles = tiles_like(table, like, segment.cell_shape());
    const String manager("Tiled" + of.name);
    const char *comment =
        writer.of_weights ? "factors of weights in images" : "predicted visibilities";
    if (cells.columnDesc().isFixedShape()) {
        const casacore::ArrayColumnDesc<T> desc(of.name, comment,
                                                cells.columnDesc().shape(),
                                                casacore::ColumnDesc::FixedShape);
        table.addColumn(desc, casacore::TiledColumnStMan(manager, tiles));
        of.is_added = true;
        note_column_files(writer, of);
        column.attach(table, of.name);
        return;
    }
    table.addColumn(casacore::ArrayColumnDesc<T>(of.name, comment, 2),
                    casacore::TiledShapeStMan(manager, tiles));
    of.is_added = true;
    note_column_files(writer, of);
    column.attach(table, of.name);
    for (rownr_t row = 0; row < table.nrow(); ++row)
        if (cells.isDefined(row)) column.setShape(row, cells.shape(row));
}

/* Checks the cells of the selected rows, which must be there and have the shape of the
 * segment. */
template <class T>
void check_cells(const Writer &writer, const SetColumn &of, ArrayColumn<T> &column)
{
    if (column.columnDesc().isFixedShape() && writer.segments->size() == 1 &&
        column.shapeColumn().isEqual(writer.segments->front().cell_shape()))
        return;
    for (const Segment &segment : *writer.segments)
        for (const Run &run : segment.runs)
            for (int64_t k = run.table_row; k < run.table_row + run.num_rows; ++k) {
                const rownr_t row = static_cast<rownr_t>(k);
                if (!column.isDefined(row))
                    column.put(row, Array<T>(segment.cell_shape(), T(0.0F)));
                else if (!column.shape(row).isEqual(segment.cell_shape()))
                    MS_FAIL(TESS_ERR_INPUT,
                            "%s: column %s has another shape than the spectral window "
                            "in row %lld; choose another column",
                            writer.path.c_str(), of.name.c_str(),
                            static_cast<long long>(k));
            }
}

bool is_column_name(const std::string &name)
{
    const auto valid = [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               (c >= '0' && c <= '9') || c == '_';
    };
    return !name.empty() && std::all_of(name.begin(), name.end(), valid) &&
           !(name[0] >= '0' && name[0] <= '9');
}

bool is_weight_column(const Table &table, const std::string &name)
{
    const casacore::TableDesc &desc = table.tableDesc();
    return desc.isColumn(name) && desc[name].isArray() &&
           desc[name].dataType() == casacore::TpFloat;
}

/* Checks that the column may be made or overwritten. */
void check_column_of(const Writer &writer, const std::string &name, const Table &table)
{
    if (!is_column_name(name))
        MS_FAIL(TESS_ERR_USAGE,
                "%s is no column name; use letters, digits and _, for example "
                "MODEL_DATA",
                name.c_str());
    const bool exists = table.tableDesc().isColumn(name);
    if (exists && writer.of_weights && !is_weight_column(table, name))
        MS_FAIL(TESS_ERR_USAGE, "%s: column %s does not hold weights; rename it",
                writer.path.c_str(), name.c_str());
    if (exists && !writer.of_weights && !is_data_column(table, name.c_str()))
        MS_FAIL(TESS_ERR_USAGE,
                "%s: column %s does not hold visibilities; choose another",
                writer.path.c_str(), name.c_str());
    if (exists && !writer.overwrite)
        MS_FAIL(TESS_ERR_IO,
                "%s: column %s exists already; give --overwrite or another name",
                writer.path.c_str(), name.c_str());
    if (!Table::isWritable(casacore_name(writer.path)))
        MS_FAIL(TESS_ERR_IO, "%s: is not writable", writer.path.c_str());
}

/* casacore writes the file again; what it could not read would be lost. */
void check_info(const Writer &writer, const Table &table)
{
    const size_t untyped = std::strlen("Type = ");
    if (table.tableInfo().type().empty() && type_line(writer.path).size() > untyped)
        MS_FAIL(TESS_ERR_IO, "%s: its table.info cannot be read", writer.path.c_str());
}

/* Whether the set has the columns, keywords and rows that it had when it was opened. */
bool is_unchanged(const Table &table, const Table &now)
{
    const casacore::TableDesc &was = table.tableDesc(), &is = now.tableDesc();
    bool same = table.nrow() == now.nrow() && was.ncolumn() == is.ncolumn() &&
                table.keywordSet().nfields() == now.keywordSet().nfields();
    for (casacore::uInt k = 0; same && k < was.ncolumn(); ++k)
        same = is.isColumn(was[k].name());
    return same;
}

/* casacore writes the description of a table as it was when it was opened, and columns
 * that other programs have added since then would be lost. So the set is opened again
 * if it has changed. Its lock is held by now. */
void refresh(const Writer &writer, Reader &reader)
{
    const std::string unused = name_of_view(reader, MAX_VIEWS);
    if (unused.empty()) return;
    const Table now(unused, TableLock(TableLock::NoLocking), Table::Old);
    if (is_unchanged(reader.table(), now)) return;
    const rownr_t rows = reader.table().nrow();
    reader.views.clear();
    open_first_view(reader); /* from memory, if somebody else here has it open */
    if (!is_unchanged(reader.table(), now) || now.nrow() != rows)
        MS_FAIL(
            TESS_ERR_IO,
            "%s: another program has changed its rows or columns since this run has "
            "opened it; run again",
            writer.path.c_str());
    attach_data(*reader.views[0], reader);
}

template <class T>
void open_column(Writer &writer, const Reader &source, SetColumn &of,
                 ArrayColumn<T> &column)
{
    if (source.table().tableDesc().isColumn(of.name))
        column.attach(writer.table, of.name);
    else
        add_column(writer, of, column);
    check_cells(writer, of, column);
}

/* Opens the set for writing, with space for the columns that it does not have. */
void open_for_columns(Writer &writer, const Reader &source, const tess_vis_meta &meta)
{
    const casacore::TableDesc &has = source.table().tableDesc();
    const double value_bytes = writer.of_weights ? sizeof(Float) : sizeof(Complex);
    double cells = 0.0;
    int64_t max_chan = 1, num_new = 0;
    for (int k = 0; k < meta.num_segments; ++k) {
        const Segment &segment = source.segments->at(static_cast<size_t>(k));
        max_chan = std::max(max_chan, segment.num_chan_file);
        cells += cells_of(meta.segment[k]);
    }
    for (const SetColumn &column : writer.columns)
        if (!has.isColumn(column.name)) ++num_new;
    if (num_new > 0)
        check_space(writer.path, writer.path,
                    static_cast<double>(num_new) * cells * value_bytes);
    /* first, since a table that is open for writing in a folder that cannot be written
     * to ends the program when it is closed */
    hold_reserve(writer, writer.path,
                 static_cast<int64_t>(writer.columns.size()) * reserve_bytes(max_chan));
    writer.table = Table(casacore_name(writer.path), TableLock(TableLock::NoLocking),
                         Table::Update);
    writer.segments = source.segments;
}

void open_columns(Writer &writer, const Reader &source, const tess_vis_meta &meta)
{
    open_for_columns(writer, source, meta);
    for (SetColumn &column : writer.columns)
        if (writer.of_weights)
            open_column(writer, source, column, column.weights);
        else
            open_column(writer, source, column, column.data);
}

/* Replaces the weights of a block that are NaN by those of the column. */
void put_weights(Writer &writer, const Rows &rows, const Segment &segment,
                 const tess_vis_block &block)
{
    ArrayColumn<Float> &weights = writer.columns[writer.at].weights;
    const size_t count = static_cast<size_t>(block.num_rows * block.num_chan) *
                         static_cast<size_t>(block.num_corr);
    const IPosition cells(3, block.num_corr, block.num_chan, block.num_rows);
    const auto unknown = [](Float weight) { return std::isnan(weight); };
    writer.kept.assign(block.weight, block.weight + count);
    if (std::any_of(writer.kept.begin(), writer.kept.end(), unknown)) {
        rows.get(weights, segment, array_over(writer.kept.data(), cells));
        for (size_t k = 0; k < count; ++k)
            if (!unknown(block.weight[k])) writer.kept[k] = block.weight[k];
    }
    rows.put(weights, segment.selected_cell(), array_over(writer.kept.data(), cells));
}

/* ---- both ---- */

void put_block(Writer &writer, const tess_vis_block &block)
{
    const size_t index = static_cast<size_t>(block.segment);
    if (block.segment < 0 || index >= writer.segments->size())
        MS_FAIL(TESS_ERR_INTERNAL, "%s: no segment %d", writer.path.c_str(),
                block.segment);
    const Segment &segment = (*writer.segments)[index];
    if (block.row_first < 0 || block.row_first + block.num_rows > segment.num_rows ||
        block.num_chan != segment.num_chan || block.num_corr != segment.num_corr)
        MS_FAIL(TESS_ERR_INTERNAL,
                "%s: a block of rows %lld + %lld, %lld channels, %d "
                "correlations does not fit",
                writer.path.c_str(), static_cast<long long>(block.row_first),
                static_cast<long long>(block.num_rows),
                static_cast<long long>(block.num_chan), block.num_corr);
    const Rows rows(segment, block.row_first, block.num_rows);
    if (writer.of_weights)
        put_weights(writer, rows, segment, block);
    else if (writer.is_column)
        rows.put(writer.columns[writer.at].data, segment.selected_cell(),
                 vis_over(block));
    else
        put_set_rows(*writer.set, rows, block);
    writer.rows_written += block.num_rows;
}

tess_status sink(void *context, const tess_vis_block *block)
{
    Writer &writer = *static_cast<Writer *>(context);
    return guarded(TESS_ERR_IO, writer.path.c_str(), unwritable,
                   [&] { put_block(writer, *block); });
}

/* Adds a row to the HISTORY table. */
void put_history(const Writer &writer, Table &table)
{
    const rownr_t row = table.nrow();
    table.addRow();
    const auto put = [&](const char *name, const auto &value) {
        if (table.tableDesc().isColumn(name))
            ScalarColumn<std::decay_t<decltype(value)>>(table, name).put(row, value);
    };
    const double unix_zero_s = 40587 * TESS_SECONDS_PER_DAY;
    put("TIME", Double(unix_zero_s + static_cast<double>(time(nullptr))));
    put("OBSERVATION_ID", Int(-1)); /* of the whole set */
    put("MESSAGE", String(writer.message));
    put("PRIORITY", String("INFO"));
    put("ORIGIN", String("tessera " TESS_VERSION_TEXT));
    put("OBJECT_ID", Int(-1));
    put("APPLICATION", String("tessera"));
    for (const char *name : {"CLI_COMMAND", "APP_PARAMS"})
        if (table.tableDesc().isColumn(name))
            ArrayColumn<String>(table, name)
                .put(row, Vector<String>(1, *name == 'C' ? writer.command_line : ""));
    table.flush(casacore::True);
}

/* The data are complete by now: what goes wrong here is no more than a warning. */
void add_history(const Writer &writer)
{
    if (writer.message.empty() && writer.command_line.empty()) return;
    const std::string path = writer.path + "/HISTORY";
    std::unique_ptr<Table> table;
    WriteLock locks;
    try {
        if (!locks.take_now(path))
            throw casacore::AipsError("another program holds its lock");
        table = std::make_unique<Table>(casacore_name(path),
                                        TableLock(TableLock::NoLocking), Table::Update);
        put_history(writer, *table);
        locks.note_change(*table, false);
    } catch (const std::exception &error) {
        /* never closed: casacore would write what it could not read */
        (void)table.release();
        tess_log_warn("%s: column %s is complete, but its HISTORY table cannot be "
                      "written: %s",
                      writer.path.c_str(), writer.columns.front().name.c_str(),
                      error.what());
    }
}

void release_columns(Writer &writer)
{
    for (SetColumn &column : writer.columns) {
        column.data = ArrayColumn<Complex>();
        column.weights = ArrayColumn<Float>();
    }
}

void release_table(Writer &writer)
{
    writer.set.reset();
    release_columns(writer);
    writer.table = Table();
}

void finish_on_root(Writer &writer)
{
    if (!writer.is_column && writer.rows_written != writer.segments->front().num_rows)
        MS_FAIL(TESS_ERR_INTERNAL, "%s: %lld rows written of %lld", writer.path.c_str(),
                static_cast<long long>(writer.rows_written),
                static_cast<long long>(writer.segments->front().num_rows));
    release_reserve(writer);
    forget_column_files(writer); /* before they belong to the table */
    writer.table.flush(casacore::True, casacore::True);
    writer.casacore_lock.note_change(writer.table, adds_columns(writer));
    for (SetColumn &column : writer.columns)
        column.is_added = false;
    release_table(writer);
    if (writer.is_column)
        add_history(writer);
    else
        publish(writer);
}

/* Removes what an unfinished writer has made. */
void discard(Writer &writer)
{
    release_reserve(writer);
    if (writer.is_column) {
        release_columns(writer);
        for (const SetColumn &column : writer.columns)
            if (column.is_added) writer.table.removeColumn(column.name);
        forget_column_files(writer);
        if (!writer.table.isNull())
            writer.casacore_lock.note_change(writer.table, adds_columns(writer));
        return;
    }
    if (writer.temporary.empty()) return;
    /* not flushed any more, so that a full disk cannot fail a destructor */
    if (!writer.table.isNull()) mark_for_delete(writer.table);
    release_table(writer);
    std::error_code ignored;
    fs::remove_all(writer.temporary, ignored);
    tess_out_file_forget(writer.temporary.c_str());
}

/* Replaces what a terminal would act upon. */
std::string clean_text(const char *text)
{
    std::string copy(text ? text : "");
    tess_text_clean(copy.data());
    return copy;
}

std::string without_slash(std::string path)
{
    while (path.size() > 1 && path.back() == '/')
        path.pop_back();
    return path;
}

} // namespace

/* Waits for the write lock of a set. Other threads have work done by casacore
 * meanwhile. */
static tess_status lock_set(const std::string &path, WriteLock &lock)
{
    return caught(TESS_ERR_IO, path.c_str(), unwritable, [&] { lock.take(path); });
}

tess_status check_column(const tess_vis_reader *reader, const char *column,
                         bool of_weights)
{
    const char *path = reader->meta.path;
    const tess_status status = guarded(TESS_ERR_IO, path, unwritable, [&] {
        Writer writer;
        writer.path = without_slash(path);
        writer.of_weights = of_weights;
        writer.overwrite = true;
        check_column_of(writer, column,
                        static_cast<const Reader *>(reader->state)->table());
    });
    WriteLock lock; /* let go at once: it is taken again when the column is made */
    return status == TESS_OK ? lock_set(without_slash(path), lock) : status;
}

/* Nothing is waited for in a set that cannot be written, and no file of locks is made
 * there. */
static tess_status lock_on_root(Writer &writer, const tess_vis_reader *like)
{
    const char *path = writer.path.c_str();
    const tess_status status = guarded(TESS_ERR_IO, path, unwritable, [&] {
        if (!like) {
            check_target(writer);
            return;
        }
        const Table &table = static_cast<const Reader *>(like->state)->table();
        for (const SetColumn &column : writer.columns)
            check_column_of(writer, column.name, table);
        check_info(writer, table);
        must(tess_out_folder_lock(path, &writer.lock));
    });
    return status == TESS_OK ? lock_set(writer.path, writer.casacore_lock) : status;
}

static tess_status create_on_root(Writer &writer, const tess_vis_meta *meta,
                                  tess_vis_reader *like)
{
    const tess_status status = lock_on_root(writer, like);
    if (status != TESS_OK) return status;
    return guarded(TESS_ERR_IO, writer.path.c_str(), unwritable, [&] {
        if (!like) {
            create_set(writer, *meta);
            return;
        }
        Reader &source = *static_cast<Reader *>(like->state);
        refresh(writer, source);
        open_columns(writer, source, like->meta);
    });
}

tess_status create(tess_comm *comm, const char *path, const tess_vis_meta *meta,
                   tess_vis_reader *like, const char *column, bool overwrite,
                   tess_vis_writer *writer)
{
    Writer *state = new (std::nothrow) Writer;
    tess_status status = TESS_OK;
    if (!state)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "%s: not enough memory", path);
    writer->state = state;
    if (state)
        status = guarded(TESS_ERR_IO, path, unwritable, [&] {
            state->path = without_slash(path);
            note_written(state->path.c_str());
            state->comm = comm;
            state->is_column = like != nullptr;
            state->of_weights = writer->of_weights;
            state->overwrite = overwrite;
            state->columns.resize(like ? 1 : 0);
            if (like) state->columns[0].name = column;
            for (int k = 0; k < writer->num_more; ++k) {
                state->columns.emplace_back();
                state->columns.back().name = writer->more_columns[k];
            }
            if (writer->origin) {
                state->command_line = clean_text(writer->origin->command_line);
                state->message = clean_text(writer->origin->message);
            }
        });
    if (status == TESS_OK && tess_comm_rank(comm) == 0)
        status = create_on_root(*state, meta, like);
    status = tess_comm_agree(comm, status);
    if (status != TESS_OK) destroy(writer);
    return status;
}

tess_status write(tess_vis_writer *writer, const tess_vis_block *block)
{
    Writer *state = static_cast<Writer *>(writer->state);
    state->at = static_cast<size_t>(writer->column);
    const vis_carried carried = state->of_weights  ? VIS_CARRY_WEIGHT
                                : state->is_column ? VIS_CARRY_VIS
                                                   : VIS_CARRY_ALL;
    return vis_gather(state->comm, block, carried, sink, state);
}

tess_status finish(tess_vis_writer *writer)
{
    Writer &state = *static_cast<Writer *>(writer->state);
    const bool root = tess_comm_rank(state.comm) == 0;
    /* for good, unless the run makes more; a signal still ends the rank that writes
     * while it waits for the others */
    if (!root) tess_out_hold_signals();
    tess_status status = tess_comm_agree(state.comm, TESS_OK);
    if (root) tess_out_hold_signals();
    if (status == TESS_OK && root)
        status = guarded(TESS_ERR_IO, state.path.c_str(), unwritable,
                         [&] { finish_on_root(state); });
    status = tess_comm_agree(state.comm, status);
    if (status != TESS_OK) tess_out_release_signals();
    return status;
}

void destroy(tess_vis_writer *writer)
{
    Writer *state = static_cast<Writer *>(writer->state);
    writer->state = nullptr;
    if (!state) return;
    const std::string path = state->path;
    const int lock = state->lock;
    (void)guarded(TESS_ERR_IO, path.c_str(), unwritable, [&] { discard(*state); });
    (void)guarded(TESS_ERR_IO, path.c_str(), unwritable, [&] { delete state; });
    if (lock >= 0) close(lock);
}

} // namespace tess_ms
