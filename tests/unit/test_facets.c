/* Facets: what is read of region files and what is refused, which pixels belong to
 * which facet, weights with a feather, and Voronoi cells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tess_const.h"
#include "tess_facets.h"
#include "tess_mem.h"
#include "tess_region_file.h"

enum { NX = 60, NY = 40 };

/* Pixels of a minute of arc around 10 degrees, 0 degrees: x = 30 - 60 (ra - 10),
 * nearly.
 */
static const tess_facet_image image = {
    .geom = {.nx = NX, .ny = NY, .scale_rad = TESS_PI / 10800},
    .ra_rad = 10 * TESS_PI / 180,
    .dec_rad = 0};

static tess_region_list parsed(const char *text)
{
    tess_region_list list = {0};
    if (tess_region_file_parse("a.reg", text, &list) != TESS_OK)
        fail_msg("%s", tess_error_message());
    return list;
}

static void says(tess_status got, const char *line, const char *reason)
{
    const char *message = tess_error_message();
    assert_int_equal(got, TESS_ERR_INPUT);
    if (!strstr(message, "a.reg") || !strstr(message, line) || !strstr(message, reason))
        fail_msg("'%s' does not say '%s' and '%s'", message, line, reason);
    tess_error_clear();
}

static void refused(const char *text, const char *line, const char *reason)
{
    tess_region_list list = {.num_regions = -1};
    says(tess_region_file_parse("a.reg", text, &list), line, reason);
    assert_int_equal(list.num_regions, -1); /* untouched */
}

static double degrees(double rad)
{
    return rad * 180 / TESS_PI;
}

/* ---- reading ---- */

static void test_spellings(void **state)
{
    tess_region_list list =
        parsed("# Region file format: DS9 version 4.1\r\n"
               "global color=green font=\"helvetica 10\"\n"
               "polygon(10,0,11,0,11,1.5) # text=A color=red\n"
               "fk5;polygon 00:40:00 -1:30:00 11d 0 11 1 # text={a name}\n"
               "circle(10,0,5\"); box(1,2,3\",4\",0)\n"
               "-polygon(10.5,.1, 10.6 .1, 10.6,.2)\n"
               "point(0, 0)\n"
               "POINT(10.25,-0.5) # point=cross text='b'\n"
               "# polygon(1,2,3)\n"
               "polygon(350.5,0,0h20m00s,0d0m0s,11,1)");
    assert_int_equal(list.num_regions, 4);
    assert_int_equal(list.num_vertices, 12);
    assert_int_equal(list.num_skipped, 2);
    const tess_region *r = list.region;
    assert_string_equal(r[0].name, "A");
    assert_int_equal(r[0].line, 3);
    assert_false(r[0].has_point);
    assert_string_equal(r[1].name, "b"); /* of the last point */
    assert_true(r[1].has_point && !r[1].is_hole && r[2].is_hole);
    assert_true(fabs(degrees(r[1].ra_rad) - 10.25) < 1e-12);
    assert_true(fabs(degrees(r[1].dec_rad) + 0.5) < 1e-12);
    const double(*v)[2] = (const double(*)[2])list.vertex + r[1].first_vertex;
    assert_true(fabs(degrees(v[0][0]) - 10) < 1e-12);
    assert_true(fabs(degrees(v[0][1]) + 1.5) < 1e-12);
    assert_true(fabs(degrees(v[1][0]) - 11) < 1e-12);
    assert_string_equal(r[3].name, "");
    assert_true(fabs(degrees(list.vertex[r[3].first_vertex + 1][0]) - 5) < 1e-12);
    tess_region_list_free(&list);
    (void)state;
}

/* ICRS and B1950 are converted: 23 mas, and half a degree. */
static void test_systems(void **state)
{
    tess_region_list fk5 = parsed("polygon(10,20,11,20,11,21)");
    tess_region_list icrs = parsed("icrs\npolygon(10,20,11,20,11,21)");
    tess_region_list fk4 = parsed("b1950\npolygon(10,20,11,20,11,21)");
    const double *at = fk5.vertex[0];
    const double moved =
        tess_facets_angle(at[0], at[1], icrs.vertex[0][0], icrs.vertex[0][1]);
    assert_true(moved > 5 * TESS_RAD_PER_ASEC * 1e-3 &&
                moved < 30 * TESS_RAD_PER_ASEC * 1e-3);
    /* precession of 50 years: 3.07 s + 1.34 s sin(ra) tan(dec) a year */
    assert_true(fabs(degrees(fk4.vertex[0][0]) - 10.658) < 5e-3);
    tess_region_list_free(&fk5);
    tess_region_list_free(&icrs);
    tess_region_list_free(&fk4);
    (void)state;
}

static void test_refused_files(void **state)
{
    refused("fk5\ncircle(1,2,3\")\n", "3 lines", "no polygon");
    refused("", "1 lines", "no polygon");
    refused("fk5\npolygon(1,2,3,4)\n", "line 2", "less than three");
    refused("polygon(1,2,3,4,5)\n", "line 1", "'5' without a declination");
    refused("polygon(1,2,3,95,5,6)\n", "line 1", "a declination '95'");
    refused("polygon(1,2,x,4,5,6)\n", "line 1", "a right ascension 'x'");
    refused("polygon(1,2,nan,4,5,6)\n", "line 1", "'nan'");
    refused("\nimage\npolygon(1,2,3,4,5,6)\n", "line 3", "coordinates of 'image'");
    refused("galactic;polygon(1,2,3,4,5,6)\n", "line 1", "'galactic'");
    refused("name,ra,dec\n", "line 1", "'name,ra,dec', which is no region");
    refused("-polygon(1,2,3,4,5,6)\n", "line 1", "none before it");
    refused("polygon(1,2,3,4,5,6)\npoint()\n", "line 2", "without coordinates");
    (void)state;
}

static void test_written_again(void **state)
{
    char *text = NULL;
    tess_region_list list =
        parsed("polygon(10,0,11,0,11,1.5) # text=\"x}y\"\npoint(359.123456789,1)\n"
               "-polygon(10.5,.1, 10.6 .1, 10.6,.2)\n");
    assert_int_equal(tess_region_file_text(&list, &text), TESS_OK);
    assert_non_null(
        strstr(text, "# text={x?y}\npoint(359.1234567890,1.0000000000)\n-"));
    tess_region_list again = parsed(text);
    assert_int_equal(again.num_vertices, list.num_vertices);
    for (int64_t k = 0; k < list.num_vertices; ++k)
        assert_true(fabs(again.vertex[k][0] - list.vertex[k][0]) < 2e-12);
    assert_int_equal(again.num_regions, 2);
    tess_free(text);
    tess_region_list_free(&list);
    tess_region_list_free(&again);
    (void)state;
}

/* ---- pixels ---- */

/* A region file of polygons in pixels, each of four corners. */
static void text_of(const double (*corners)[4][2], int num, char *text, size_t size)
{
    size_t used = 0;
    for (int k = 0; k < num; ++k)
        for (int c = 0; c < 4; ++c) {
            const double l = -(corners[k][c][0] - NX / 2) * image.geom.scale_rad;
            const double m = (corners[k][c][1] - NY / 2) * image.geom.scale_rad;
            const double lmn1[3] = {l, m, tess_geom_nm1(l * l + m * m)};
            double ra, dec;
            tess_sky_place(lmn1, image.ra_rad, image.dec_rad, &ra, &dec);
            used += (size_t)snprintf(text + used, size - used, "%s%.12f,%.12f%s",
                                     c == 0 ? "polygon(" : ",", degrees(ra),
                                     degrees(dec), c == 3 ? ")\n" : "");
        }
}

static tess_facets made(const char *text, double feather)
{
    tess_facets facets = {0};
    tess_region_list list = parsed(text);
    if (tess_facets_create("a.reg", &list, &image, feather, &facets) != TESS_OK)
        fail_msg("%s", tess_error_message());
    tess_region_list_free(&list);
    return facets;
}

/* Weights of a facet in the whole image. */
static void weigh(const tess_facets *facets, int64_t facet, double weight[NY][NX])
{
    tess_facet_work *work = NULL;
    assert_int_equal(tess_facet_work_create(facets, &work), TESS_OK);
    for (int64_t y = 0; y < NY; ++y)
        tess_facets_weights(facets, work, facet, y, 0, NX, weight[y]);
    tess_facet_work_destroy(work);
}

/* Two neighbours whose border is slanted, and one beyond the image. */
static const double neighbours[3][4][2] = {{{-20, -5}, {25, -5}, {35, 45}, {-20, 45}},
                                           {{25, -5}, {50, -5}, {50, 45}, {35, 45}},
                                           {{70, 0}, {90, 0}, {90, 20}, {70, 20}}};

static void test_pixels(void **state)
{
    static double one[NY][NX], other[NY][NX];
    char text[2000];
    text_of(neighbours, 3, text, sizeof text);
    tess_facets facets = made(text, 0);
    assert_int_equal(facets.num_facets, 2);
    assert_int_equal(facets.num_outside, 1);
    assert_string_equal(facets.facet[1].name, "facet2");
    assert_int_equal(facets.facet[1].line, 2);
    weigh(&facets, 0, one);
    weigh(&facets, 1, other);
    int64_t num[2] = {0};
    double middle = 0;
    for (int y = 0; y < NY; ++y)
        for (int x = 0; x < NX; ++x) {
            const double border = 25 + (y + 5) * 0.2;
            if (fabs(x - border) > 1e-6 && x != 50) {
                assert_true(one[y][x] == (x < border));
                assert_true(other[y][x] == (x > border && x < 50));
            }
            num[0] += one[y][x] > 0;
            num[1] += other[y][x] > 0;
            middle += one[y][x] * x;
        }
    assert_int_equal(num[0], facets.facet[0].num_pixels);
    assert_int_equal(num[1], facets.facet[1].num_pixels);
    /* the direction of a facet without a point is its centroid in the image */
    const double x = NX / 2 - sin(facets.facet[0].ra_rad - image.ra_rad) *
                                  cos(facets.facet[0].dec_rad) / image.geom.scale_rad;
    assert_true(fabs(x - middle / (double)num[0]) < 1e-6);
    const tess_facet_box *box = &facets.facet[0].box;
    assert_true(box->x0 == 0 && box->y0 == 0 && box->y1 == NY);
    const tess_facet_box padded = tess_facets_padded(&facets.facet[0], 1.25);
    assert_int_equal(padded.y1 - padded.y0, 50);
    assert_int_equal(padded.y0, -5);
    tess_facets_free(&facets);
    (void)state;
}

/* Corners and an edge that lie in a row of pixels, to the last bit. */
static void test_shared_row(void **state)
{
    static double one[NY][NX], other[NY][NX];
    tess_facets facets = made("polygon(9.8,-0.2,10.2,-0.2,10.3,0,9.7,0)\n"
                              "polygon(9.7,0,10.3,0,10.2,0.2,9.8,0.2)\n",
                              0);
    weigh(&facets, 0, one);
    weigh(&facets, 1, other);
    for (int x = 14; x < 47; ++x) {
        assert_true(one[NY / 2 - 1][x] == 1 && other[NY / 2 - 1][x] == 0);
        assert_true(one[NY / 2][x] == 0 && other[NY / 2][x] == 1);
    }
    tess_facets_free(&facets);
    (void)state;
}

/* Weights against the definition, by the distance from the one border. */
static void test_feather(void **state)
{
    static double one[NY][NX], other[NY][NX];
    const double feather = 8, across = 1 / sqrt(1.04); /* of the border's normal */
    char text[2000];
    text_of(neighbours, 2, text, sizeof text);
    tess_facets facets = made(text, feather);
    weigh(&facets, 0, one);
    weigh(&facets, 1, other);
    for (int y = 0; y < NY; ++y)
        for (int x = 0; x < NX; ++x) {
            const double d = (x - 25 - (y + 5) * 0.2) * across;
            const double part = fmin(fmax(2 * d / feather, -1), 1);
            const double right = 0.5 + 0.5 * sin(TESS_PI / 2 * part);
            if (x == 50) continue;
            assert_true(fabs(other[y][x] - (x < 50 ? right : 0)) < 1e-7);
            assert_true(fabs(one[y][x] - (x < 50 ? 1 - right : 0)) < 1e-7);
            if (other[y][x] > 0)
                assert_true(x >= facets.facet[1].box.x0 && x < facets.facet[1].box.x1);
        }
    tess_facets_free(&facets);
    (void)state;
}

/* A spike without pixels reaches into another facet, where its feather counts no more
 * than the box of the facet says. */
static void test_spike(void **state)
{
    static double one[NY][NX], other[NY][NX];
    tess_facets facets =
        made("polygon(10.4167,-.25,10.0,-.25,10.0,.25,10.4167,.25)\n"
             "polygon(10.3667,.00833,10.0,.006667,10.0,-.25,9.6667,-.25,9.6667,.25,"
             "10.0,.25,10.0,.01)\n",
             6);
    weigh(&facets, 0, one);
    weigh(&facets, 1, other);
    for (int y = 6; y < 35; ++y)
        for (int x = 6; x < 50; ++x)
            assert_true(fabs(one[y][x] + other[y][x] - 1) < 1e-12);
    tess_facets_free(&facets);
    (void)state;
}

/* A concave facet, and one with a hole in which another facet lies. */
static void test_holes(void **state)
{
    static double one[NY][NX], other[NY][NX];
    static const double hole[3][4][2] = {
        {{5.5, 5.5}, {40.5, 5.5}, {40.5, 30.5}, {5.5, 30.5}},
        {{10.5, 10.5}, {20.5, 10.5}, {20.5, 20.5}, {10.5, 20.5}},
        {{10.5, 10.5}, {20.5, 10.5}, {20.5, 20.5}, {10.5, 20.5}}};
    char text[2000] = "", all[2001];
    text_of(hole, 3, text, sizeof text);
    char *second = strchr(text, '\n') + 1;
    snprintf(all, sizeof all, "%.*s-%s", (int)(second - text), text, second);
    for (int feather = 0; feather < 8; feather += 6) {
        tess_facets facets = made(all, feather);
        assert_int_equal(facets.num_facets, 2);
        assert_int_equal(facets.facet[0].num_pixels, 35 * 25 - 100);
        assert_int_equal(facets.facet[1].num_pixels, 100);
        weigh(&facets, 0, one);
        weigh(&facets, 1, other);
        for (int y = 0; y < NY; ++y)
            for (int x = 0; x < NX; ++x) {
                const bool in = x >= 6 && x <= 40 && y >= 6 && y <= 30;
                assert_true(fabs(one[y][x] + other[y][x] - in) < 1e-12);
            }
        tess_facets_free(&facets);
    }
    static const double arrow[1][4][2] = {{{5, 5}, {45, 5}, {20, 15}, {25, 35}}};
    text_of(arrow, 1, text, sizeof text);
    tess_facets facets = made(text, 0);
    weigh(&facets, 0, one);
    assert_true(one[6][35] == 1 && one[20][25] == 0 && one[20][19] == 1);
    tess_facets_free(&facets);
    (void)state;
}

static void test_refused_facets(void **state)
{
    static const double both[2][4][2] = {{{5, 5}, {25, 5}, {25, 25}, {5, 25}},
                                         {{23, 20}, {45, 20}, {45, 35}, {23, 35}}};
    static const double touching[2][4][2] = {
        {{5, 5}, {25, 5}, {25, 25}, {5, 25}},
        {{24.7, 5}, {45, 5}, {45, 25}, {24.6, 25}}};
    char text[2000];
    tess_facets facets = {0};
    text_of(both, 2, text, sizeof text);
    tess_region_list list = parsed(text);
    says(tess_facets_create("a.reg", &list, &image, 0, &facets), "line 2",
         "'facet2' overlaps facet 'facet1' of line 1");
    tess_region_list_free(&list);
    text_of(touching, 2, text, sizeof text); /* rounding */
    facets = made(text, 0);
    tess_facets_free(&facets);
    list = parsed("polygon(100,20,101,20,101,21)");
    says(tess_facets_create("a.reg", &list, &image, 0, &facets), "line 1",
         "no pixel in the image");
    tess_region_list_free(&list);
    /* around the whole image, with corners beyond the horizon */
    facets = made("polygon(250,-60,130,-60,130,60,250,60)", 0);
    assert_int_equal(facets.facet[0].num_pixels, NX * NY);
    tess_facets_free(&facets);
    (void)state;
}

/* ---- tessellations ---- */

static void test_cells(void **state)
{
    static double weight[NY][NX];
    enum { NUM = 7 };
    tess_region direction[NUM] = {0};
    double at[NUM][2];
    for (int k = 0; k < NUM; ++k) {
        at[k][0] = (k * 37 + 11) % NX + 0.3;
        at[k][1] = (k * 23 + 5) % NY + 0.4;
        const double l = -(at[k][0] - NX / 2) * image.geom.scale_rad;
        const double m = (at[k][1] - NY / 2) * image.geom.scale_rad;
        const double lmn1[3] = {l, m, tess_geom_nm1(l * l + m * m)};
        tess_sky_place(lmn1, image.ra_rad, image.dec_rad, &direction[k].ra_rad,
                       &direction[k].dec_rad);
        direction[k].has_point = true;
        snprintf(direction[k].name, sizeof direction[k].name, "d%d", k);
    }
    tess_region_list cells = {0};
    char *text = NULL;
    assert_int_equal(tess_facets_tessellate("a.reg", &image, direction, NUM, &cells),
                     TESS_OK);
    assert_int_equal(tess_region_file_text(&cells, &text), TESS_OK);
    tess_facets facets = made(text, 0);
    assert_int_equal(facets.num_facets, NUM);
    int64_t num_pixels = 0;
    for (int k = 0; k < NUM; ++k) {
        num_pixels += facets.facet[k].num_pixels;
        assert_string_equal(facets.facet[k].name, direction[k].name);
        weigh(&facets, k, weight);
        for (int y = 0; y < NY; ++y)
            for (int x = 0; x < NX; ++x) {
                int nearest = 0;
                for (int j = 1; j < NUM; ++j)
                    if (hypot(x - at[j][0], y - at[j][1]) <
                        hypot(x - at[nearest][0], y - at[nearest][1]))
                        nearest = j;
                assert_true(weight[y][x] == (nearest == k));
            }
    }
    assert_int_equal(num_pixels, NX * NY);
    tess_facets_free(&facets);
    tess_region_list_free(&cells);
    tess_free(text);
    direction[3].ra_rad = direction[1].ra_rad;
    direction[3].dec_rad = direction[1].dec_rad;
    assert_int_equal(tess_facets_tessellate("a.reg", &image, direction, NUM, &cells),
                     TESS_ERR_INPUT);
    assert_non_null(
        strstr(tess_error_message(), "a.reg: directions 'd1' and 'd3' are the same"));
    tess_error_clear();
    (void)state;
}

static void test_brightest(void **state)
{
    tess_source_list list = {0};
    tess_region *direction = NULL;
    int64_t num = 0;
    const double minute = image.geom.scale_rad;
    const double place[5][2] = {{0, 0}, {2, 0}, {10, 3}, {500, 0}, {-10, -3}};
    const double flux[5] = {3, 5, 1, 9, -4};
    for (int k = 0; k < 5; ++k)
        assert_int_equal(
            tess_source_list_add(
                &list,
                &(tess_listed_source){.ra_rad = image.ra_rad + place[k][0] * minute,
                                      .dec_rad = place[k][1] * minute,
                                      .flux_jy = {flux[k]}},
                NULL),
            TESS_OK);
    assert_int_equal(tess_facets_brightest(&image, &list, 2, 0, &direction, &num),
                     TESS_OK);
    assert_int_equal(num, 2);
    assert_true(direction[0].ra_rad == list.source[1].ra_rad &&
                direction[1].ra_rad == list.source[0].ra_rad);
    tess_free(direction);
    assert_int_equal(
        tess_facets_brightest(&image, &list, 0, 3 * minute, &direction, &num), TESS_OK);
    assert_int_equal(num,
                     3); /* one is close to a brighter one, one is not in the image */
    assert_true(direction[1].ra_rad == list.source[2].ra_rad);
    assert_string_equal(direction[2].name, "dir3");
    tess_free(direction);
    tess_source_list_free(&list);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),     cmocka_unit_test(test_systems),
        cmocka_unit_test(test_refused_files), cmocka_unit_test(test_written_again),
        cmocka_unit_test(test_pixels),        cmocka_unit_test(test_shared_row),
        cmocka_unit_test(test_feather),       cmocka_unit_test(test_spike),
        cmocka_unit_test(test_holes),         cmocka_unit_test(test_refused_facets),
        cmocka_unit_test(test_cells),         cmocka_unit_test(test_brightest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
