#include "drivers/aws/api/xml.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/request_id.h"
#include "base/text.h"
#include "driver/cloud/api/api_error.h"

namespace nodepool::drivers::aws {
namespace {

pugi::xml_node NodeAt(pugi::xml_node node, std::initializer_list<const char*> path) {
  for (const char* name : path) node = node.child(name);
  return node;
}

// Whether the text begins as AWS's answers do: pages of proxies and logins have elements in lower case.
bool BeginsAsAnswer(std::string_view text, const pugi::xml_document& document) {
  const char* name = document.document_element().name();
  return (*name >= 'A' && *name <= 'Z') || (*name == '\0' && Trim(text).starts_with("<?xml"));
}

bool EndsTooEarly(std::string_view text, const pugi::xml_document& document) {
  if (!BeginsAsAnswer(text, document)) return false;
  std::string end = fmt::format("</{}>", document.document_element().name());
  return !Trim(text).ends_with(end);
}

}  // namespace

pugi::xml_document ParseXml(std::string_view text, std::string_view call, std::string_view request_id) {
  pugi::xml_document document;
  pugi::xml_parse_result result = document.load_buffer(text.data(), text.size());
  if (result && document.document_element()) return document;
  std::string message =
      EndsTooEarly(text, document)
          ? fmt::format("{}: the answer is XML that ends in the middle, after {} bytes", call, text.size())
          : fmt::format("{} was answered with something that is no XML: {}", call,
                        driver::cloud::api::FaultText(text.substr(0, 500)));
  throw Error(Verdict::kRetry, WithRequestId(fmt::format("{}; {}", message, kOddAnswer), request_id));
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
