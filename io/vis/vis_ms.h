/** @file vis_ms.h  (private to the vis_ms*.cc)
 *  What reading and writing MeasurementSets share: rows of a segment as casacore takes
 *  them, and the way from exceptions to a status. These files are C++. C sources see
 *  `tess_vis_format_ms` only.
 */
#ifndef VIS_MS_H
#define VIS_MS_H

#include <casacore/casa/Arrays/Array.h>
#include <casacore/casa/Arrays/Slicer.h>
#include <casacore/casa/Arrays/Vector.h>
#include <casacore/casa/Exceptions/Error.h>
#include <casacore/casa/Logging/LogSink.h>
#include <casacore/casa/Logging/NullLogSink.h>
#include <casacore/casa/OS/HostInfo.h>
#include <casacore/casa/OS/Path.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/RefRows.h>
#include <casacore/tables/Tables/ScalarColumn.h>
#include <casacore/tables/Tables/Table.h>
#include <casacore/tables/Tables/TableRecord.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "vis_format.h"

namespace tess_ms
{

/* Number of rows of which all columns are read before the next rows, while casacore
 * still has them in memory. A thread of a team takes fewer rows at a time. */
enum { ROWS_AT_ONCE = 8192, TEAM_ROWS_AT_ONCE = 1024 };

/* A view has descriptors, buckets and tiles of its own, and casacore's work has given
 * way to copying by that number. */
enum { MAX_VIEWS = 8 };

using casacore::Array;
using casacore::ArrayColumn;
using casacore::Bool;
using casacore::Complex;
using casacore::Double;
using casacore::Float;
using casacore::Int;
using casacore::IPosition;
using casacore::rownr_t;
using casacore::ScalarColumn;
using casacore::Slicer;
using casacore::String;
using casacore::Table;
using casacore::TableLock;
using casacore::Vector;

/** A failure on its way to the C entry point; already recorded. */
struct Failure {
    tess_status status;
};

#define MS_FAIL(code, ...)                                                             \
    throw Failure                                                                      \
    {                                                                                  \
        tess_error_record((code), __FILE__, __LINE__, __func__, __VA_ARGS__)           \
    }

/* All sets of a process share casacore's table cache, which is not safe for several
 * threads. So all work of casacore goes through one lock. A team of threads that read
 * through views of their own holds the lock together. */
inline std::mutex casacore_lock;

/** Keep casacore from printing warnings: what matters comes back as an exception. Let
 *  it look at the machine's memory now; else all threads would do so at once when they
 *  read. */
inline void prepare_casacore()
{
    casacore::LogSinkInterface *silent = new casacore::NullLogSink;
    casacore::LogSink::globalSink(silent);
    (void)casacore::HostInfo::memoryTotal(casacore::True);
}

/** How casacore tells that it has no library for a storage manager: its name follows.
 */
constexpr char LACKS[] = "Shared library ";

/** Length of the name of the storage manager that an exception says to be missing; 0:
 * it says something else. */
inline int lacking_manager(const char *what)
{
    const char *begin = std::strstr(what, LACKS);
    const char *end = begin ? std::strstr(begin, " not found in ") : nullptr;
    return end ? static_cast<int>(end - begin - static_cast<long>(sizeof LACKS - 1))
               : 0;
}

inline tess_status record_no_memory(const char *path)
{
    return tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                             "%s: not enough memory, unless the set is damaged and "
                             "asks for too much",
                             path);
}

/** Run `work`. An exception of casacore becomes the status `otherwise`, with a message
 *  that names `path`. */
template <class Work>
tess_status caught(tess_status otherwise, const char *path, const char *trouble,
                   Work work) noexcept
{
    try {
        work();
        return TESS_OK;
    } catch (const Failure &failure) {
        return failure.status;
    } catch (const std::bad_alloc &) {
        return record_no_memory(path);
    } catch (const casacore::AllocError &) {
        return record_no_memory(path);
    } catch (const std::exception &error) {
        /* casacore's text ends with the system's */
        if (std::strstr(error.what(), std::strerror(EMFILE)))
            return tess_error_record(TESS_ERR_RESOURCE, __FILE__, __LINE__, __func__,
                                     "%s: cannot be opened: too many files are open; "
                                     "raise their number (ulimit -n)",
                                     path);
        if (const int length = lacking_manager(error.what()))
            return tess_error_record(
                otherwise, __FILE__, __LINE__, __func__,
                "%s: its columns are stored by %.*s, a storage manager that casacore "
                "does not have here; install that, or name the folder of its library "
                "in CASACORE_LDPATH",
                path, length, std::strstr(error.what(), LACKS) + std::strlen(LACKS));
        return tess_error_record(otherwise, __FILE__, __LINE__, __func__,
                                 "%s: %s (casacore says: %.400s)", path, trouble,
                                 error.what());
    } catch (...) {
        return tess_error_record(TESS_ERR_INTERNAL, __FILE__, __LINE__, __func__,
                                 "%s: %s", path, trouble);
    }
}

/** The same, while no other thread has work done by casacore. */
template <class Work>
tess_status guarded(tess_status otherwise, const char *path, const char *trouble,
                    Work work) noexcept
{
    return caught(otherwise, path, trouble, [&] {
        static std::once_flag prepared;
        const std::lock_guard<std::mutex> hold(casacore_lock);
        std::call_once(prepared, prepare_casacore);
        work();
    });
}

inline const char damaged[] = "cannot be read as a MeasurementSet; is it complete?";
inline const char unwritable[] = "cannot be written; is there space, and permission?";

/** Name the set that is written, for the line of tess_vis_end_clearly(). Local. */
void note_written(const char *path);

/** The name that casacore takes: it loses the dot of a relative ".name". Throws where
 *  casacore would put the value of a variable into the name, as a shell does, and take
 *  another folder. */
inline String casacore_name(const std::string &path)
{
    const String name = std::filesystem::absolute(path).string();
    if (casacore::Path(name).expandedName() != name)
        MS_FAIL(TESS_ERR_IO,
                "%s: casacore replaces $ in the names of MeasurementSets; choose "
                "another name",
                path.c_str());
    return name;
}

/** Rows that are consecutive in the table, and also in a segment. */
struct Run {
    int64_t table_row, segment_row, num_rows;
};

/** What a block's segment is in the table. */
struct Segment {
    std::vector<Run> runs;
    int64_t num_rows = 0;
    int64_t chan_first = 0, num_chan = 0, num_chan_file = 0;
    int num_corr = 0;

    IPosition cell_shape() const
    {
        return IPosition(2, num_corr, num_chan_file);
    }
    bool takes_all_channels() const
    {
        return num_chan == num_chan_file;
    }
    Slicer selected_cell() const
    {
        return Slicer(IPosition(2, 0, chan_first), IPosition(2, num_corr, num_chan));
    }
};

using Segments = std::vector<Segment>;

/** Rows of the table, as casacore takes them for one read or write. */
class Rows
{
  public:
    Rows(const Segment &segment, int64_t first, int64_t count)
    {
        auto run = std::upper_bound(
            segment.runs.begin(), segment.runs.end(), first,
            [](int64_t row, const Run &r) { return row < r.segment_row; });
        --run;
        for (int64_t row = first; row < first + count; ++run) {
            const int64_t skip = row - run->segment_row;
            const int64_t take = std::min(run->num_rows - skip, first + count - row);
            runs_.push_back({run->table_row + skip, row, take});
            row += take;
        }
    }

    const std::vector<Run> &runs() const
    {
        return runs_;
    }

    template <class T> void get(const ScalarColumn<T> &column, Vector<T> into) const
    {
        if (one_run())
            column.getColumnRange(range(), into);
        else
            column.getColumnCells(references(), into);
    }

    template <class T> void get(const ArrayColumn<T> &column, Array<T> into) const
    {
        if (one_run())
            column.getColumnRange(range(), into);
        else
            column.getColumnCells(references(), into);
    }

    /* Reads the part of each cell that belongs to the segment. casacore makes no
     * copies of whole cells. */
    template <class T>
    void get(const ArrayColumn<T> &column, const Segment &segment, Array<T> into) const
    {
        if (segment.takes_all_channels())
            get(column, into);
        else if (one_run())
            column.getColumnRange(range(), segment.selected_cell(), into);
        else
            column.getColumnCells(references(), segment.selected_cell(), into);
    }

    template <class T> void put(ScalarColumn<T> &column, const Vector<T> &from) const
    {
        if (one_run())
            column.putColumnRange(range(), from);
        else
            column.putColumnCells(references(), from);
    }

    template <class T> void put(ArrayColumn<T> &column, const Array<T> &from) const
    {
        if (one_run())
            column.putColumnRange(range(), from);
        else
            column.putColumnCells(references(), from);
    }

    template <class T>
    void put(ArrayColumn<T> &column, const Slicer &cell, const Array<T> &from) const
    {
        if (one_run())
            column.putColumnRange(range(), cell, from);
        else
            column.putColumnCells(references(), cell, from);
    }

  private:
    bool one_run() const
    {
        return runs_.size() == 1;
    }
    Slicer range() const
    {
        return Slicer(IPosition(1, runs_[0].table_row),
                      IPosition(1, runs_[0].num_rows));
    }
    casacore::RefRows references() const
    {
        Vector<rownr_t> triples(3 * runs_.size());
        for (size_t k = 0; k < runs_.size(); ++k) {
            triples[3 * k] = static_cast<rownr_t>(runs_[k].table_row);
            triples[3 * k + 1] =
                static_cast<rownr_t>(runs_[k].table_row + runs_[k].num_rows - 1);
            triples[3 * k + 2] = 1;
        }
        return casacore::RefRows(triples, casacore::True);
    }

    std::vector<Run> runs_;
};

/** casacore arrays over memory of a block. */
template <class T> inline Vector<T> vector_over(T *data, int64_t count)
{
    return Vector<T>(IPosition(1, count), data, casacore::SHARE);
}

template <class T> inline Array<T> array_over(T *data, const IPosition &shape)
{
    return Array<T>(shape, data, casacore::SHARE);
}

inline Array<Complex> vis_over(const tess_vis_block &block)
{
    return array_over(reinterpret_cast<Complex *>(block.vis),
                      IPosition(3, block.num_corr, block.num_chan, block.num_rows));
}

/** A view, through which one thread reads the rows of a set. */
struct View {
    Table table;
    ScalarColumn<Double> time, interval;
    ScalarColumn<Int> antenna1, antenna2;
    ScalarColumn<Bool> flag_row;
    ArrayColumn<Double> uvw;
    ArrayColumn<Bool> flag;
    ArrayColumn<Float> weight, weight_spectrum;
    bool has_spectrum = false;
    ArrayColumn<Complex> data;     /* of a set read for its visibilities */
    ArrayColumn<Complex> subtract; /* where they are less those of another column */
    std::vector<Complex> other;    /* reused, for that */
    std::vector<Float> row_weight; /* reused */
    std::unique_ptr<Bool[]> flags;
    int64_t capacity_flags = 0;
};

/** An open set. */
struct Reader {
    std::string path;
    std::string name; /* the path from the root folder on */
    std::shared_ptr<Segments> segments;
    bool model_only = false, uvw_only = false;
    std::string data_column, subtract_column; /* "": none */
    std::vector<std::unique_ptr<View>> views; /* the first is there once it is open */
    bool has_all_views = false;               /* there can be no more of them */

    const Table &table() const
    {
        return views[0]->table;
    }
};

/** A subtable. Throws. */
inline Table subtable(const Reader &reader, const char *name)
{
    if (!reader.table().keywordSet().isDefined(name))
        MS_FAIL(TESS_ERR_INPUT, "%s: has no subtable %s; not a complete MeasurementSet",
                reader.path.c_str(), name);
    return reader.table().keywordSet().asTable(name, TableLock(TableLock::NoLocking));
}

/** A cell of a subtable, whose size in a damaged set may be anything. */
template <class T>
Array<T> cell_of(const Reader &reader, const ArrayColumn<T> &column, size_t row)
{
    const double most = 1 << 24; /* channels of a window, more than any has */
    double values = 1;
    const IPosition shape = column.shape(static_cast<rownr_t>(row));
    for (const auto length : shape)
        values *= static_cast<double>(length);
    if (values > most)
        MS_FAIL(TESS_ERR_INPUT, "%s: row %zu of %s has %.0f values; the set is damaged",
                reader.path.c_str(), row, column.columnDesc().name().c_str(), values);
    return column(static_cast<rownr_t>(row));
}

/** The times of the first and the last row of a field [MJD s]. */
struct Span {
    double first = HUGE_VAL, last = -HUGE_VAL;
};

/** Rows and channels that expressions choose (tess_vis_expressions). */
struct Chosen {
    using Channels = std::pair<int64_t, int64_t>; /* [first, end) */

    std::vector<bool> rows;                        /* [rows of the table]; empty: all */
    std::map<int, std::vector<Channels>> channels; /* by window; empty: all */
    std::string text; /* the expressions, for messages: "--scan '1~3'" */

    bool has(int64_t row) const
    {
        return rows.empty() || rows[static_cast<size_t>(row)];
    }
};

/** Evaluate them. Throws: TESS_ERR_USAGE with casacore's words where one has a mistake.
 */
Chosen choose_by(const Reader &reader, const tess_vis_select &select);

/** Read the directions of fields and convert them to J2000, for the middle of the time
 *  of their rows. Throws if that of the selected field cannot be converted, unless any
 *  field will do. */
void place_fields(const Reader &reader, const std::vector<Span> &times, bool any_field,
                  tess_vis_meta &meta);

/** casacore's number of a correlation type by its FITS code, 0 when there is none. */
int casacore_stokes(tess_corr corr);

/** Whether the table has a column of this name that can hold visibilities. */
bool is_data_column(const Table &table, const char *name);

/** Open the table through `reader.path` for the first view. Throws. */
void open_first_view(Reader &reader);

/** Let `view` read visibilities from the reader's columns. Throws. */
void attach_data(View &view, const Reader &reader);

/** The set's path by the name of view `index`; empty where there is no such name. Views
 * have indices below MAX_VIEWS. */
std::string name_of_view(const Reader &reader, size_t index);

/** Open views up to `count`, or as many as there can be. */
void open_views(Reader &reader, int count);

/** Open the set `reader.path` and fill `meta`. Throws. */
void open_set(Reader &reader, const tess_vis_select &select, tess_vis_meta &meta);

/** Read the rest frequency of the selected field and the frame of frequencies. Throws.
 */
void read_lines(const Reader &reader, bool wants_lines, tess_vis_meta &meta);

/** Make a set with complete subtables and one row, which holds what is the same in all
 *  rows. Throws. */
void make_set(const std::string &path, const tess_vis_meta &meta);

/** Say of which scan and field the rows of a new set are; without scans, all are of
 *  one. */
void put_scans(Table &table, const tess_vis_segment &segment);

/** Let casacore delete the table and its subtables instead of flushing them when they
 * are closed. */
void mark_for_delete(Table &table);

/** Tile of a column of cells [num_corr][num_chan]. */
IPosition tile_shape(int64_t num_corr, int64_t num_chan);

/** The writing half of `tess_vis_format_ms`. */
tess_status create(tess_comm *comm, const char *path, const tess_vis_meta *meta,
                   tess_vis_reader *like, const char *column, bool overwrite,
                   tess_vis_writer *writer);
tess_status write(tess_vis_writer *writer, const tess_vis_block *block);
tess_status finish(tess_vis_writer *writer);
void destroy(tess_vis_writer *writer);
tess_status check_column(const tess_vis_reader *reader, const char *column,
                         bool of_weights);

} // namespace tess_ms

#endif
