/* The program tessera-ms-check: it reads the columns of MeasurementSets that tessera
 * will read, so that damage on which casacore crashes ends this short-lived process and
 * not the ranks of a run (vis_ms_check.c starts it and listens).
 *
 *   tessera-ms-check COLUMN SET...     COLUMN: visibilities; "": the usual one; "-":
 * none. A "+" before it: what expressions select rows by, too
 *
 * It writes "SET-NUMBER WHAT" before each step, and "done" at the end. What casacore
 * itself throws is no matter here: the ranks meet the same and say it better. */
#include <casacore/casa/Arrays/Array.h>
#include <casacore/casa/Arrays/Slicer.h>
#include <casacore/casa/Arrays/Vector.h>
#include <casacore/casa/Exceptions/Error.h>
#include <casacore/casa/Logging/LogSink.h>
#include <casacore/casa/Logging/NullLogSink.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/ScalarColumn.h>
#include <casacore/tables/Tables/Table.h>
#include <casacore/tables/Tables/TableRecord.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>

using casacore::ArrayColumn;
using casacore::IPosition;
using casacore::rownr_t;
using casacore::ScalarColumn;
using casacore::Slicer;
using casacore::String;
using casacore::Table;
using casacore::TableLock;

namespace
{

/* Columns up to this size are read as a whole. Of larger columns, this number of cells
 * is read, which are spread over the column. */
const int64_t WHOLE_BYTES = 4 << 20;
const rownr_t NUM_SAMPLES = 16;

/* Largest number of cells that are read one by one: a cell takes microseconds, however
 * few bytes it has. */
const rownr_t WHOLE_CELLS = 1 << 13;

/* Whether the address sanitizer takes terabytes of addresses. */
#if defined(__SANITIZE_ADDRESS__)
const bool has_shadow = true;
#elif defined(__has_feature)
const bool has_shadow = __has_feature(address_sanitizer);
#else
const bool has_shadow = false;
#endif

/* The ranks refuse cells of more values, so they are not read here. */
const double MAX_VALUES = 1 << 26;

/* A damaged set may take so much: processor time, where reading would never end, and
 * memory, where a damaged number asks for absurdly much. Either is far more than
 * reading a sound set takes. */
const rlim_t MAX_CPU_S = 20, MAX_BYTES = rlim_t(16) << 30;

void say(const std::string &text)
{
    const std::string line = text + "\n";
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0)
        _exit(1); /* the process that started this one has ended */
}

/* Whether MAX_BYTES bounds this process, and not a limit of the user's. */
bool is_bounded_here = false;

/* Does one step. The ranks report whatever casacore throws in it. They do not report a
 * lack of memory, because nothing bounds them: no sound set needs as much as this
 * process may have. */
template <class Step> void attempt(const std::string &what, Step step)
{
    say(what);
    try {
        step();
    } catch (const casacore::AllocError &) {
        if (is_bounded_here) std::abort();
    } catch (const std::bad_alloc &) {
        if (is_bounded_here) std::abort();
    } catch (...) {
    }
}

template <class T> void read_scalars(const Table &table, const char *name)
{
    const ScalarColumn<T> column(table, name);
    const rownr_t rows = table.nrow(),
                  most = std::max<rownr_t>(WHOLE_BYTES / sizeof(T) / 2, 1);
    const rownr_t count = std::min(rows, most);
    if (rows == 0) return;
    (void)column.getColumnRange(Slicer(IPosition(1, 0), IPosition(1, count)));
    (void)column.getColumnRange(
        Slicer(IPosition(1, rows - count), IPosition(1, count)));
}

double num_values(const IPosition &shape)
{
    double count = 1;
    for (const auto length : shape)
        count *= static_cast<double>(length);
    return count;
}

/* Counts the rows from `first` on, up to `most`, whose cells are there and have the
 * shape of the first cell. Tiled managers crash on ranges with other cells, and the
 * ranks read none of those. */
template <class T>
rownr_t count_alike(const ArrayColumn<T> &column, rownr_t first, rownr_t most)
{
    const IPosition shape = column.shape(first);
    rownr_t count = 1;
    while (count < most && column.isDefined(first + count) &&
           column.shape(first + count).isEqual(shape))
        ++count;
    return count;
}

/* Reads several cells at once, as the ranks do. */
template <class T> void read_range(const Table &table, const char *name)
{
    const ArrayColumn<T> column(table, name);
    const rownr_t rows = table.nrow();
    rownr_t first = 0;
    while (first < rows && !column.isDefined(first))
        ++first;
    if (first == rows || num_values(column.shape(first)) > MAX_VALUES) return;
    const int64_t cell_bytes =
        static_cast<int64_t>(column.shape(first).product()) * int64_t{sizeof(T)};
    const rownr_t fit =
        static_cast<rownr_t>(WHOLE_BYTES / std::max<int64_t>(cell_bytes, 1));
    const rownr_t most = std::min(rows - first, std::max<rownr_t>(fit, 1));
    const rownr_t count = count_alike(column, first, most);
    (void)column.getColumnRange(Slicer(IPosition(1, static_cast<ssize_t>(first)),
                                       IPosition(1, static_cast<ssize_t>(count))));
}

/* Reads each cell by itself, because the shapes of cells may differ. */
template <class T> void read_cells(const Table &table, const char *name)
{
    const ArrayColumn<T> column(table, name);
    const rownr_t rows = table.nrow();
    int64_t bytes = 0;
    for (rownr_t row = 0; row < rows; ++row) {
        if ((bytes > WHOLE_BYTES || row >= WHOLE_CELLS) && rows > NUM_SAMPLES) {
            /* go on in leaps */
            row += (rows - row) / NUM_SAMPLES;
            if (row >= rows - 1 || bytes > 8 * WHOLE_BYTES) row = rows - 1;
        }
        if (!column.isDefined(row) || num_values(column.shape(row)) > MAX_VALUES)
            continue;
        const casacore::Array<T> cell = column(row);
        bytes += static_cast<int64_t>(cell.nelements() * sizeof(T));
    }
}

/* Reads the main table and those subtables that tessera reads. */
class Set
{
  public:
    Set(const std::string &number, const std::string &path)
        : prefix_(number + " "), path_(std::filesystem::absolute(path).string())
    {
    }

    void check(const std::string &columns)
    {
        const bool selects = columns[0] == '+';
        const std::string data_column = columns.substr(selects ? 1 : 0);
        attempt(prefix_ + "the main table", [&] {
            main_ = Table(path_, TableLock(TableLock::NoLocking), Table::Old);
        });
        if (main_.isNull()) return;
        check_main(data_column);
        if (selects) check_selected();
        sub("OBSERVATION");
        scalars<String>("TELESCOPE_NAME"), scalars<String>("OBSERVER");
        scalars<String>("PROJECT");
        sub("ANTENNA");
        scalars<String>("NAME"), arrays<double>("POSITION");
        scalars<double>("DISH_DIAMETER");
        sub("FIELD");
        scalars<String>("NAME"), arrays<double>("PHASE_DIR");
        arrays<double>("REFERENCE_DIR");
        scalars<int>("PhaseDir_Ref"), scalars<int>("RefDir_Ref");
        scalars<int>("NUM_POLY"), scalars<int>("EPHEMERIS_ID"), scalars<double>("TIME");
        sub("DATA_DESCRIPTION");
        scalars<int>("SPECTRAL_WINDOW_ID"), scalars<int>("POLARIZATION_ID");
        sub("POLARIZATION");
        arrays<int>("CORR_TYPE");
        sub("SPECTRAL_WINDOW");
        arrays<double>("CHAN_FREQ"), arrays<double>("CHAN_WIDTH");
        attempt(prefix_ + "closing it", [&] { table_ = main_ = Table(); });
    }

  private:
    void check_main(const std::string &data_column)
    {
        table_ = main_;
        name_.clear();
        scalars<int>("FIELD_ID"), scalars<int>("DATA_DESC_ID");
        scalars<int>("ANTENNA1"), scalars<int>("ANTENNA2");
        scalars<double>("TIME"), scalars<double>("INTERVAL");
        scalars<bool>("FLAG_ROW");
        arrays<double>("UVW"), arrays<bool>("FLAG"), arrays<float>("WEIGHT");
        arrays<float>("WEIGHT_SPECTRUM");
        if (data_column == "-") return;
        const size_t comma = data_column.find(',');
        if (comma != std::string::npos)
            arrays<casacore::Complex>(data_column.substr(comma + 1).c_str());
        if (!data_column.empty() && comma != 0) {
            arrays<casacore::Complex>(data_column.substr(0, comma).c_str());
            return;
        }
        arrays<casacore::Complex>("DATA"), arrays<casacore::Complex>("CORRECTED_DATA");
    }

    /* What casacore's MSSelection reads beside the rest. */
    void check_selected()
    {
        scalars<int>("SCAN_NUMBER"), scalars<int>("STATE_ID");
        scalars<int>("ARRAY_ID"), scalars<int>("OBSERVATION_ID");
        sub("STATE");
        scalars<String>("OBS_MODE");
    }

    void sub(const char *name)
    {
        table_ = Table();
        name_ = std::string(name) + "/";
        attempt(prefix_ + name, [&] {
            table_ = main_.keywordSet().asTable(name, TableLock(TableLock::NoLocking));
        });
    }

    bool has(const char *column) const
    {
        return !table_.isNull() && table_.tableDesc().isColumn(column);
    }

    template <class T> void scalars(const char *column)
    {
        if (has(column))
            attempt(prefix_ + name_ + column, [&] { read_scalars<T>(table_, column); });
    }

    /* Reads cells one by one and several at once. These go different ways through
     * casacore, and each leaves behind what the other finds. The ranks begin with
     * several. */
    template <class T> void arrays(const char *column)
    {
        const std::string what = prefix_ + name_ + column;
        if (!has(column)) return;
        attempt(what, [&] { read_range<T>(table_, column); });
        attempt(what, [&] { read_cells<T>(table_, column); });
        attempt(what, [&] { read_range<T>(table_, column); });
    }

    std::string prefix_, path_, name_;
    Table main_, table_;
};

/* Lowers the limit, and returns whether it was lowered. */
bool limit(int resource, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0) return false;
    if (now.rlim_cur <= most) return false;
    now.rlim_cur = most;
    return setrlimit(static_cast<__rlimit_resource_t>(resource), &now) == 0;
}

} // namespace

int main(int argc, char **argv)
{
    (void)limit(RLIMIT_CORE, 0);
    (void)limit(RLIMIT_CPU, MAX_CPU_S);
    if (!has_shadow) is_bounded_here = limit(RLIMIT_AS, MAX_BYTES);
    casacore::LogSinkInterface *silent = new casacore::NullLogSink;
    casacore::LogSink::globalSink(silent);
    for (int k = 2; k < argc; ++k)
        Set(std::to_string(k - 2), argv[k]).check(argv[1]);
    say("done");
    _exit(0); /* casacore's own end is one more thing that may go wrong */
}
