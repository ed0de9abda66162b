/* Lets several threads read one MeasurementSet, each through a view of its own. Reading
 * a column changes what casacore keeps of a table (buckets, tiles, positions in files).
 * casacore keeps this once for each name by which a table is opened, so two threads
 * must not read by the same name. A table is opened as often as there are names for it,
 * and these share nothing: /proc/self/root is the root folder under another name. */
#include <casacore/tables/DataMan/StandardStManAccessor.h>
#include <casacore/tables/DataMan/TiledStManAccessor.h>
#include <casacore/tables/Tables/TableRecord.h>

#include "tess_log.h"
#include "vis_ms.h"

namespace tess_ms
{
namespace
{

/* The standard storage manager keeps all columns of some rows in a bucket, and by
 * itself two buckets in memory: ten columns of many rows, one after the other, would be
 * read from the file ten times. All of ROWS_AT_ONCE fit into this. */
const int bucket_bytes = 8 << 20;

/* What other views than the first keep: for TEAM_ROWS_AT_ONCE. casacore limits tiles to
 * a quarter of the machine's memory. */
const int team_bucket_bytes = bucket_bytes / MAX_VIEWS, team_tiles_mib = 32;

/* Calls use(type, name, bucket_bytes) for each storage manager of the table. */
template <class Use> void for_each_manager(const Table &table, Use use)
{
    const casacore::Record managers = table.dataManagerInfo();
    for (casacore::uInt k = 0; k < managers.nfields(); ++k) {
        const casacore::Record &manager = managers.subRecord(k);
        const casacore::Record &spec = manager.subRecord("SPEC");
        use(manager.asString("TYPE"), manager.asString("NAME"),
            spec.isDefined("BUCKETSIZE") ? spec.asInt("BUCKETSIZE") : 0);
    }
}

bool is_tiled(const String &type)
{
    return type.startsWith("Tiled");
}

void size_caches(const Table &table, bool is_first)
{
    const int cache_bytes = is_first ? bucket_bytes : team_bucket_bytes;
    for_each_manager(table, [&](const String &type, const String &name, int bytes) {
        if (is_tiled(type) && !is_first)
            casacore::ROTiledStManAccessor(table, name)
                .setMaximumCacheSize(team_tiles_mib);
        if (type == "StandardStMan" && bytes > 0 && bytes <= cache_bytes / 4)
            casacore::ROStandardStManAccessor(table, name)
                .setCacheSize(static_cast<casacore::uInt>(cache_bytes / bytes), false);
    });
}

/* Whether a table opened by another name shares nothing with it: it refers to no other
 * table, and has no engines that might. */
bool stands_alone(const Table &table)
{
    const casacore::Block<String> parts = table.getPartNames(casacore::True);
    bool alone = parts.nelements() == 1 && parts[0] == table.tableName();
    for_each_manager(table, [&](const String &type, const String &, int) {
        alone = alone && (is_tiled(type) || type == "StandardStMan" ||
                          type == "IncrementalStMan");
    });
    return alone;
}

std::unique_ptr<View> view_of(const Table &table, bool is_first)
{
    auto view = std::make_unique<View>();
    view->table = table;
    view->time.attach(table, "TIME");
    view->interval.attach(table, "INTERVAL");
    view->antenna1.attach(table, "ANTENNA1");
    view->antenna2.attach(table, "ANTENNA2");
    view->flag_row.attach(table, "FLAG_ROW");
    view->uvw.attach(table, "UVW");
    view->flag.attach(table, "FLAG");
    view->weight.attach(table, "WEIGHT");
    view->has_spectrum = table.tableDesc().isColumn("WEIGHT_SPECTRUM");
    if (view->has_spectrum) view->weight_spectrum.attach(table, "WEIGHT_SPECTRUM");
    size_caches(table, is_first);
    return view;
}

/* many ranks open the same set, often without permission to write its lock file */
Table table_named(const std::string &name)
{
    return Table(name, TableLock(TableLock::NoLocking), Table::Old);
}

} // namespace

std::string name_of_view(const Reader &reader, size_t index)
{
    std::string name = reader.name;
    for (size_t k = 0; k < index; ++k)
        name.insert(0, "/proc/self/root");
    std::error_code error;
    return std::filesystem::equivalent(name, reader.name, error) ? name : "";
}

void open_first_view(Reader &reader)
{
    static const char *const required[] = {
        "UVW",      "FLAG",     "WEIGHT",   "TIME",     "INTERVAL",
        "FLAG_ROW", "ANTENNA1", "ANTENNA2", "FIELD_ID", "DATA_DESC_ID"};
    reader.name = casacore_name(reader.path);
    const Table table = table_named(reader.name);
    for (const char *name : required)
        if (!table.tableDesc().isColumn(name))
            MS_FAIL(TESS_ERR_INPUT, "%s: has no column %s; not a MeasurementSet",
                    reader.path.c_str(), name);
    if (table.nrow() == 0)
        MS_FAIL(TESS_ERR_INPUT, "%s: has no rows; nothing to image",
                reader.path.c_str());
    reader.views.push_back(view_of(table, true));
    reader.has_all_views = !stands_alone(table);
}

void attach_data(View &view, const Reader &reader)
{
    if (!reader.data_column.empty()) view.data.attach(view.table, reader.data_column);
    if (!reader.subtract_column.empty())
        view.subtract.attach(view.table, reader.subtract_column);
}

void open_views(Reader &reader, int count)
{
    const size_t wanted = static_cast<size_t>(std::min<int>(count, MAX_VIEWS));
    while (reader.views.size() < wanted && !reader.has_all_views) {
        const std::string name = name_of_view(reader, reader.views.size());
        std::unique_ptr<View> view;
        try {
            if (!name.empty()) view = view_of(table_named(name), false);
            if (view) attach_data(*view, reader);
        } catch (const casacore::AipsError &) { /* too many files, perhaps */
            view.reset();
        }
        if (view) {
            reader.views.push_back(std::move(view));
            continue;
        }
        reader.has_all_views = true;
        tess_log_debug("%s: is read by %zu threads; it cannot be opened more often",
                       reader.path.c_str(), reader.views.size());
    }
}

} // namespace tess_ms
