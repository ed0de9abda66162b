/* Regions of CASA and of ds9 that bound masks, and files that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tess_const.h"
#include "tess_mask_regions.h"

static tess_mask_regions regions;

static const tess_mask_region *read_one(const char *text)
{
    tess_mask_regions_free(&regions);
    assert_int_equal(tess_mask_regions_parse("file", text, &regions), TESS_OK);
    assert_int_equal(regions.num, 1);
    return &regions.region[0];
}

static const tess_mask_region *read_crtf(const char *shape)
{
    char text[256];
    snprintf(text, sizeof text, "#CRTFv0 text\n\n# a comment\n%s\n", shape);
    return read_one(text);
}

static void assert_near(double value, double expected)
{
    assert_true(fabs(value - expected) < 1e-9 * fmax(1, fabs(expected)));
}

static void test_crtf(void **state)
{
    const double deg = TESS_RAD_PER_DEG, asec = TESS_RAD_PER_ASEC;
    const tess_mask_region *r = read_crtf("circle[[4h0m2s, -10d0m30s], 30arcsec]");
    assert_true(r->shape == TESS_MASK_ELLIPSE && !r->at_pixels && !r->half_in_pixels);
    assert_near(r->centre[0], (60 + 2.0 / 240) * deg);
    assert_near(r->centre[1], -(10 + 1.0 / 120) * deg);
    assert_near(r->half[0], 30 * asec);
    assert_near(r->half[1], 30 * asec);
    assert_true(r->from > r->to && !r->leaves);
    r = read_crtf("+circle [ [04:00:02, -10.00.30], 12pix ] , coord=J2000");
    assert_near(r->centre[1], -(10 + 1.0 / 120) * deg);
    assert_true(r->half_in_pixels && r->half[0] == 12);
    r = read_crtf(
        "-ellipse[[10pix, 20pix], [8pix, 3pix], 30deg], range=[7chan, 3chan]");
    assert_true(r->leaves && r->at_pixels && r->half[0] == 3 && r->half[1] == 8);
    assert_near(r->turn_rad, 30 * deg);
    assert_true(r->from == 3 && r->to == 7 && !r->by_freq);
    r = read_crtf(
        "rotbox[[1deg, 2deg], [8arcsec, 4arcsec], 1rad], range=[1.41GHz,1420MHz]");
    assert_near(r->half[0], 4 * asec);
    assert_true(r->by_freq && r->from == 1.41e9 && r->to == 1.42e9);
    r = read_crtf("box[[1pix, 2pix], [8pix, 4pix]]");
    assert_true(r->shape == TESS_MASK_CORNERS && r->num_vertices == 2 && r->at_pixels);
    assert_true(regions.vertex[1][0] == 8 && regions.vertex[1][1] == 4);
    r = read_crtf(
        "poly[[1deg, 2deg], [8deg, 4deg], [3deg, 3deg]]\nann text[[1deg,2deg],'x']");
    assert_true(r->shape == TESS_MASK_POLYGON && r->num_vertices == 3);
    r = read_crtf("annulus[[1deg, 2deg], [8deg, 9deg]]");
    assert_near(r->half[1], 9 * deg);
    r = read_crtf("centerbox[[192.859508deg, 27.128336deg], [8deg, 9deg]], coord=ICRS");
    assert_near(r->half[0], 4 * deg);
    r = read_crtf("global coord=GALACTIC\ncircle[[10deg, 90deg], 1deg]"); /* the pole */
    assert_true(fabs(r->centre[0] - 192.8595 * deg) < 1e-5);
    assert_true(fabs(r->centre[1] - 27.1283 * deg) < 1e-5);
}

static void test_ds9(void **state)
{
    const double deg = TESS_RAD_PER_DEG, asec = TESS_RAD_PER_ASEC;
    const tess_mask_region *r = read_one(
        "# Region file format: DS9\nglobal color=green\nfk5\ncircle(60.0,-10d,2') "
        "# text={a}");
    assert_near(r->centre[0], 60 * deg);
    assert_near(r->half[0], 120 * asec);
    r = read_one("image; -box(5,6,8,4,30)");
    assert_true(r->leaves && r->at_pixels && r->centre[0] == 4 && r->centre[1] == 5);
    assert_true(r->half[0] == 4 && r->half[1] == 2 && r->half_in_pixels);
    assert_near(r->turn_rad, 30 * deg);
    r = read_one("icrs;ellipse(4:0:0,-30:0:0,8\",4\",10)");
    assert_near(r->half[1], 4 * asec);
    r = read_one("fk5; polygon(1,2,3,4,5,1)\npoint(1,2)");
    assert_int_equal(r->num_vertices, 3);
    r = read_one("annulus 3 4 5 6"); /* image coordinates unless a line says others */
    assert_true(r->half[0] == 5 && r->half[1] == 6 && r->centre[0] == 2);
    r = read_one("galactic;circle(10,90,0.5)");
    assert_true(fabs(r->centre[1] - 27.1283 * deg) < 1e-5);
    tess_mask_regions_free(&regions);
    assert_int_equal(
        tess_mask_regions_parse("file", "circle(1,1,2);-circle(1,1,1)", &regions),
        TESS_OK);
    assert_true(regions.num == 2 && regions.region[1].leaves);
    tess_mask_regions_free(&regions);
}

/* Each message names the line and has the words. */
static void test_mistakes(void **state)
{
    static const char *const wrong[][2] = {
        {"", "has no region"},
        {"nonsense(1,2)", "line 1 begins with"},
        {"\ncircle(1,2)", "line 2 has a 'circle' of another number"},
        {"circle(1,x,3)", "the coordinate 'x'"},
        {"circle(1,2,-3)", "the length"},
        {"physical;circle(1,2,3)", "image coordinates are read"},
        {"fk5;polygon(1,2,3,4)", "less than three"},
        {"polygon(1,2,3)", "without a second"},
        {"box(1,2,3,4,x)", "the angle 'x'"},
        {"circle(1e300,2,3)", "the coordinate"},
        {"fk5;ellipse(1,2,8\",4p,0)", "mixes pixels"},
        {"box(1,2,8,4\",0)", "mixes pixels"},
        {"#CRTFv0\n", "has no region"},
        {"#CRTFv0\ncircle[[1deg, 2deg], 3]", "the length '3'"},
        {"#CRTFv0\ncircle[[1deg, 2deg], 3deg", "not closed"},
        {"#CRTFv0\ncircle[[1deg, 2deg]]", "another number"},
        {"#CRTFv0\ncircle 1deg", "not closed"},
        {"#CRTFv0\ncircle[[1deg, 2pix], 3deg]", "mixes pixels"},
        {"#CRTFv0\nrotbox[[1deg, 2deg], [3deg, 2pix], 1deg]", "mixes pixels"},
        {"#CRTFv0\nrotbox[[1deg, 2deg], [3deg, 2deg], x]", "the angle"},
        {"#CRTFv0\nbox[[1deg, 2deg]]", "another number of corners"},
        {"#CRTFv0\npoly[[1deg, 2deg], [3deg]]", "without a second"},
        {"#CRTFv0\nblob[[1deg, 2deg], 1deg]", "line 2 begins with"},
        {"#CRTFv0\ncircle[[1deg, 2deg], 1deg], coord=AZEL", "coordinates of 'AZEL'"},
        {"#CRTFv0\ncircle[[1deg, 2deg], 1deg], range=[1km/s, 2km/s]",
         "the range '1km/s'"},
        {"#CRTFv0\ncircle[[1deg, 2deg], 1deg], range=5chan", "the range"},
        {"#CRTFv0\ncircle[[1deg, 2deg], 1deg], range=[5chan, 1GHz]", "two units"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; ++k) {
        assert_int_equal(tess_mask_regions_parse("file", wrong[k][0], &regions),
                         TESS_ERR_INPUT);
        if (!strstr(tess_error_message(), wrong[k][1]))
            fail_msg("'%s' gave '%s'", wrong[k][0], tess_error_message());
        assert_true(regions.num == 0);
        tess_error_clear();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_crtf),
                                       cmocka_unit_test(test_ds9),
                                       cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
