# xxHash from its header, without its library. The header is the same for every machine: if a toolchain has none of its
# own, that of the build machine is used. It is copied, since a folder of the build machine's headers must not be
# searched before the target's.
# Out: the target uir_xxhash.
find_file(UIR_XXHASH_HEADER xxhash.h DOC "xxhash.h, 0.8 or newer (Debian: libxxhash-dev)")
if(NOT UIR_XXHASH_HEADER)
  find_file(UIR_XXHASH_HEADER xxhash.h PATHS /usr/include /usr/local/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
endif()
if(NOT UIR_XXHASH_HEADER)
  message(FATAL_ERROR "no xxhash.h: run script/setup, install Debian's libxxhash-dev, or give -DUIR_XXHASH_HEADER=FILE")
endif()
configure_file(${UIR_XXHASH_HEADER} ${PROJECT_BINARY_DIR}/xxhash/xxhash.h COPYONLY)
add_library(uir_xxhash INTERFACE)
target_include_directories(uir_xxhash SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/xxhash)
target_compile_definitions(uir_xxhash INTERFACE XXH_INLINE_ALL)
