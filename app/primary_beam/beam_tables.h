/** @file beam_tables.h  (private to app/primary_beam/)
 *  Numbers of primary beams of telescopes.
 */
#ifndef BEAM_TABLES_H
#define BEAM_TABLES_H

#include "beam_cosine.h"
#include "beam_polynomial.h"

extern const beam_band beam_vla[], beam_atca[], beam_gmrt[];
extern const int beam_vla_num, beam_atca_num, beam_gmrt_num;
extern const beam_cosine_table beam_meerkat_uhf, beam_meerkat_l;

#endif
