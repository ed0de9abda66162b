/* Makes a new MeasurementSet: its columns, their storage, and the subtables. */
#include <casacore/casa/Arrays/ArrayMath.h>
#include <casacore/casa/Arrays/Matrix.h>
#include <casacore/ms/MeasurementSets/MSColumns.h>
#include <casacore/ms/MeasurementSets/MeasurementSet.h>
#include <casacore/tables/DataMan/IncrementalStMan.h>
#include <casacore/tables/DataMan/StandardStMan.h>
#include <casacore/tables/DataMan/TiledColumnStMan.h>
#include <casacore/tables/Tables/SetupNewTab.h>
#include <casacore/tables/Tables/TableRecord.h>

#include <cstdio>

#include "vis_ms.h"

namespace tess_ms
{

IPosition tile_shape(int64_t num_corr, int64_t num_chan)
{
    /* 1 MiB of visibilities: whole reads for a few rows, while a choice of channels
     * does not read all of a wide band */
    const int64_t max_chan = 256, tile_cells = (1 << 20) / 8;
    const int64_t chan = std::min(num_chan, max_chan);
    return IPosition(3, num_corr, chan,
                     std::max<int64_t>(1, tile_cells / (num_corr * chan)));
}

namespace
{

using casacore::ColumnDesc;
using casacore::Matrix;
using casacore::MeasurementSet;
using casacore::MSColumns;
using casacore::TableDesc;

void fix_shape(TableDesc &desc, const char *column, const IPosition &shape, int options)
{
    desc.rwColumnDesc(column).setOptions(0);
    desc.rwColumnDesc(column).setShape(shape);
    desc.rwColumnDesc(column).setOptions(options);
}

TableDesc describe_columns(const tess_vis_segment &segment)
{
    TableDesc desc = MeasurementSet::requiredTableDesc();
    MeasurementSet::addColumnToDesc(desc, MeasurementSet::DATA, 2);
    MeasurementSet::addColumnToDesc(desc, MeasurementSet::WEIGHT_SPECTRUM, 2);
    const IPosition cell(2, segment.num_corr, segment.num_chan);
    for (const char *column : {"DATA", "FLAG", "WEIGHT_SPECTRUM"})
        fix_shape(desc, column, cell, ColumnDesc::FixedShape);
    for (const char *column : {"WEIGHT", "SIGMA"})
        fix_shape(desc, column, IPosition(1, segment.num_corr),
                  ColumnDesc::FixedShape | ColumnDesc::Direct);
    return desc;
}

/* Values that are the same in all rows are put once, into the first row; rows added
 * later repeat them. */
void fill_constants(MeasurementSet &ms)
{
    MSColumns columns(ms);
    columns.setEpochRef(casacore::MEpoch::UTC);
    columns.setDirectionRef(casacore::MDirection::J2000);
    columns.setUVWRef(casacore::Muvw::J2000);
    ms.addRow(1);
    columns.arrayId().put(0, 0);
    columns.dataDescId().put(0, 0);
    columns.feed1().put(0, 0);
    columns.feed2().put(0, 0);
    columns.fieldId().put(0, 0);
    columns.observationId().put(0, 0);
    columns.processorId().put(0, 0);
    columns.scanNumber().put(0, 1);
    columns.stateId().put(0, 0);
}

void fill_antennas(MSColumns &columns, const tess_vis_meta &meta)
{
    auto &antenna = columns.antenna();
    for (int k = 0; k < meta.num_antennas; ++k) {
        const tess_vis_antenna &from = meta.antenna[k];
        const rownr_t row = static_cast<rownr_t>(k);
        Vector<Double> position(3);
        std::copy_n(from.xyz_m, 3, position.begin());
        antenna.name().put(row, from.name);
        antenna.station().put(row, from.name);
        antenna.type().put(row, "GROUND-BASED");
        antenna.mount().put(row, "ALT-AZ");
        antenna.position().put(row, position);
        antenna.offset().put(row, Vector<Double>(3, 0.0));
        antenna.dishDiameter().put(row, from.diameter_m);
        antenna.flagRow().put(row, false);
    }
}

void fill_feeds(MSColumns &columns, const tess_vis_meta &meta)
{
    const tess_corr first = meta.segment[0].corr[0];
    const bool circular = first <= -1 && first >= -4;
    Vector<String> receptors(2);
    receptors[0] = circular ? "R" : "X";
    receptors[1] = circular ? "L" : "Y";
    Matrix<Complex> response(2, 2, Complex(0.0F, 0.0F));
    response(0, 0) = response(1, 1) = Complex(1.0F, 0.0F);
    auto &feed = columns.feed();
    for (int k = 0; k < meta.num_antennas; ++k) {
        const rownr_t row = static_cast<rownr_t>(k);
        feed.antennaId().put(row, k);
        feed.feedId().put(row, 0);
        feed.spectralWindowId().put(row, -1);
        feed.time().put(row, meta.time_start_mjd_s);
        feed.interval().put(row, 0.0); /* valid at all times */
        feed.numReceptors().put(row, 2);
        feed.beamId().put(row, -1);
        feed.beamOffset().put(row, Matrix<Double>(2, 2, 0.0));
        feed.polarizationType().put(row, receptors);
        feed.polResponse().put(row, response);
        feed.position().put(row, Vector<Double>(3, 0.0));
        feed.receptorAngle().put(row, Vector<Double>(2, 0.0));
    }
}

void fill_spectral_window(MSColumns &columns, const tess_vis_segment &segment)
{
    const size_t num_chan = static_cast<size_t>(segment.num_chan);
    Vector<Double> freq(num_chan), width(num_chan), resolution(num_chan);
    double bandwidth = 0.0;
    const double sign =
        num_chan > 1 && segment.freq_hz[1] < segment.freq_hz[0] ? -1.0 : 1.0;
    for (size_t k = 0; k < num_chan; ++k) {
        freq[k] = segment.freq_hz[k];
        resolution[k] = segment.chan_width_hz[k];
        width[k] = sign * resolution[k];
        bandwidth += resolution[k];
    }
    auto &spw = columns.spectralWindow();
    spw.name().put(0, "SPW0");
    spw.numChan().put(0, static_cast<Int>(segment.num_chan));
    spw.chanFreq().put(0, freq);
    spw.chanWidth().put(0, width);
    spw.effectiveBW().put(0, resolution);
    spw.resolution().put(0, resolution);
    spw.refFrequency().put(0, freq[0]);
    spw.totalBandwidth().put(0, bandwidth);
    spw.measFreqRef().put(0, casacore::MFrequency::TOPO);
    spw.netSideband().put(0, 1);
    spw.ifConvChain().put(0, 0);
    spw.freqGroup().put(0, 0);
    spw.freqGroupName().put(0, "");
    spw.flagRow().put(0, false);
}

void fill_polarization(MSColumns &columns, const tess_vis_segment &segment)
{
    const size_t num_corr = static_cast<size_t>(segment.num_corr);
    Vector<Int> type(num_corr);
    Matrix<Int> product(2, num_corr, 0);
    for (size_t k = 0; k < num_corr; ++k) {
        type[k] = casacore_stokes(segment.corr[k]);
        if (type[k] < 5) continue; /* Stokes parameters are no products of receptors */
        product(0, k) = (type[k] - 5) % 4 / 2;
        product(1, k) = (type[k] - 5) % 2;
    }
    columns.polarization().numCorr().put(0, segment.num_corr);
    columns.polarization().corrType().put(0, type);
    columns.polarization().corrProduct().put(0, product);
    columns.polarization().flagRow().put(0, false);
    columns.dataDescription().spectralWindowId().put(0, 0);
    columns.dataDescription().polarizationId().put(0, 0);
    columns.dataDescription().flagRow().put(0, false);
}

Matrix<Double> direction(double ra_rad, double dec_rad)
{
    Matrix<Double> place(2, 1);
    place(0, 0) = ra_rad;
    place(1, 0) = dec_rad;
    return place;
}

void fill_field(MSColumns &columns, rownr_t row, const tess_vis_field &from,
                double time_mjd_s)
{
    const Matrix<Double> centre = direction(from.ra_rad, from.dec_rad);
    auto &field = columns.field();
    field.name().put(row, from.name);
    field.code().put(row, "");
    field.time().put(row, time_mjd_s);
    field.numPoly().put(row, 0);
    field.delayDir().put(row, centre);
    field.phaseDir().put(row, centre);
    field.referenceDir().put(row,
                             direction(from.pointing_rad[0], from.pointing_rad[1]));
    field.sourceId().put(row, -1);
    field.flagRow().put(row, false);
}

/* The number of fields of a set: without scans, there is one. */
int num_fields_of(const tess_vis_meta &meta)
{
    return meta.segment[0].num_scans > 0 ? meta.num_fields : 1;
}

void fill_fields(MSColumns &columns, const tess_vis_meta &meta)
{
    if (meta.segment[0].num_scans > 0) {
        for (int k = 0; k < meta.num_fields; ++k)
            fill_field(columns, static_cast<rownr_t>(k), meta.field[k],
                       meta.time_start_mjd_s);
        return;
    }
    tess_vis_field only = {};
    only.ra_rad = only.pointing_rad[0] = meta.ra_rad;
    only.dec_rad = only.pointing_rad[1] = meta.dec_rad;
    std::snprintf(only.name, sizeof only.name, "%s", meta.object);
    fill_field(columns, 0, only, meta.time_start_mjd_s);
}

void fill_observation(MSColumns &columns, const tess_vis_meta &meta)
{
    Vector<Double> range(2);
    range[0] = meta.time_start_mjd_s;
    range[1] = meta.time_end_mjd_s;
    auto &observation = columns.observation();
    observation.telescopeName().put(0, meta.telescope);
    observation.timeRange().put(0, range);
    observation.observer().put(0, meta.observer);
    observation.log().put(0, Vector<String>(1, ""));
    observation.scheduleType().put(0, "");
    observation.schedule().put(0, Vector<String>(1, ""));
    observation.project().put(0, meta.project);
    observation.releaseDate().put(0, 0.0);
    observation.flagRow().put(0, false);
}

void fill_bookkeeping(MSColumns &columns, const tess_vis_meta &meta)
{
    auto &history = columns.history();
    history.time().put(0, meta.time_start_mjd_s);
    history.observationId().put(0, 0);
    history.message().put(0, "created");
    history.priority().put(0, "INFO");
    history.origin().put(0, "tessera");
    history.objectId().put(0, -1);
    history.application().put(0, "tessera");
    history.cliCommand().put(0, Vector<String>(1, ""));
    history.appParams().put(0, Vector<String>(1, ""));
    auto &state = columns.state();
    state.sig().put(0, true);
    state.ref().put(0, false);
    state.cal().put(0, 0.0);
    state.load().put(0, 0.0);
    state.subScan().put(0, 0);
    state.obsMode().put(0, "OBSERVE_TARGET");
    state.flagRow().put(0, false);
    auto &processor = columns.processor();
    processor.type().put(0, "CORRELATOR");
    processor.subType().put(0, "");
    processor.typeId().put(0, -1);
    processor.modeId().put(0, -1);
    processor.flagRow().put(0, false);
}

void fill_subtables(MeasurementSet &ms, const tess_vis_meta &meta)
{
    const rownr_t num_antennas = static_cast<rownr_t>(meta.num_antennas);
    ms.antenna().addRow(num_antennas);
    ms.feed().addRow(num_antennas);
    ms.spectralWindow().addRow(1);
    ms.polarization().addRow(1);
    ms.dataDescription().addRow(1);
    ms.field().addRow(static_cast<rownr_t>(num_fields_of(meta)));
    ms.observation().addRow(1);
    ms.history().addRow(1);
    ms.state().addRow(1);
    ms.processor().addRow(1);
    MSColumns columns(ms);
    fill_antennas(columns, meta);
    fill_feeds(columns, meta);
    fill_spectral_window(columns, meta.segment[0]);
    fill_polarization(columns, meta.segment[0]);
    fill_fields(columns, meta);
    fill_observation(columns, meta);
    fill_bookkeeping(columns, meta);
}

/* Other processes do not see the set before it is complete. Tables without locks have
 * no files of locks, which casacore would read again; where it cannot, it ends the
 * program. */
Table make_main_table(const std::string &path, const tess_vis_segment &segment)
{
    const IPosition tile = tile_shape(segment.num_corr, segment.num_chan);
    casacore::SetupNewTable setup(path, describe_columns(segment), Table::New);
    const casacore::IncrementalStMan constant("Constant");
    const casacore::StandardStMan per_row("PerRow", -2000);
    setup.bindAll(constant);
    for (const char *column : {"TIME", "TIME_CENTROID", "INTERVAL", "EXPOSURE",
                               "ANTENNA1", "ANTENNA2", "FLAG_ROW", "WEIGHT", "SIGMA"})
        setup.bindColumn(column, per_row);
    if (segment.num_scans > 0)
        for (const char *column : {"FIELD_ID", "SCAN_NUMBER"})
            setup.bindColumn(column, per_row);
    for (const char *column : {"DATA", "FLAG", "WEIGHT_SPECTRUM"})
        setup.bindColumn(column,
                         casacore::TiledColumnStMan(String("Tiled") + column, tile));
    setup.bindColumn("UVW",
                     casacore::TiledColumnStMan("TiledUVW", IPosition(2, 3, 1 << 14)));
    return Table(setup, TableLock(TableLock::NoLocking));
}

/* Makes the empty subtables. They stay open in `parts`: a table that is opened a second
 * time keeps its way of locking only as long as it is open. */
void make_subtables(Table &table, std::vector<Table> &parts)
{
    const std::pair<MeasurementSet::PredefinedKeywords, TableDesc> wanted[] = {
        {MeasurementSet::ANTENNA, casacore::MSAntenna::requiredTableDesc()},
        {MeasurementSet::DATA_DESCRIPTION,
         casacore::MSDataDescription::requiredTableDesc()},
        {MeasurementSet::FEED, casacore::MSFeed::requiredTableDesc()},
        {MeasurementSet::FIELD, casacore::MSField::requiredTableDesc()},
        {MeasurementSet::FLAG_CMD, casacore::MSFlagCmd::requiredTableDesc()},
        {MeasurementSet::HISTORY, casacore::MSHistory::requiredTableDesc()},
        {MeasurementSet::OBSERVATION, casacore::MSObservation::requiredTableDesc()},
        {MeasurementSet::POINTING, casacore::MSPointing::requiredTableDesc()},
        {MeasurementSet::POLARIZATION, casacore::MSPolarization::requiredTableDesc()},
        {MeasurementSet::PROCESSOR, casacore::MSProcessor::requiredTableDesc()},
        {MeasurementSet::SPECTRAL_WINDOW,
         casacore::MSSpectralWindow::requiredTableDesc()},
        {MeasurementSet::STATE, casacore::MSState::requiredTableDesc()}};
    for (const auto &part : wanted) {
        const String name = MeasurementSet::keywordName(part.first);
        casacore::SetupNewTable setup(table.tableName() + "/" + name, part.second,
                                      Table::New);
        parts.emplace_back(setup, TableLock(TableLock::NoLocking));
        table.rwKeywordSet().defineTable(name, parts.back());
    }
}

} // namespace

void mark_for_delete(Table &table)
{
    const casacore::TableRecord &keywords = table.keywordSet();
    for (casacore::uInt k = 0; k < keywords.nfields(); ++k)
        if (keywords.dataType(k) == casacore::TpTable)
            keywords.asTable(k).markForDelete();
    table.markForDelete();
}

void put_scans(Table &table, const tess_vis_segment &segment)
{
    ScalarColumn<Int> field(table, "FIELD_ID"), number(table, "SCAN_NUMBER");
    ssize_t row = 0;
    for (int64_t k = 0; k < segment.num_scans; ++k) {
        const tess_vis_scan &scan = segment.scan[k];
        const casacore::Slicer rows(IPosition(1, row), IPosition(1, scan.num_rows));
        const size_t count = static_cast<size_t>(scan.num_rows);
        field.putColumnRange(rows, Vector<Int>(count, scan.field));
        number.putColumnRange(rows, Vector<Int>(count, static_cast<Int>(k + 1)));
        row += scan.num_rows;
    }
}

void make_set(const std::string &path, const tess_vis_meta &meta)
{
    /* its folder is there, and empty */
    Table table = make_main_table(path, meta.segment[0]);
    std::vector<Table> parts;
    try {
        make_subtables(table, parts);
        MeasurementSet ms(table);
        fill_constants(ms);
        fill_subtables(ms, meta);
        ms.flush(casacore::True);
    } catch (...) {
        /* or the destructors flush again, onto a disk that may be full */
        for (Table &part : parts)
            part.markForDelete();
        table.markForDelete();
        throw;
    }
}

} // namespace tess_ms
