# Turns text files into a C file of byte arrays. In: FILES (a list), OUTPUT, HEADER (declares them), PREFIX. Out:
# PREFIX_parts, _sizes, _count; with NAMES, also PREFIX_names: the files' paths from that folder.
set(arrays "")
set(parts "")
set(sizes "")
set(names "")
set(count 0)
separate_arguments(FILES UNIX_COMMAND "${FILES}")
foreach(file IN LISTS FILES)
  file(READ ${file} bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR length "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const char part${count}[] = {${bytes}0};\n")
  string(APPEND parts "part${count}, ")
  string(APPEND sizes "${length}, ")
  if(NAMES)
    file(RELATIVE_PATH name ${NAMES} ${file})
    string(APPEND names "\"${name}\", ")
  endif()
  math(EXPR count "${count} + 1")
endforeach()
if(NAMES)
  string(APPEND arrays "const char *const ${PREFIX}_names[] = {${names}};\n")
endif()
file(WRITE ${OUTPUT} "#include \"${HEADER}\"\n${arrays}
const char *const ${PREFIX}_parts[] = {${parts}};
const size_t ${PREFIX}_sizes[] = {${sizes}};
const uint32_t ${PREFIX}_count = ${count};\n")
