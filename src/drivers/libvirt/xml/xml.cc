#include "drivers/libvirt/xml/xml.h"

#include <fmt/format.h>

#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace nodepool::drivers::libvirt {

std::string TextOf(const pugi::xml_document& document) {
  std::ostringstream text;
  document.save(text, "  ", pugi::format_default | pugi::format_no_declaration);
  return text.str();
}

void Parse(std::string_view text, const char* what, pugi::xml_document& document) {
  pugi::xml_parse_result result = document.load_buffer(text.data(), text.size());
  if (result) return;
  throw Error(Verdict::kFail, fmt::format("the host's description of {} is not XML ({} at byte {}): {}", what,
                                          result.description(), result.offset, Excerpt(text)));
}

}  // namespace nodepool::drivers::libvirt
