/** @file tess_shared_code.h
 *  For functions in headers that the processor's compiler and a device's compile alike.
 *  The header of a device's language comes before this one. It defines
 *  TESS_SHARED_FUNCTION for its compiler, and TESS_ON_DEVICE where it compiles for the
 *  device.
 */
#ifndef TESS_SHARED_CODE_H
#define TESS_SHARED_CODE_H

#ifndef TESS_SHARED_FUNCTION
#define TESS_SHARED_FUNCTION static inline
#endif

#endif
