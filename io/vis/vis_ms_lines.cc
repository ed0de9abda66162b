/* Reads what a MeasurementSet tells of spectral lines: frequencies at rest, and the
 * frame of those of its channels. */
#include <casacore/measures/Measures/MFrequency.h>

#include "vis_ms.h"

namespace tess_ms
{
namespace
{

/* Returns the first frequency at rest that SOURCE has for a source in any of the
 * windows of the segments; 0: none. The table is optional. */
double rest_of(const Reader &reader, int source, const tess_vis_meta &meta)
{
    const Table table = subtable(reader, "SOURCE");
    const casacore::TableDesc &desc = table.tableDesc();
    if (!desc.isColumn("REST_FREQUENCY")) return 0;
    const ScalarColumn<Int> id(table, "SOURCE_ID");
    const ScalarColumn<Int> window(table, "SPECTRAL_WINDOW_ID");
    const ArrayColumn<Double> rest(table, "REST_FREQUENCY");
    for (rownr_t row = 0; row < table.nrow(); ++row) {
        bool is_there = window(row) < 0;
        for (int k = 0; k < meta.num_segments; ++k)
            is_there = is_there || meta.segment[k].chan_spw[0] == window(row);
        if (!is_there || id(row) != source || !rest.isDefined(row)) continue;
        const Vector<Double> lines = cell_of(reader, rest, row);
        if (!lines.empty() && std::isfinite(lines[0]) && lines[0] > 0) return lines[0];
    }
    return 0;
}

/* Finds the frame of the frequencies of the segments: "" if all are topocentric, and
 * else that of the first that is not. */
void read_frame(const Reader &reader, tess_vis_meta &meta)
{
    const Table table = subtable(reader, "SPECTRAL_WINDOW");
    if (!table.tableDesc().isColumn("MEAS_FREQ_REF")) return;
    const ScalarColumn<Int> frame(table, "MEAS_FREQ_REF");
    for (int k = 0; k < meta.num_segments && !meta.line.freq_frame[0]; ++k) {
        const int type = frame(static_cast<rownr_t>(meta.segment[k].chan_spw[0]));
        if (type == casacore::MFrequency::TOPO || type < 0 ||
            type >= casacore::MFrequency::N_Types)
            continue;
        snprintf(
            meta.line.freq_frame, sizeof meta.line.freq_frame, "%s",
            casacore::MFrequency::showType(static_cast<casacore::uInt>(type)).c_str());
    }
}

} // namespace

void read_lines(const Reader &reader, tess_vis_meta &meta)
{
    read_frame(reader, meta);
    const Table fields = subtable(reader, "FIELD");
    if (!reader.table().keywordSet().isDefined("SOURCE") ||
        !fields.tableDesc().isColumn("SOURCE_ID"))
        return;
    const ScalarColumn<Int> source(fields, "SOURCE_ID");
    const tess_vis_field &field = meta.field[meta.field_selected];
    meta.line.rest_hz = rest_of(reader, source(static_cast<rownr_t>(field.id)), meta);
}

} // namespace tess_ms
