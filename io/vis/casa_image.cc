/* Reads images of CASA through casacore's tables: the coordinates of a mask, and its
 * pixels. */
#include "tess_casa_image.h"

#include <casacore/casa/Containers/Record.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/Table.h>
#include <casacore/tables/Tables/TableRecord.h>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "sky_frame.h"
#include "tess_const.h"
#include "vis_ms.h"
#include "vis_ms_lock.h"

using namespace casacore;

/* Axes of the pixels in the order of casacore, the fastest first. -1: there is none. */
struct tess_casa_image {
    std::string path;
    Table table;
    ArrayColumn<Float> map;
    IPosition shape;
    int x_axis, y_axis, stokes_axis, freq_axis;
};

namespace
{

/* Finds the name of the coordinate of a kind, like direction0, and its number. */
std::string find_coordinate(const RecordInterface &coords, const char *kind,
                            int &number)
{
    const size_t length = std::strlen(kind);
    for (uInt k = 0; k < coords.nfields(); ++k) {
        const std::string name = coords.name(k);
        if (name.compare(0, length, kind) == 0 && name.size() > length) {
            number = std::atoi(name.c_str() + length);
            return name;
        }
    }
    return "";
}

/* Returns pixel axis number `k` of a coordinate, or -1 if it has none. */
int axis_of(const RecordInterface &coords, const char *kind, size_t k)
{
    int number = 0;
    if (find_coordinate(coords, kind, number).empty()) return -1;
    const Vector<Int> axes(coords.asArrayInt("pixelmap" + std::to_string(number)));
    return k < axes.size() ? axes[k] : -1;
}

double unit_rad(const Vector<String> &units, size_t k)
{
    return k < units.size() && units[k] == "deg" ? TESS_RAD_PER_DEG : 1.0;
}

/* Returns the name of the frame, as FITS headers of this project have it. */
void take_frame(const RecordInterface &direction, tess_fits_model *header)
{
    const String system =
        direction.isDefined("system") ? direction.asString("system") : String("J2000");
    double place[2] = {header->ra_rad, header->dec_rad};
    std::memcpy(header->labelled_rad, place, sizeof place);
    std::snprintf(header->frame, sizeof header->frame, "%s", system.c_str());
    if (system != "ICRS") return;
    const sky_frame icrs = {SKY_ICRS, 2000.0};
    (void)sky_frame_to_j2000(&icrs, 0, place);
    header->ra_rad = place[0];
    header->dec_rad = place[1];
    std::snprintf(header->frame, sizeof header->frame, "J2000");
}

void take_direction(const RecordInterface &coords, tess_fits_model *header)
{
    int number = 0;
    const RecordInterface &direction =
        coords.asRecord(find_coordinate(coords, "direction", number));
    const Vector<Double> at(direction.asArrayDouble("crval"));
    const Vector<Double> pixel(direction.asArrayDouble("crpix"));
    const Vector<Double> step(direction.asArrayDouble("cdelt"));
    const Vector<String> units(direction.asArrayString("units"));
    header->ra_rad = at[0] * unit_rad(units, 0);
    header->dec_rad = at[1] * unit_rad(units, 1);
    take_frame(direction, header);
    header->crpix_x = pixel[0] + 1; /* casacore counts from 0 */
    header->crpix_y = pixel[1] + 1;
    header->scale_x_rad = step[0] * unit_rad(units, 0);
    header->scale_y_rad = step[1] * unit_rad(units, 1);
}

/* Finds the FITS codes of the planes by casacore's names. */
void take_stokes(const RecordInterface &coords, tess_fits_model *header)
{
    static const char *const names[] = {"I", "Q", "U", "V"};
    int number = 0;
    const std::string name = find_coordinate(coords, "stokes", number);
    if (name.empty()) return;
    const Vector<String> planes(coords.asRecord(name).asArrayString("stokes"));
    for (size_t k = 0; k < planes.size() && k < 4; ++k)
        for (int s = 0; s < 4; ++s)
            if (planes[k] == names[s]) header->stokes[k] = s + 1;
}

int size_of(const tess_casa_image &image, int axis)
{
    return axis < 0 ? 1 : static_cast<int>(image.shape[axis]);
}

void take_axes(const RecordInterface &coords, tess_casa_image &image)
{
    image.x_axis = axis_of(coords, "direction", 0);
    image.y_axis = axis_of(coords, "direction", 1);
    image.stokes_axis = axis_of(coords, "stokes", 0);
    image.freq_axis = axis_of(coords, "spectral", 0);
    const int most = static_cast<int>(image.shape.size()) - 1;
    const int axes[] = {image.x_axis, image.y_axis, image.stokes_axis, image.freq_axis};
    for (int axis : axes)
        if (axis > most) throw AipsError("an axis that the pixels do not have");
    if (image.x_axis < 0 || image.y_axis < 0)
        throw AipsError("no coordinates on the sky");
}

void open(tess_casa_image &image, tess_fits_model *header)
{
    tess_ms::wait_until_readable(image.path);
    image.table = Table(image.path, TableLock(TableLock::NoLocking), Table::Old);
    image.map.attach(image.table, "map");
    image.shape = image.map.shape(0);
    const RecordInterface &coords = image.table.keywordSet().asRecord("coords");
    take_axes(coords, image);
    std::memset(header, 0, sizeof *header);
    std::snprintf(header->path, sizeof header->path, "%s", image.path.c_str());
    header->nx = image.shape[image.x_axis];
    header->ny = image.shape[image.y_axis];
    header->num_freq = size_of(image, image.freq_axis);
    header->num_stokes = size_of(image, image.stokes_axis);
    take_direction(coords, header);
    take_stokes(coords, header);
}

const char no_image[] = "cannot be read as an image of CASA";

} // namespace

tess_status tess_casa_image_open(const char *path, tess_fits_model *header,
                                 tess_casa_image **image)
{
    return tess_ms::caught(TESS_ERR_INPUT, path, no_image, [&] {
        auto opened = std::make_unique<tess_casa_image>();
        opened->path = path;
        open(*opened, header);
        *image = opened.release();
    });
}

tess_status tess_casa_image_read(const tess_casa_image *image, int stokes_index,
                                 int freq_index, int64_t row_first, int64_t num_rows,
                                 double *out)
{
    const char *path = image->path.c_str();
    return tess_ms::caught(TESS_ERR_INPUT, path, "its pixels cannot be read", [&] {
        IPosition start(image->shape.size(), 0), count(image->shape.size(), 1);
        count[image->x_axis] = image->shape[image->x_axis];
        start[image->y_axis] = row_first;
        count[image->y_axis] = num_rows;
        if (image->stokes_axis >= 0) start[image->stokes_axis] = stokes_index;
        if (image->freq_axis >= 0) start[image->freq_axis] = freq_index;
        const Array<Float> part(image->map.getSlice(0, Slicer(start, count)));
        const bool transposed = image->x_axis > image->y_axis;
        const int64_t nx = count[image->x_axis];
        int64_t k = 0;
        for (auto value = part.begin(); value != part.end(); ++value, ++k)
            out[transposed ? k % num_rows * nx + k / num_rows : k] = *value;
    });
}

void tess_casa_image_close(tess_casa_image *image)
{
    delete image;
}
