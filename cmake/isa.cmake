# tess_isa_sources(file macro table [options...]): compile `file` for the folder's module, for
# the portable instruction set and once more for each of TESS_ISA_SETS, which are among those
# of base/machine/tess_isa.h, with `macro` naming the table it defines; the right one is picked
# at run time. FMA contraction and vectorised square roots are allowed in these files alone;
# `options` come last. Sanitizers look at every access of the unrolled loops: at -O3 such a
# file takes minutes to compile.
set(optimise -O3)
if(TESS_SANITIZE)
    set(optimise -O1)
endif()
set(TESS_ISA_OPTIONS -ffp-contract=fast -fno-math-errno -fno-trapping-math)
set(TESS_ISA_portable ${optimise})
set(TESS_ISA_avx2 ${optimise} -mavx2 -mfma)
set(TESS_ISA_knl ${optimise} -mavx512f -mavx512cd -mfma)
set(TESS_ISA_avx512 ${optimise} -mavx512f -mavx512cd -mavx512dq -mavx512vl -mfma)

# TESS_ISA_SETS: those beside the portable one. TESS_ISA_DEFINITION tells base/machine/tess_isa.h.
set(TESS_ISA_SETS avx2)
set(TESS_ISA_DEFINITION "")
set(with_avx512 ${TESS_AVX512})
if(TESS_NATIVE_ISA)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -march=native -dM -E -x c /dev/null
                    OUTPUT_VARIABLE native ERROR_QUIET)
    # Where it has others, this machine never runs the portable loops, and those that grid
    # take a third of the time to compile at -O1, which sees less of what is initialised, and
    # of that a sixth without sanitizers.
    if(native MATCHES "__AVX2__" AND native MATCHES "__FMA__")
        set(TESS_ISA_portable -O1 $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
        if(TESS_SANITIZE)
            set(TESS_ISA_portable_last -fno-sanitize=all)
        endif()
    endif()
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
    set(sets portable ${TESS_ISA_SETS})
    set(options ${TESS_ISA_OPTIONS} ${ARGN})
    if(TESS_FUZZ)
        target_compile_definitions(${TESS_MODULE} PUBLIC TESS_ISA_PORTABLE_ONLY)
        set(sets portable)
        if(NOT file MATCHES "decode_isa")
            set(options -O0 -fno-sanitize=all)
        endif()
    elseif(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        set(sets portable)
    endif()
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${options}")
    foreach(isa ${sets})
        add_library(${table}_${isa} OBJECT ${file})
        target_include_directories(${table}_${isa} PRIVATE
            $<TARGET_PROPERTY:${TESS_MODULE},INCLUDE_DIRECTORIES>)
        target_compile_definitions(${table}_${isa} PRIVATE
            $<TARGET_PROPERTY:${TESS_MODULE},COMPILE_DEFINITIONS>)
        if(NOT isa STREQUAL "portable") # whose file also has what there is once
            target_compile_definitions(${table}_${isa} PRIVATE ${macro}=${table}_${isa})
        endif()
        target_compile_options(${table}_${isa} PRIVATE ${TESS_ISA_${isa}})
        tess_warnings(${table}_${isa})
        target_compile_options(${table}_${isa} PRIVATE ${TESS_ISA_${isa}_last})
        target_sources(${TESS_MODULE_IN} PRIVATE $<TARGET_OBJECTS:${table}_${isa}>)
    endforeach()
endfunction()
