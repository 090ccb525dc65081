# Flags that make faults harder to exploit, each if this compiler has it for this machine, for every target. Linker
# flags apply to every build; flags that cost instructions, or hide faults from a sanitizer, to optimised builds.
option(UIR_HARDENING "Compile and link with what makes faults harder to exploit" ON)
if(NOT UIR_HARDENING)
  return()
endif()
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")

# The flags are checked with warnings as errors: clang only warns of unknown ones. Zeroed automatic variables
# (-ftrivial-auto-var-init) are not among them: they cost readers of texts 2 to 3 %.
foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "UIR_HAVE${flag}" known)
  set(CMAKE_REQUIRED_FLAGS -Werror)
  check_c_compiler_flag(${flag} ${known})
  unset(CMAKE_REQUIRED_FLAGS)
  if(${known})
    add_compile_options("$<${optimised}:${flag}>")
  endif()
endforeach()
# A C library without level 3 uses level 2; a level that a compiler predefines is undefined first.
add_compile_options("$<${optimised}:-U_FORTIFY_SOURCE>" "$<${optimised}:-D_FORTIFY_SOURCE=3>")
# Tables of functions and of addresses are filled in before the program starts, and read-only afterwards.
foreach(flag IN ITEMS -z,relro -z,now -z,noexecstack)
  string(MAKE_C_IDENTIFIER "UIR_HAVE_LINKER${flag}" known)
  check_linker_flag(C LINKER:${flag} ${known})
  if(${known})
    add_link_options(LINKER:${flag})
  endif()
endforeach()
