# Writes a C++ source with the files of the browser's page: cmake -DFILES=... -DOUTPUT=... -P EmbedFiles.cmake
# Each is in it as it is and compressed, with a tag of its content (src/web/page/page.h).

function(as_array text_variable file)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  set(${text_variable} "${bytes}" PARENT_SCOPE)
endfunction()

set(types_html "text/html; charset=UTF-8")
set(types_js "text/javascript; charset=UTF-8")
set(types_css "text/css; charset=UTF-8")
set(types_svg "image/svg+xml")

set(arrays "")
set(entries "")
set(number 0)
foreach(path IN LISTS FILES)
  get_filename_component(name ${path} NAME)
  get_filename_component(ending ${path} LAST_EXT)
  string(SUBSTRING ${ending} 1 -1 ending)
  set(compressed ${OUTPUT}.${number}.gz)
  execute_process(COMMAND gzip -9nc ${path} OUTPUT_FILE ${compressed} COMMAND_ERROR_IS_FATAL ANY)
  as_array(plain_bytes ${path})
  as_array(gzip_bytes ${compressed})
  file(REMOVE ${compressed})
  file(SHA256 ${path} hash)
  string(SUBSTRING ${hash} 0 16 tag)
  string(APPEND arrays
         "constexpr unsigned char kPlain${number}[] = {${plain_bytes}};\n"
         "constexpr unsigned char kGzip${number}[] = {${gzip_bytes}};\n")
  string(APPEND entries
         "    {\"${name}\", \"${types_${ending}}\", View(kPlain${number}), View(kGzip${number}), \"\\\"${tag}\\\"\"},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE ${OUTPUT} "// Written by cmake/EmbedFiles.cmake.
#include \"web/page/page.h\"

namespace nodepool::web {
namespace {

template <std::size_t size>
std::string_view View(const unsigned char (&bytes)[size]) {
  return {reinterpret_cast<const char*>(bytes), size};
}

${arrays}
}  // namespace

std::span<const PageFile> PageFiles() {
  static const PageFile files[] = {
${entries}  };
  return files;
}

}  // namespace nodepool::web
")
