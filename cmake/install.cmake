# The installed files: libuir and libuir_rt, each shared and static; the headers, the programs, pkg-config files, a
# CMake package. In: the stages' targets. Out: targets uir_shared, uir_static, uir_rt_shared, uir_rt_static,
# uir_installed (everything that `cmake --install` needs), and the rules of `cmake --install`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_custom_target(uir_installed)

# uir_add_public_library(NAME OWN target... PARTS target... EXTERNAL library...)
# OWN: targets with every object in the library; PARTS: targets of which a shared library links only the objects it
# uses.
function(uir_add_public_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OWN;PARTS;EXTERNAL")
  set(own "")
  set(all "")
  foreach(target IN LISTS arg_OWN)
    list(APPEND own $<TARGET_OBJECTS:${target}>)
  endforeach()
  foreach(target IN LISTS arg_PARTS)
    list(APPEND all $<TARGET_OBJECTS:${target}>)
  endforeach()
  # The stages hide every name that a public header does not mark.
  add_library(${name}_shared SHARED ${own})
  target_link_libraries(${name}_shared PRIVATE ${arg_PARTS} ${arg_EXTERNAL} m)
  target_link_options(${name}_shared PRIVATE LINKER:--gc-sections LINKER:--as-needed)
  add_library(${name}_static STATIC ${own} ${all})
  target_link_libraries(${name}_static INTERFACE ${arg_EXTERNAL} m)
  foreach(kind shared static)
    set_target_properties(${name}_${kind} PROPERTIES
      OUTPUT_NAME ${name} LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/public ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/public)
    target_include_directories(${name}_${kind} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  set_target_properties(${name}_shared PROPERTIES EXPORT_NAME ${name})
  add_dependencies(uir_installed ${name}_shared ${name}_static)
  install(TARGETS ${name}_shared ${name}_static EXPORT uirTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

set(parts ${libraries})
list(REMOVE_ITEM parts uir_api)
list(JOIN UIR_PICTURE_MODULES " " picture_modules)
set(public_libraries "uir_rt|packages of compiled models run, without a compiler|${picture_modules}")
uir_add_public_library(uir_rt OWN uir_runtime_only uir_api PARTS uir_io_small uir_io uir_devices uir_vm uir_cpu_driver uir_null_driver uir_opencl_driver uir_rt uir_package uir_image uir_base
                       EXTERNAL ${UIR_PICTURE_EXTERNAL} pthread dl)
if(NOT UIR_RUNTIME_ONLY)
  list(APPEND public_libraries "uir|ONNX models compiled and run|libprotobuf-c libsodium zlib ${picture_modules}")
  uir_add_public_library(uir OWN uir uir_api PARTS ${parts} EXTERNAL protobuf-c sodium z ${UIR_PICTURE_EXTERNAL} pthread dl)
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/uir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The licence is installed with the binaries; documents keep their relative paths, by which they name each other.
foreach(file LICENSE THIRD_PARTY.md SECURITY.md README.md)
  install(FILES ${PROJECT_SOURCE_DIR}/${file} DESTINATION ${CMAKE_INSTALL_DOCDIR})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT uirTargets NAMESPACE uir:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/uir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/uirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/uirConfig.cmake
     CONTENT "include(\${CMAKE_CURRENT_LIST_DIR}/uirTargets.cmake)\n" @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/uirConfig.cmake ${PROJECT_BINARY_DIR}/uirConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/uir)

# The prefix is relative to the file, so that an installed tree may be moved.
file(RELATIVE_PATH UIR_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(pair IN LISTS public_libraries)
  string(REPLACE "|" ";" pair "${pair}")
  list(GET pair 0 name)
  list(GET pair 1 what)
  list(GET pair 2 requires)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.pc @ONLY CONTENT "prefix=\${pcfiledir}/@UIR_PC_TO_PREFIX@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: @name@
Description: @what@
Version: @PROJECT_VERSION@
Requires.private: @requires@
Libs: -L\${libdir} -l@name@
Libs.private: -lm -lpthread -ldl
Cflags: -I\${includedir}
")
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
