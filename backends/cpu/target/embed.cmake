# Turns text files into a C file of byte arrays. In: FILES (a list), OUTPUT. Out: uir_cpu_prelude_parts, _sizes, _count.
set(arrays "")
set(names "")
set(sizes "")
set(count 0)
separate_arguments(FILES UNIX_COMMAND "${FILES}")
foreach(file IN LISTS FILES)
  file(READ ${file} bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR length "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const char part${count}[] = {${bytes}0};\n")
  string(APPEND names "part${count}, ")
  string(APPEND sizes "${length}, ")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"backends/cpu/target/emit.h\"\n${arrays}
const char *const uir_cpu_prelude_parts[] = {${names}};
const size_t uir_cpu_prelude_sizes[] = {${sizes}};
const uint32_t uir_cpu_prelude_count = ${count};\n")
