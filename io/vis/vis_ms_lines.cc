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

std::string name_of(int frame)
{
    return casacore::MFrequency::showType(static_cast<casacore::uInt>(frame));
}

/* Finds the frame of the frequencies of the segments: "" if they are topocentric. If
 * `wants_lines`, segments of several frames are refused: no axis would be right for all
 * of them. */
void read_frame(const Reader &reader, bool wants_lines, tess_vis_meta &meta)
{
    const Table table = subtable(reader, "SPECTRAL_WINDOW");
    if (!table.tableDesc().isColumn("MEAS_FREQ_REF")) return;
    const ScalarColumn<Int> frame(table, "MEAS_FREQ_REF");
    int common = casacore::MFrequency::TOPO;
    for (int k = 0; k < meta.num_segments; ++k) {
        const auto row = static_cast<rownr_t>(meta.segment[k].chan_spw[0]);
        const int told = frame.isDefined(row) ? frame(row) : -1;
        const int type = told < 0 || told >= casacore::MFrequency::N_Types
                             ? static_cast<int>(casacore::MFrequency::TOPO)
                             : told;
        if (k > 0 && type != common && wants_lines)
            MS_FAIL(TESS_ERR_INPUT,
                    "%s: frequencies of windows %d and %d are in the frames %s and %s; "
                    "choose windows of one frame with --spw",
                    meta.path, meta.segment[0].chan_spw[0], meta.segment[k].chan_spw[0],
                    name_of(common).c_str(), name_of(type).c_str());
        if (k > 0 && type != common) return;
        common = type;
    }
    if (common != casacore::MFrequency::TOPO)
        snprintf(meta.line.freq_frame, sizeof meta.line.freq_frame, "%s",
                 name_of(common).c_str());
}

} // namespace

void read_lines(const Reader &reader, bool wants_lines, tess_vis_meta &meta)
{
    read_frame(reader, wants_lines, meta);
    if (!wants_lines) return;
    const Table fields = subtable(reader, "FIELD");
    if (!reader.table().keywordSet().isDefined("SOURCE") ||
        !fields.tableDesc().isColumn("SOURCE_ID"))
        return;
    const ScalarColumn<Int> source(fields, "SOURCE_ID");
    const tess_vis_field &field = meta.field[meta.field_selected];
    meta.line.rest_hz = rest_of(reader, source(static_cast<rownr_t>(field.id)), meta);
}

} // namespace tess_ms
