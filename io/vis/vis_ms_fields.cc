/* Converts the directions of the fields of a MeasurementSet, which may be in any frame,
 * to J2000 by casacore's measures. */
#include <casacore/measures/Measures/MCDirection.h>
#include <casacore/measures/Measures/MDirection.h>
#include <casacore/measures/Measures/MEpoch.h>
#include <casacore/measures/Measures/MPosition.h>
#include <casacore/measures/Measures/MeasConvert.h>
#include <casacore/measures/Measures/MeasFrame.h>
#include <casacore/measures/Measures/MeasIERS.h>
#include <casacore/measures/TableMeasures/ArrayMeasColumn.h>

#include <erfa.h>

#include <array>

#include "sky_frame.h"
#include "tess_const.h"
#include "tess_log.h"
#include "vis_ms.h"

namespace tess_ms
{
namespace
{

using casacore::MDirection;
using casacore::MeasFrame;
using casacore::MEpoch;
using casacore::MPosition;
using casacore::MVDirection;

/* While a field is observed, a direction may move on the sky by this part of the
 * resolution. The phases of the longest baseline then change by .06. */
const double MOST_MOVED = 0.01;

/* Whether a frame is fixed to the sky. */
bool is_fixed(casacore::uInt type)
{
    switch (type) {
    case MDirection::J2000:
    case MDirection::ICRS:
    case MDirection::B1950:
    case MDirection::B1950_VLA:
    case MDirection::GALACTIC:
    case MDirection::SUPERGAL:
    case MDirection::ECLIPTIC:
        return true;
    default:
        return false;
    }
}

/* A direction of FIELD. Its terms are those of a polynomial of time, in radians and
 * seconds. */
struct Direction {
    casacore::uInt type = MDirection::J2000;
    double origin_mjd_s = 0;
    std::vector<std::array<double, 2>> terms;

    bool moves() const
    {
        return !is_fixed(type) || terms.size() > 1;
    }

    std::array<double, 2> at(double time_mjd_s) const
    {
        std::array<double, 2> place = {0, 0};
        for (size_t k = terms.size(); k-- > 0;)
            for (size_t axis = 0; axis < 2; ++axis)
                place[axis] =
                    place[axis] * (time_mjd_s - origin_mjd_s) + terms[k][axis];
        return place;
    }
};

/* A place in J2000 and the position angle of the frame's North there. */
struct Place {
    double ra_rad, dec_rad, north_rad;
};

MVDirection unit_vector(const double xyz[3])
{
    return MVDirection(xyz[0], xyz[1], xyz[2]);
}

/* The columns of FIELD that directions are read from. */
class Fields
{
  public:
    Fields(const Reader &reader, const tess_vis_meta &meta)
        : reader_(reader), table_(subtable(reader, "FIELD"))
    {
        double site_m[3], freq_hz = 0, far_m = 0;
        tess_vis_site(&meta, site_m);
        site_ = casacore::MVPosition(site_m[0], site_m[1], site_m[2]);
        for (int k = 0; k < meta.num_antennas; ++k) {
            const double *xyz_m = meta.antenna[k].xyz_m;
            const double away_m = std::hypot(xyz_m[0] - site_m[0], xyz_m[1] - site_m[1],
                                             xyz_m[2] - site_m[2]);
            if (std::isfinite(away_m)) far_m = std::max(far_m, away_m);
        }
        for (int k = 0; k < meta.num_segments; ++k)
            for (int64_t c = 0; c < meta.segment[k].num_chan; ++c)
                freq_hz = std::max(freq_hz, meta.segment[k].freq_hz[c]);
        /* two antennas are apart by twice the distance from the middle at most */
        most_moved_rad_ =
            MOST_MOVED * TESS_SPEED_OF_LIGHT_M_S / std::max(2 * far_m * freq_hz, 1.0);
    }

    bool has(const char *column) const
    {
        return table_.tableDesc().isColumn(column);
    }

    /* Whether the row has a direction. If it has one, *direction becomes it. */
    bool read(const char *column, size_t row, Direction *direction) const
    {
        const ArrayColumn<Double> numbers(table_, column);
        const rownr_t number = static_cast<rownr_t>(row);
        if (!numbers.isDefined(number)) return false;
        const Array<Double> cell = cell_of(reader_, numbers, row);
        const size_t most = num_terms(number), count = cell.nelements() / 2;
        if (count == 0) return false;
        *direction = Direction();
        for (size_t k = 0; k < count && k < most; ++k)
            direction->terms.push_back({unit_rad(numbers) * cell.data()[2 * k],
                                        unit_rad(numbers) * cell.data()[2 * k + 1]});
        if (numbers.keywordSet().isDefined("MEASINFO")) {
            const casacore::ArrayMeasColumn<MDirection> measures(table_, column);
            const Array<MDirection> all = measures(number);
            direction->type = all.data()[0].getRef().getType();
        }
        if (direction->terms.size() > 1 && has("TIME"))
            direction->origin_mjd_s = ScalarColumn<Double>(table_, "TIME")(number);
        return true;
    }

    /* Returns the ephemeris that a field follows; -1: none. */
    int ephemeris(size_t row) const
    {
        if (!has("EPHEMERIS_ID")) return -1;
        return ScalarColumn<Int>(table_, "EPHEMERIS_ID")(static_cast<rownr_t>(row));
    }

    Place place(const Direction &direction, double time_mjd_s) const
    {
        const std::array<double, 2> from = direction.at(time_mjd_s);
        if (direction.type == MDirection::J2000) return {from[0], from[1], 0};
        const MeasFrame frame(MEpoch(casacore::Quantity(time_mjd_s, "s"), MEpoch::UTC),
                              MPosition(site_, MPosition::ITRF));
        MDirection::Convert convert(MDirection::Ref(direction.type, frame),
                                    MDirection::Ref(MDirection::J2000, frame));
        double ahead[3], at[3];
        sky_frame_ahead(from.data(), ahead);
        const Vector<Double> centre =
            convert(MVDirection(from[0], from[1])).getValue().getValue();
        const Vector<Double> further =
            convert(unit_vector(ahead)).getValue().getValue();
        Place to;
        for (casacore::uInt k = 0; k < 3; ++k) {
            at[k] = centre[k];
            ahead[k] = further[k];
        }
        eraC2s(at, &to.ra_rad, &to.dec_rad);
        to.ra_rad = eraAnp(to.ra_rad);
        to.north_rad = eraPap(at, ahead);
        return to;
    }

    /* Computes how far the direction moves on the sky between two times. */
    double moved_rad(const Direction &direction, const Span &span) const
    {
        const Place first = place(direction, span.first);
        const Place last = place(direction, span.last);
        return eraSeps(first.ra_rad, first.dec_rad, last.ra_rad, last.dec_rad);
    }

    double most_moved_rad() const
    {
        return most_moved_rad_;
    }

  private:
    size_t num_terms(rownr_t row) const
    {
        if (!has("NUM_POLY")) return 1;
        const Int order = ScalarColumn<Int>(table_, "NUM_POLY")(row);
        return order > 0 ? static_cast<size_t>(order) + 1 : 1;
    }

    static double unit_rad(const ArrayColumn<Double> &column)
    {
        const casacore::TableRecord &keywords = column.keywordSet();
        if (!keywords.isDefined("QuantumUnits")) return 1;
        const Array<String> units = keywords.asArrayString("QuantumUnits");
        return units.empty() ? 1
                             : casacore::Quantity(1, units.data()[0]).getValue("rad");
    }

    const Reader &reader_;
    Table table_;
    casacore::MVPosition site_;
    double most_moved_rad_ = 0;
};

/* Without these tables, casacore takes UT1 as UTC, and the Earth is turned by up to .9
 * s. */
void warn_of_earth(const Reader &reader, double time_mjd_s)
{
    Double offset_s = 0;
    if (!casacore::MeasIERS::get(offset_s, casacore::MeasIERS::MEASURED,
                                 casacore::MeasIERS::dUT1,
                                 time_mjd_s / TESS_SECONDS_PER_DAY))
        tess_log_warn("%s: casacore has no orientation of the Earth (IERS tables) for "
                      "its time, so that positions may be wrong by 14 arcsec",
                      reader.path.c_str());
}

/* Finds the place of a field whose direction moves in the sky of J2000. Throws if it
 * moves further than one phase centre may. */
Place moving_place(const Reader &reader, const Fields &fields,
                   const Direction &direction, const Span &span,
                   const tess_vis_field &field)
{
    try {
        const double moved_rad = fields.moved_rad(direction, span);
        if (moved_rad > fields.most_moved_rad())
            MS_FAIL(TESS_ERR_INPUT,
                    "%s: the phase centre of field %s moves by %.3g arcsec on the sky "
                    "while it is observed (%s%s); shift the visibilities to a fixed "
                    "one, as CASA's phaseshift does",
                    reader.path.c_str(), field.name, moved_rad / TESS_RAD_PER_ASEC,
                    field.frame, direction.terms.size() > 1 ? ", NUM_POLY" : "");
        if (!is_fixed(direction.type)) warn_of_earth(reader, span.first);
        return fields.place(direction, 0.5 * (span.first + span.last));
    } catch (const casacore::AipsError &error) {
        MS_FAIL(TESS_ERR_INPUT,
                "%s: the phase centre of field %s is in the frame %s, and casacore "
                "cannot convert it to J2000; has it its data tables (leap seconds, "
                "IERS)? (casacore says: %.200s)",
                reader.path.c_str(), field.name, field.frame, error.what());
    }
}

void place_field(const Reader &reader, const Fields &fields, const Span &span,
                 bool is_chosen, tess_vis_field &field)
{
    const size_t row = static_cast<size_t>(field.id);
    Direction direction;
    if (!fields.read("PHASE_DIR", row, &direction))
        MS_FAIL(TESS_ERR_INPUT, "%s: field %zu has no PHASE_DIR", reader.path.c_str(),
                row);
    snprintf(field.frame, sizeof field.frame, "%s",
             MDirection::showType(direction.type).c_str());
    const std::array<double, 2> numbers = direction.at(span.first);
    Place place = {NAN, NAN, 0}; /* of what moves, where no field is chosen */
    const bool is_number = std::isfinite(numbers[0]) && std::isfinite(numbers[1]);
    if (is_chosen && !is_number)
        MS_FAIL(TESS_ERR_INPUT, "%s: the phase centre of field %s is not a number",
                reader.path.c_str(), field.name);
    if (is_chosen && fields.ephemeris(row) >= 0)
        MS_FAIL(TESS_ERR_INPUT,
                "%s: field %s follows an ephemeris (EPHEMERIS_ID %d); shift the "
                "visibilities to a fixed phase centre, as CASA's phaseshift does",
                reader.path.c_str(), field.name, fields.ephemeris(row));
    if (is_number && !direction.moves())
        place = fields.place(direction, 0.5 * (span.first + span.last));
    else if (is_number && is_chosen)
        place = moving_place(reader, fields, direction, span, field);
    field.ra_rad = field.pointing_rad[0] = place.ra_rad;
    field.dec_rad = field.pointing_rad[1] = place.dec_rad;
    field.north_rad = place.north_rad;
}

/* Finds where antennas point. What moves the phase centre later leaves REFERENCE_DIR as
 * it is. */
void place_pointing(const Fields &fields, const Span &span, tess_vis_field &field)
{
    Direction direction;
    if (!fields.has("REFERENCE_DIR") ||
        !fields.read("REFERENCE_DIR", static_cast<size_t>(field.id), &direction) ||
        direction.moves())
        return;
    const double middle = 0.5 * (span.first + span.last);
    const Place place = fields.place(direction, middle);
    if (!std::isfinite(place.ra_rad) || !std::isfinite(place.dec_rad)) return;
    field.pointing_rad[0] = place.ra_rad;
    field.pointing_rad[1] = place.dec_rad;
}

} // namespace

void place_fields(const Reader &reader, const std::vector<Span> &times, bool any_field,
                  tess_vis_meta &meta)
{
    const Fields fields(reader, meta);
    for (int k = 0; k < meta.num_fields; ++k) {
        Span span = times[static_cast<size_t>(k)];
        if (!(span.first <= span.last)) /* no rows, or none at a time */
            span = {meta.time_start_mjd_s, meta.time_end_mjd_s};
        const bool is_chosen = k == meta.field_selected && !any_field;
        place_field(reader, fields, span, is_chosen, meta.field[k]);
        place_pointing(fields, span, meta.field[k]);
    }
}

} // namespace tess_ms
