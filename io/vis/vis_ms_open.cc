/* Opens a MeasurementSet: finds what it holds, and which rows make a segment. */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "tess_log.h"
#include "tess_mem.h"
#include "tess_words.h"
#include "vis_ms.h"

namespace tess_ms
{
namespace
{

/* Rows of one field and data description, as the scan finds them. */
struct Group {
    std::vector<Run> runs;
    int64_t num_rows = 0;
    double time_min = HUGE_VAL, time_max = -HUGE_VAL;
    std::vector<double> intervals; /* of the first rows */

    void add(int64_t table_row, double time, double interval)
    {
        const size_t max_intervals = 1 << 16;
        if (!runs.empty() && runs.back().table_row + runs.back().num_rows == table_row)
            ++runs.back().num_rows;
        else
            runs.push_back({table_row, num_rows, 1});
        ++num_rows;
        if (std::isfinite(time)) {
            time_min = std::min(time_min, time);
            time_max = std::max(time_max, time);
        }
        if (intervals.size() < max_intervals && std::isfinite(interval))
            intervals.push_back(interval);
    }
};

using Groups = std::map<std::pair<int, int>, Group>; /* by (data description, field) */

struct DataDescription {
    int spw, polarization;
};

void copy_text(char *to, size_t size, const String &from)
{
    snprintf(to, size, "%s", from.c_str());
}

template <class T> T *array_of(size_t count)
{
    T *array =
        static_cast<T *>(tess_alloc_zero(static_cast<int64_t>(count), sizeof(T)));
    if (!array) throw std::bad_alloc();
    return array;
}

void read_observation(const Reader &reader, tess_vis_meta &meta)
{
    const Table table = subtable(reader, "OBSERVATION");
    if (table.nrow() == 0) return;
    const auto text = [&table](const char *column, char *to, size_t size) {
        if (table.tableDesc().isColumn(column))
            copy_text(to, size, ScalarColumn<String>(table, column)(0));
    };
    text("TELESCOPE_NAME", meta.telescope, sizeof meta.telescope);
    text("OBSERVER", meta.observer, sizeof meta.observer);
    text("PROJECT", meta.project, sizeof meta.project);
}

void read_antennas(const Reader &reader, tess_vis_meta &meta)
{
    const Table table = subtable(reader, "ANTENNA");
    const ScalarColumn<String> name(table, "NAME");
    const ArrayColumn<Double> position(table, "POSITION");
    const ScalarColumn<Double> diameter(table, "DISH_DIAMETER");
    const size_t count = table.nrow();
    meta.antenna = array_of<tess_vis_antenna>(count);
    meta.num_antennas = static_cast<int>(count);
    for (size_t k = 0; k < count; ++k) {
        tess_vis_antenna &antenna = meta.antenna[k];
        copy_text(antenna.name, sizeof antenna.name, name(k));
        antenna.diameter_m = diameter(k);
        const Vector<Double> xyz = cell_of(reader, position, k);
        for (size_t axis = 0; axis < 3 && axis < xyz.size(); ++axis)
            antenna.xyz_m[axis] = xyz[axis];
    }
}

void read_fields(const Reader &reader, tess_vis_meta &meta)
{
    const Table table = subtable(reader, "FIELD");
    const ScalarColumn<String> name(table, "NAME");
    const size_t count = table.nrow();
    meta.field = array_of<tess_vis_field>(count);
    meta.num_fields = static_cast<int>(count);
    for (size_t k = 0; k < count; ++k) {
        tess_vis_field &field = meta.field[k];
        field.id = static_cast<int>(k);
        copy_text(field.name, sizeof field.name, name(k));
    }
}

std::vector<DataDescription> read_descriptions(const Reader &reader)
{
    const Table table = subtable(reader, "DATA_DESCRIPTION");
    const ScalarColumn<Int> spw(table, "SPECTRAL_WINDOW_ID");
    const ScalarColumn<Int> polarization(table, "POLARIZATION_ID");
    std::vector<DataDescription> descriptions;
    for (rownr_t k = 0; k < table.nrow(); ++k)
        descriptions.push_back({spw(k), polarization(k)});
    return descriptions;
}

/* Finds where the chosen rows of each field and data description are. */
Groups scan_rows(const Reader &reader, const Chosen &chosen, int num_descriptions,
                 tess_vis_meta &meta)
{
    const int64_t slab = ROWS_AT_ONCE, total = meta.num_rows_total;
    const ScalarColumn<Int> description_id(reader.table(), "DATA_DESC_ID");
    const ScalarColumn<Int> field_id(reader.table(), "FIELD_ID");
    const View &view = *reader.views[0];
    Groups groups;
    Group *group = nullptr;
    std::pair<int, int> key;
    for (int64_t first = 0; first < total; first += slab) {
        const int64_t count = std::min(slab, total - first);
        const Slicer range(IPosition(1, first), IPosition(1, count));
        const Vector<Int> description = description_id.getColumnRange(range);
        const Vector<Int> field = field_id.getColumnRange(range);
        const Vector<Double> time = view.time.getColumnRange(range);
        const Vector<Double> interval = view.interval.getColumnRange(range);
        for (int64_t k = 0; k < count; ++k) {
            const size_t row = static_cast<size_t>(k);
            const std::pair<int, int> row_key(description[row], field[row]);
            if (!chosen.has(first + k)) continue;
            if (!group || row_key != key) {
                key = row_key;
                if (key.first < 0 || key.first >= num_descriptions || key.second < 0 ||
                    key.second >= meta.num_fields)
                    MS_FAIL(TESS_ERR_INPUT,
                            "%s: row %lld has DATA_DESC_ID %d of %d and FIELD_ID %d of "
                            "%d; the set is damaged",
                            reader.path.c_str(), static_cast<long long>(first + k),
                            key.first, num_descriptions, key.second, meta.num_fields);
                group = &groups[key];
            }
            group->add(first + k, time[row], interval[row]);
            ++meta.field[key.second].num_rows;
        }
    }
    if (groups.empty())
        MS_FAIL(TESS_ERR_USAGE, "%s: no rows are left by %s", reader.path.c_str(),
                chosen.text.c_str());
    return groups;
}

/* Finds the times that the rows of each field cover. */
std::vector<Span> times_of(const Groups &groups, const tess_vis_meta &meta)
{
    std::vector<Span> times(static_cast<size_t>(meta.num_fields));
    for (const auto &item : groups) {
        Span &span = times[static_cast<size_t>(item.first.second)];
        span.first = std::min(span.first, item.second.time_min);
        span.last = std::max(span.last, item.second.time_max);
    }
    return times;
}

/* Lists the fields with rows: "J0137+33 (0), 3C48 (1)". */
std::string field_list(const tess_vis_meta &meta)
{
    std::string text;
    for (int k = 0; k < meta.num_fields; ++k) {
        if (meta.field[k].num_rows == 0) continue;
        if (text.size() > 600) return text + ", ...";
        if (!text.empty()) text += ", ";
        text += std::string(meta.field[k].name) + " (" + std::to_string(k) + ")";
    }
    return text;
}

/* Counts the fields with rows that have this name. `compare` says which names are the
 * same. *found is the last such field. */
int fields_of_name(const tess_vis_meta &meta, const char *wanted,
                   int (*compare)(const char *, const char *), int *found)
{
    int count = 0;
    for (int k = 0; k < meta.num_fields; ++k)
        if (compare(meta.field[k].name, wanted) == 0 && meta.field[k].num_rows > 0) {
            *found = k;
            ++count;
        }
    return count;
}

/* Finds the field with rows that has this name, or else this number, which "#" may
 * precede: then a field whose name is a number is not meant. The case of letters
 * matters only if fields differ in nothing else. */
int find_field(const tess_vis_meta &meta, const char *wanted)
{
    int found = -1, num_found = fields_of_name(meta, wanted, strcmp, &found);
    if (num_found == 0) num_found = fields_of_name(meta, wanted, strcasecmp, &found);
    if (num_found > 1)
        MS_FAIL(TESS_ERR_USAGE,
                "%s: %d fields are called %s; give --field a number: %s", meta.path,
                num_found, wanted, field_list(meta).c_str());
    if (num_found == 1) return found;
    char *end = nullptr;
    wanted += *wanted == '#';
    const long number = strtol(wanted, &end, 10);
    if (end != wanted && *end == '\0' && number >= 0 && number < meta.num_fields &&
        meta.field[number].num_rows > 0)
        return static_cast<int>(number);
    MS_FAIL(TESS_ERR_USAGE, "%s: no rows of field %s; it has %s", meta.path, wanted,
            field_list(meta).c_str());
}

int choose_field(const tess_vis_meta &meta, const tess_vis_select &select)
{
    if (select.field) return find_field(meta, select.field);
    int first = -1, num_with_rows = 0;
    for (int k = meta.num_fields - 1; k >= 0; --k)
        if (meta.field[k].num_rows > 0) {
            first = k;
            ++num_with_rows;
        }
    if (num_with_rows > 1 && !select.any_field)
        MS_FAIL(TESS_ERR_USAGE,
                "%s: has %d fields; choose one with --field, or all with --mosaic, or "
                "without beams with --center: %s",
                meta.path, num_with_rows, field_list(meta).c_str());
    return first;
}

/* Brings the runs of several fields into the order of the table, and numbers their
 * rows. */
void close_runs(Segment &segment)
{
    std::sort(segment.runs.begin(), segment.runs.end(),
              [](const Run &a, const Run &b) { return a.table_row < b.table_row; });
    size_t last = 0;
    for (size_t k = 1; k < segment.runs.size(); ++k) {
        Run &previous = segment.runs[last];
        if (previous.table_row + previous.num_rows == segment.runs[k].table_row)
            previous.num_rows += segment.runs[k].num_rows;
        else
            segment.runs[++last] = segment.runs[k];
    }
    segment.runs.resize(last + 1);
    segment.runs.shrink_to_fit();
    segment.num_rows = 0;
    for (Run &run : segment.runs) {
        run.segment_row = segment.num_rows;
        segment.num_rows += run.num_rows;
    }
}

/* Returns the FITS code of casacore's number of a correlation type; 0 if there is none.
 */
tess_corr fits_corr(int stokes)
{
    /* casacore's numbers 1..12: I Q U V, RR RL LR LL, XX XY YX YY */
    static const tess_corr code[] = {0, 1, 2, 3, 4, -1, -3, -4, -2, -5, -7, -8, -6};
    return stokes > 0 && stokes < 13 ? code[stokes] : 0;
}

} // namespace

int casacore_stokes(tess_corr corr)
{
    for (int stokes = 1; stokes < 13; ++stokes)
        if (fits_corr(stokes) == corr) return stokes;
    return 0;
}

namespace
{

void read_correlations(const Reader &reader, int polarization,
                       tess_vis_segment &segment)
{
    const Table table = subtable(reader, "POLARIZATION");
    if (polarization < 0 || static_cast<rownr_t>(polarization) >= table.nrow())
        MS_FAIL(TESS_ERR_INPUT, "%s: POLARIZATION has no row %d; the set is damaged",
                reader.path.c_str(), polarization);
    const Vector<Int> type = cell_of(reader, ArrayColumn<Int>(table, "CORR_TYPE"),
                                     static_cast<size_t>(polarization));
    if (type.size() < 1 || type.size() > TESS_MAX_CORR)
        MS_FAIL(TESS_ERR_INPUT, "%s: %zu correlations; 1 to %d can be read",
                reader.path.c_str(), type.size(), TESS_MAX_CORR);
    segment.num_corr = static_cast<int>(type.size());
    for (size_t k = 0; k < type.size(); ++k) {
        segment.corr[k] = fits_corr(type[k]);
        if (segment.corr[k] == 0)
            MS_FAIL(TESS_ERR_INPUT,
                    "%s: correlation type %d is none of I Q U V, RR RL LR LL, XX XY YX "
                    "YY",
                    reader.path.c_str(), type[k]);
    }
}

/* Finds the channels [*first, *end) of a spectral window with `num_chan` channels; the
 * range is empty if none are selected. */
void selected_channels(const tess_vis_select &select, const Chosen::Channels &chosen,
                       int64_t num_chan, int64_t *first, int64_t *end)
{
    *first = std::max<int64_t>(select.chan_first, chosen.first);
    *end = select.chan_end > 0 ? std::min(select.chan_end, num_chan) : num_chan;
    *end = std::max(*first, std::min(*end, chosen.second));
}

void read_channels(const Reader &reader, const tess_vis_select &select,
                   const Chosen::Channels &chosen, int spw, Segment &rows,
                   tess_vis_segment &segment)
{
    const Table table = subtable(reader, "SPECTRAL_WINDOW");
    if (spw < 0 || static_cast<rownr_t>(spw) >= table.nrow())
        MS_FAIL(TESS_ERR_INPUT, "%s: SPECTRAL_WINDOW has no row %d; the set is damaged",
                reader.path.c_str(), spw);
    const size_t row = static_cast<size_t>(spw);
    const Vector<Double> freq =
        cell_of(reader, ArrayColumn<Double>(table, "CHAN_FREQ"), row);
    const Vector<Double> width =
        cell_of(reader, ArrayColumn<Double>(table, "CHAN_WIDTH"), row);
    int64_t first, end;
    rows.num_chan_file = static_cast<int64_t>(freq.size());
    selected_channels(select, chosen, rows.num_chan_file, &first, &end);
    rows.chan_first = segment.chan_first = first;
    rows.num_chan = segment.num_chan = end - first;
    const size_t count = static_cast<size_t>(segment.num_chan);
    segment.freq_hz = array_of<double>(count);
    segment.chan_width_hz = array_of<double>(count);
    segment.chan_spw = array_of<int32_t>(count);
    for (size_t k = 0; k < count; ++k) {
        const size_t chan = static_cast<size_t>(first) + k;
        if (!std::isfinite(freq[chan]) || freq[chan] <= 0.0)
            MS_FAIL(TESS_ERR_INPUT,
                    "%s: channel %zu of spectral window %d has frequency %g Hz; leave "
                    "it out with --channels or --spw",
                    reader.path.c_str(), chan, spw, freq[chan]);
        const double stored = chan < width.size() ? std::fabs(width[chan]) : 0.0;
        const size_t other = chan > 0 ? chan - 1 : std::min(chan + 1, freq.size() - 1);
        const double step = std::fabs(freq[chan] - freq[other]);
        segment.freq_hz[k] = freq[chan];
        segment.chan_width_hz[k] = std::isfinite(stored) && stored > 0.0 ? stored
                                   : step > 0.0                          ? step
                                                                         : 1.0;
        segment.chan_spw[k] = spw;
    }
}

bool spw_selected(const tess_vis_select &select, int spw)
{
    return select.num_spw == 0 || std::find(select.spw, select.spw + select.num_spw,
                                            spw) != select.spw + select.num_spw;
}

/* The time that rows cover. */
struct Times {
    double first = HUGE_VAL, last = -HUGE_VAL;
    std::vector<double> intervals;
};

/* Lists the groups that the selection takes, by data description. */
std::map<int, Segment> take_groups(const tess_vis_select &select, const Groups &groups,
                                   const std::vector<DataDescription> &descriptions,
                                   int field_selected, Times &times)
{
    std::map<int, Segment> taken;
    const bool all_fields = select.any_field && !select.field;
    for (const auto &item : groups) {
        const int description = item.first.first, field = item.first.second;
        if (!all_fields && field != field_selected) continue;
        if (!spw_selected(select, descriptions[description].spw)) continue;
        const Group &group = item.second;
        Segment &segment = taken[description];
        segment.runs.insert(segment.runs.end(), group.runs.begin(), group.runs.end());
        times.first = std::min(times.first, group.time_min);
        times.last = std::max(times.last, group.time_max);
        times.intervals.insert(times.intervals.end(), group.intervals.begin(),
                               group.intervals.end());
    }
    return taken;
}

/* Makes a segment of the rows of a data description and a range of channels, unless
 * none of these is selected. Returns the number of channels in the file, selected or
 * not. */
int64_t add_segment(Reader &reader, const tess_vis_select &select,
                    const Chosen::Channels &chosen, const DataDescription &description,
                    Segment rows, tess_vis_meta &meta)
{
    tess_vis_segment &segment = meta.segment[meta.num_segments++];
    read_channels(reader, select, chosen, description.spw, rows, segment);
    const int64_t in_file = rows.num_chan_file;
    if (segment.num_chan == 0) {
        tess_free(segment.freq_hz);
        tess_free(segment.chan_width_hz);
        tess_free(segment.chan_spw);
        segment = tess_vis_segment();
        --meta.num_segments;
        return in_file;
    }
    read_correlations(reader, description.polarization, segment);
    close_runs(rows);
    rows.num_corr = segment.num_corr;
    segment.num_rows = rows.num_rows;
    reader.segments->push_back(std::move(rows));
    return in_file;
}

/* The options that select rows and channels, for messages. */
std::string options_of(const tess_vis_select &select, const Chosen &chosen)
{
    std::string text;
    const auto add = [&text](bool given, const std::string &option) {
        if (given) text += (text.empty() ? "" : ", ") + option;
    };
    add(select.field != nullptr, "--field");
    add(select.num_spw > 0, "--spw");
    add(select.chan_first > 0 || select.chan_end > 0, "--channels");
    add(!chosen.text.empty(), chosen.text);
    return text;
}

/* Fails with the reason why no segment is left. */
void refuse_empty(const Reader &reader, const tess_vis_select &select,
                  const Chosen &chosen, int64_t max_spw_chan)
{
    const bool by_choice =
        select.num_spw > 0 || select.chan_first > 0 || select.chan_end > 0;
    if (max_spw_chan > 0 && select.chan_first >= max_spw_chan) {
        char range[48];
        tess_words_range(select.chan_first, select.chan_end, range, sizeof range);
        MS_FAIL(TESS_ERR_USAGE,
                "%s: --channels %s do not exist; its spectral windows have up to %lld "
                "channel%s",
                reader.path.c_str(), range, static_cast<long long>(max_spw_chan),
                max_spw_chan == 1 ? "" : "s");
    }
    if (by_choice)
        MS_FAIL(TESS_ERR_USAGE, "%s: no rows or channels are left by %s",
                reader.path.c_str(), options_of(select, chosen).c_str());
    MS_FAIL(TESS_ERR_INPUT, "%s: its spectral windows have no channels",
            reader.path.c_str());
}

void set_times(Times &times, tess_vis_meta &meta)
{
    if (times.first <= times.last) {
        meta.time_start_mjd_s = times.first;
        meta.time_end_mjd_s = times.last;
    }
    if (times.intervals.empty()) return;
    const auto half = static_cast<ptrdiff_t>(times.intervals.size() / 2);
    const auto middle = times.intervals.begin() + half;
    std::nth_element(times.intervals.begin(), middle, times.intervals.end());
    meta.integration_s = *middle;
}

/* Fails if a spectral window is chosen that the set does not have. */
void check_windows(const Reader &reader, const tess_vis_select &select,
                   const std::vector<DataDescription> &descriptions)
{
    std::set<int> there;
    for (const DataDescription &description : descriptions)
        there.insert(description.spw);
    for (int k = 0; k < select.num_spw && !there.empty(); ++k)
        if (there.count(select.spw[k]) == 0)
            MS_FAIL(TESS_ERR_USAGE,
                    "%s: has no spectral window %d (--spw); it has %d to %d",
                    reader.path.c_str(), select.spw[k], *there.begin(),
                    *there.rbegin());
}

/* Ranges of channels of a window, each of which makes a segment. */
std::vector<Chosen::Channels> ranges_of(const Chosen &chosen, int spw)
{
    const auto found = chosen.channels.find(spw);
    if (found == chosen.channels.end()) return {{0, INT64_MAX}};
    return found->second;
}

/* Makes segments of the groups that the selection takes, and finds what they cover in
 * time. */
void build_segments(Reader &reader, const tess_vis_select &select, const Chosen &chosen,
                    const Groups &groups,
                    const std::vector<DataDescription> &descriptions,
                    tess_vis_meta &meta)
{
    Times times;
    size_t num_ranges = 0;
    int64_t max_spw_chan = 0;
    check_windows(reader, select, descriptions);
    std::map<int, Segment> taken =
        take_groups(select, groups, descriptions, meta.field_selected, times);
    for (const auto &item : taken)
        num_ranges += ranges_of(chosen, descriptions[item.first].spw).size();
    meta.segment = array_of<tess_vis_segment>(num_ranges);
    for (const auto &item : taken) {
        const DataDescription &description = descriptions[item.first];
        for (const Chosen::Channels &range : ranges_of(chosen, description.spw)) {
            const int64_t in_file =
                add_segment(reader, select, range, description, item.second, meta);
            if (meta.min_spw_chan == 0 || in_file < meta.min_spw_chan)
                meta.min_spw_chan = in_file;
            max_spw_chan = std::max(max_spw_chan, in_file);
        }
    }
    if (meta.num_segments == 0) refuse_empty(reader, select, chosen, max_spw_chan);
    set_times(times, meta);
}

/* Lists the columns that can hold visibilities, for messages. */
std::string data_columns(const Table &table)
{
    std::string text;
    const casacore::TableDesc &desc = table.tableDesc();
    for (casacore::uInt k = 0; k < desc.ncolumn(); ++k)
        if (desc[k].isArray() && desc[k].dataType() == casacore::TpComplex)
            text += (text.empty() ? "" : ", ") + std::string(desc[k].name());
    return text.empty() ? "none" : text;
}

} // namespace

bool is_data_column(const Table &table, const char *name)
{
    const casacore::TableDesc &desc = table.tableDesc();
    return desc.isColumn(name) && desc[name].isArray() &&
           desc[name].dataType() == casacore::TpComplex;
}

namespace
{

/* Whether the first row of every segment has a cell of the right shape. */
template <class T>
bool is_filled(const ArrayColumn<T> &column, const Segments &segments)
{
    return std::all_of(segments.begin(), segments.end(), [&](const Segment &segment) {
        const rownr_t row = static_cast<rownr_t>(segment.runs[0].table_row);
        return column.isDefined(row) && column.shape(row).isEqual(segment.cell_shape());
    });
}

void check_data_column(const Reader &reader, const char *name, tess_status otherwise,
                       const char *option)
{
    const casacore::TableDesc &desc = reader.table().tableDesc();
    if (desc.isColumn(name) && desc[name].dataType() == casacore::TpDComplex)
        MS_FAIL(TESS_ERR_INPUT,
                "%s: column %s holds visibilities in double precision (dcomplex), "
                "which MeasurementSets do not have; copy them into a column of type "
                "complex, and choose that with %s",
                reader.path.c_str(), name, option);
    if (!is_data_column(reader.table(), name))
        MS_FAIL(otherwise, "%s: has no visibility column %s; choose with %s from: %s",
                reader.path.c_str(), name, option,
                data_columns(reader.table()).c_str());
}

void check_filled(const Reader &reader, const ArrayColumn<Complex> &column,
                  const char *name)
{
    if (!is_filled(column, *reader.segments))
        MS_FAIL(TESS_ERR_INPUT,
                "%s: column %s is not filled or its shape does not match the spectral "
                "window",
                reader.path.c_str(), name);
}

const char *choose_data_column(const Reader &reader, const char *wanted)
{
    const Table &table = reader.table();
    const char *name = wanted ? wanted : "DATA";
    if (!wanted && is_data_column(table, "CORRECTED_DATA")) {
        const ArrayColumn<Complex> corrected(table, "CORRECTED_DATA");
        if (is_filled(corrected, *reader.segments)) name = "CORRECTED_DATA";
    }
    check_data_column(reader, name, wanted ? TESS_ERR_USAGE : TESS_ERR_INPUT,
                      "--datacolumn");
    return name;
}

/* Chooses the column of visibilities, and the one that is subtracted if there is one,
 * and attaches them to the first view. */
void choose_columns(Reader &reader, const tess_vis_select &select, tess_vis_meta &meta)
{
    const char *data = choose_data_column(reader, select.data_column);
    const char *subtract = select.subtract_column;
    View &view = *reader.views[0];
    reader.data_column = data;
    if (subtract) {
        check_data_column(reader, subtract, TESS_ERR_USAGE, "--subtract-column");
        reader.subtract_column = subtract;
    }
    attach_data(view, reader);
    check_filled(reader, view.data, data);
    if (subtract) check_filled(reader, view.subtract, subtract);
    snprintf(meta.data_column, sizeof meta.data_column, "%s", data);
    tess_log_debug("%s: reading column %s", reader.path.c_str(), data);
}

} // namespace

void open_set(Reader &reader, const tess_vis_select &select, tess_vis_meta &meta)
{
    snprintf(meta.path, sizeof meta.path, "%s", reader.path.c_str());
    open_first_view(reader);
    meta.num_rows_total = static_cast<int64_t>(reader.table().nrow());
    read_observation(reader, meta);
    read_antennas(reader, meta);
    read_fields(reader, meta);
    const std::vector<DataDescription> descriptions = read_descriptions(reader);
    const Chosen chosen = choose_by(reader, select);
    const Groups groups =
        scan_rows(reader, chosen, static_cast<int>(descriptions.size()), meta);
    meta.field_selected = choose_field(meta, select);
    const tess_vis_field &field = meta.field[meta.field_selected];
    snprintf(meta.object, sizeof meta.object, "%s", field.name);
    build_segments(reader, select, chosen, groups, descriptions, meta);
    place_fields(reader, times_of(groups, meta), !select.field && select.any_field,
                 meta);
    read_lines(reader, select.wants_lines, meta);
    meta.equinox = 2000.0;
    meta.ra_rad = field.ra_rad;
    meta.dec_rad = field.dec_rad;
    reader.uvw_only = select.uvw_only;
    reader.model_only = select.model_only || select.uvw_only;
    if (reader.model_only) return;
    choose_columns(reader, select, meta);
}

} // namespace tess_ms
