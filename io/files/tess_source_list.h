/** @file tess_source_list.h
 *  Lists of sources in the text format that DP3 and WSClean read and write (that of
 *  makesourcedb): a header that names the columns, and a line for each source.
 *
 *      Format = Name, Type, Ra, Dec, I, SpectralIndex, LogarithmicSI,
 * ReferenceFrequency='1.5e8', …
 *      s0c0,POINT,05:33:38.3,-30.43.16.5,0.12,[-0.7,0.1],true,1.5e8,,,
 *
 *  "# (Name, Type, …) = format" is another spelling of the header. A value behind the
 *  name of a column is that of empty cells, and of cells that a line lacks.
 *
 *  Columns, in capital or small letters: Ra (hh:mm:ss.s; dd.mm.ss.s is in degrees), Dec
 *  (dd.mm.ss.s or dd:mm:ss.s), both also with units as in options ("83.6deg"); I, Q, U,
 *  V [Jy]; Type POINT (if empty) or GAUSSIAN; MajorAxis, MinorAxis (FWHM [arcsec]) and
 *  Orientation (position angle [deg]); SpectralIndex, LogarithmicSI ("true" if empty)
 *  and ReferenceFrequency [Hz]. Name and Patch are not used; a line without a name and
 *  a type is of a patch, and is skipped. Lines that begin with '#' are comments.
 */
#ifndef TESS_SOURCE_LIST_H
#define TESS_SOURCE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most spectral terms of a source. */
enum { TESS_SOURCE_LIST_TERMS = 32 };

/** A source. With its terms c_k, x = ν/ν0 − 1 and y = log10(ν/ν0), its Stokes I is
 *  I + Σ_k c_k x^(k+1), or with `is_log` I · (ν/ν0)^(Σ_k c_k y^k). */
typedef struct tess_listed_source {
    double ra_rad, dec_rad; /**< J2000 */
    double flux_jy[4];      /**< Stokes I, Q, U, V at ν0 */
    bool is_gaussian;
    double major_rad, minor_rad, pa_rad; /**< FWHM, from North through East */
    bool is_log;
    int num_terms;
    int64_t first_term; /**< of the list's terms */
    double ref_hz;      /**< ν0; 0: not told, of a source without terms */
    int scale;          /**< for its name, of a list that is written */
    int64_t line;       /**< of the file that it was read from */
} tess_listed_source;

/** Zeroed is empty; tess_source_list_free. */
typedef struct tess_source_list {
    tess_listed_source *source; /**< [num_sources] */
    int64_t num_sources, capacity;
    double *term; /**< [num_terms] of all sources */
    int64_t num_terms, capacity_terms;
} tess_source_list;

/** Whether the first line of a file that is not empty and no comment is a list's
 *  header. False also when it cannot be read. Collective. */
tess_status tess_source_list_is(tess_comm *comm, const char *path, bool *is);

/** Read on rank 0, parse everywhere. TESS_ERR_IO; TESS_ERR_INPUT naming file, line and
 *  column of what is no source: a value that is not finite, a position that is none, an
 *  unknown type, terms without a reference frequency. Columns that have no meaning here
 *  are named in a warning. Collective. */
tess_status tess_source_list_read(tess_comm *comm, const char *path,
                                  tess_source_list *list);

/** Parse a text that was read from `path`. `ignored`: gets the names of columns that
 *  have no meaning here, separated by commas; or NULL. Local. */
tess_status tess_source_list_parse(const char *path, const char *text,
                                   tess_source_list *list, char *ignored, size_t size);

/** Append a source with its terms, term[source->num_terms]. TESS_ERR_ALLOC. Local. */
tess_status tess_source_list_add(tess_source_list *list,
                                 const tess_listed_source *source, const double *term);

/** The list as a text, with positions to 1e-9 s and 1e-8 arcsec; `ref_hz` goes into
 *  the header. Names are sScNUMBER, S being the source's scale. `*text` is freed with
 *  tess_free(). TESS_ERR_ALLOC. Local. */
tess_status tess_source_list_text(const tess_source_list *list, double ref_hz,
                                  char **text);

void tess_source_list_free(tess_source_list *list); /**< Local. */

/** How the fluxes of a source depend on frequency: members as of a tess_listed_source.
 *  Stokes Q, U and V keep their ratios to I. */
typedef struct tess_source_spectrum {
    const double *flux_jy; /**< [4] at ref_hz */
    const double *term;    /**< [num_terms] */
    int num_terms;
    bool is_log;
    double ref_hz;
} tess_source_spectrum;

/** That of a source of the list. Local. */
static inline tess_source_spectrum
tess_source_list_spectrum(const tess_source_list *list,
                          const tess_listed_source *source)
{
    return (tess_source_spectrum){.flux_jy = source->flux_jy,
                                  .term = list->term ? list->term + source->first_term
                                                     : list->term,
                                  .num_terms = source->num_terms,
                                  .is_log = source->is_log,
                                  .ref_hz = source->ref_hz};
}

/** Stokes I, Q, U and V [Jy] at a frequency. Local. */
void tess_source_flux(const tess_source_spectrum *spectrum, double freq_hz,
                      double flux_jy[4]);

/** Their means over a band of a width around the frequency. Local. */
void tess_source_band_flux(const tess_source_spectrum *spectrum, double freq_hz,
                           double width_hz, double flux_jy[4]);

/** The first terms of a Stokes parameter (0 to 3) as a power series in ν/ν0 − 1 around
 *  the frequency ν0, taylor[num_terms], at most TESS_SOURCE_LIST_TERMS. Local. */
void tess_source_taylor(const tess_source_spectrum *spectrum, double freq_hz,
                        int stokes, int num_terms, double *taylor);

#ifdef __cplusplus
}
#endif
#endif
