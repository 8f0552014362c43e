#include "drivers/aws/api/xml.h"

#include <fmt/format.h>

#include "base/error.h"
#include "driver/cloud/api/api_error.h"

namespace nodepool::drivers::aws {
namespace {

pugi::xml_node NodeAt(pugi::xml_node node, std::initializer_list<const char*> path) {
  for (const char* name : path) node = node.child(name);
  return node;
}

}  // namespace

pugi::xml_document ParseXml(std::string_view text, std::string_view call) {
  pugi::xml_document document;
  pugi::xml_parse_result result = document.load_buffer(text.data(), text.size());
  if (result && document.document_element()) return document;
  throw Error(Verdict::kRetry, fmt::format("{} was answered with something that is no XML: {}", call,
                                           driver::cloud::api::FaultText(text.substr(0, 500))));
}

std::string TextAt(const pugi::xml_node& node, std::initializer_list<const char*> path) {
  return NodeAt(node, path).text().get();
}

int NumberAt(const pugi::xml_node& node, std::initializer_list<const char*> path) {
  return NodeAt(node, path).text().as_int();
}

std::vector<pugi::xml_node> Items(const pugi::xml_node& node, const char* list) {
  std::vector<pugi::xml_node> items;
  for (const pugi::xml_node& item : node.child(list).children("item")) items.push_back(item);
  return items;
}

}  // namespace nodepool::drivers::aws
