# tess_isa_sources(file macro table [options...]): compile `file` of the folder's module for
# the portable instruction set and once more for each of TESS_ISA_SETS, which are among those
# of base/machine/tess_isa.h, with `macro` naming the table it defines; the right one is picked
# at run time. FMA contraction and vectorised square roots are allowed in these files alone;
# `options` come last. Sanitizers look at every access of the unrolled loops: at -O3 such a
# file takes minutes to compile.
set(optimise -O3)
if(TESS_SANITIZE)
    set(optimise -O1)
endif()
set(TESS_ISA_OPTIONS ${optimise} -ffp-contract=fast -fno-math-errno -fno-trapping-math)
set(TESS_ISA_avx2 -mavx2 -mfma)
set(TESS_ISA_knl -mavx512f -mavx512cd -mfma)
set(TESS_ISA_avx512 -mavx512f -mavx512cd -mavx512dq -mavx512vl -mfma)

# TESS_ISA_SETS: those beside the portable one. TESS_ISA_DEFINITION tells base/machine/tess_isa.h.
set(TESS_ISA_SETS avx2)
set(TESS_ISA_DEFINITION "")
set(with_avx512 ${TESS_AVX512})
if(TESS_NATIVE_ISA)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -march=native -dM -E -x c /dev/null
                    OUTPUT_VARIABLE native ERROR_QUIET)
    if(NOT native MATCHES "__AVX512F__")
        set(with_avx512 OFF)
    elseif(with_avx512 AND native MATCHES "__AVX512VL__" AND native MATCHES "__AVX512DQ__")
        set(TESS_ISA_DEFINITION TESS_ISA_ONLY_AVX512)
        set(TESS_ISA_SETS avx512)
    endif()
endif()
if(NOT with_avx512)
    set(TESS_ISA_DEFINITION TESS_ISA_NO_AVX512)
elseif(NOT TESS_ISA_DEFINITION)
    list(APPEND TESS_ISA_SETS knl avx512)
endif()
# Fuzzers look at code that sees bytes of files. The gridder's loops, which do not, are
# portable and not sanitized for them: clang takes minutes over each.
function(tess_isa_sources file macro table)
    target_sources(${TESS_MODULE} PRIVATE ${file})
    set_source_files_properties(${file} PROPERTIES
                                COMPILE_OPTIONS "${TESS_ISA_OPTIONS};${ARGN}")
    if(TESS_FUZZ)
        target_compile_definitions(${TESS_MODULE} PUBLIC TESS_ISA_PORTABLE_ONLY)
        if(NOT file MATCHES "decode_isa")
            set_source_files_properties(${file} TARGET_DIRECTORY ${TESS_MODULE} PROPERTIES
                                        COMPILE_OPTIONS "-O0;-fno-sanitize=all")
        endif()
        return()
    endif()
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        return()
    endif()
    foreach(isa ${TESS_ISA_SETS})
        add_library(${table}_${isa} OBJECT ${file})
        target_include_directories(${table}_${isa} PRIVATE
            $<TARGET_PROPERTY:${TESS_MODULE},INCLUDE_DIRECTORIES>)
        target_compile_definitions(${table}_${isa} PRIVATE ${macro}=${table}_${isa})
        target_compile_options(${table}_${isa} PRIVATE ${TESS_ISA_${isa}})
        tess_warnings(${table}_${isa})
        target_sources(${TESS_MODULE_IN} PRIVATE $<TARGET_OBJECTS:${table}_${isa}>)
    endforeach()
endfunction()
