# Modules: one target each, of one folder or of several.
#
#   tess_module(grid USES base mpi fft)   in the folder's CMakeLists.txt
#
# makes the object library tess_grid of what target_sources() adds to it, and puts its
# objects into tessera_core, or into the library named after IN. A header named tess_*.h or
# tess_*.cuh is public: links to a module's public headers lie in a folder of the build,
# which is all that other modules search. Any other header is private: the compiler does not
# find it from outside. FOLDERS names the folders of a module that has several, whose files
# see one another's private headers.

# Folders of private headers, for tests, which look inside.
set_property(GLOBAL PROPERTY TESS_PRIVATE_FOLDERS "")

function(tess_module name)
    cmake_parse_arguments(PARSE_ARGV 1 module "" "IN" "FOLDERS;USES")
    if(NOT module_IN)
        set(module_IN tessera_core)
    endif()
    if(NOT module_FOLDERS)
        set(module_FOLDERS .)
    endif()
    set(target tess_${name})
    set(public ${CMAKE_BINARY_DIR}/modules/${name})
    file(REMOVE_RECURSE ${public}) # a header may have got another name
    file(MAKE_DIRECTORY ${public})
    add_library(${target} OBJECT)
    foreach(folder ${module_FOLDERS})
        get_filename_component(folder ${folder} ABSOLUTE)
        file(GLOB headers CONFIGURE_DEPENDS ${folder}/tess_*.h ${folder}/tess_*.cuh)
        foreach(header ${headers})
            get_filename_component(file ${header} NAME)
            file(CREATE_LINK ${header} ${public}/${file} SYMBOLIC)
        endforeach()
        target_include_directories(${target} PRIVATE ${folder})
        set_property(GLOBAL APPEND PROPERTY TESS_PRIVATE_FOLDERS ${folder})
    endforeach()
    target_include_directories(${target} PUBLIC ${public})
    list(TRANSFORM module_USES PREPEND tess_)
    target_link_libraries(${target} PUBLIC tess_settings ${module_USES})
    tess_warnings(${target})
    target_sources(${module_IN} PRIVATE $<TARGET_OBJECTS:${target}>)
    set(TESS_MODULE ${target} PARENT_SCOPE)
    set(TESS_MODULE_IN ${module_IN} PARENT_SCOPE)
endfunction()
