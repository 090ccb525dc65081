# What makes a fault harder to use: of each row what this compiler has for this machine. Every target gets it.
# What a linker does goes into every build; what costs instructions, or hides from a sanitizer what it looks for, into those
# that people run.
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

# The flags are looked for with warnings as errors: clang only warns of what it does not know. Zeroed automatic variables
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
# A C library that does not know level 3 takes it for 2; a compiler that predefines a level is told to forget it.
add_compile_options("$<${optimised}:-U_FORTIFY_SOURCE>" "$<${optimised}:-D_FORTIFY_SOURCE=3>")
# Tables of functions and of addresses are read-only once they are filled in, which is before the program starts.
foreach(flag IN ITEMS -z,relro -z,now -z,noexecstack)
  string(MAKE_C_IDENTIFIER "UIR_HAVE_LINKER${flag}" known)
  check_linker_flag(C LINKER:${flag} ${known})
  if(${known})
    add_link_options(LINKER:${flag})
  endif()
endforeach()
