#include <boost/json/parse.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "model/component.h"
#include "model/image.h"
#include "model/job.h"
#include "model/json.h"
#include "model/node.h"
#include "model/node_request.h"

// Any bytes in a record's znode: parsing must end with a record or an error, and
// what a record is written as must read back as the same record. Any JSON as what a client says: it
// comes back to the byte, and is shown as JSON that Boost takes. Any bytes as a message about a job:
// parsing must end.

namespace {

template <class Parse>
void Check(Parse parse, std::string_view text) {
  auto record = parse(text);
  if (!record) return;
  auto written = ToJson(*record);
  auto again = parse(written);
  if (!again || ToJson(*again) != written) std::abort();
}

void CheckForeign(std::string_view text) {
  using namespace nodepool;
  JsonScanner in(text);
  std::string_view value;
  if (!in.Value(value) || !in.End()) return;
  std::string member = "\"requestor_data\": " + std::string(value);
  auto request = ParseNodeRequest("{" + member + ", \"x\": " + std::string(value) + "}", WallTime());
  if (!request) return;  // one level too deep, or too long
  std::string written = ToJson(*request);
  if (written.find(member + ", ") == written.npos) std::abort();
  if (!written.ends_with(", \"x\": " + std::string(value) + "}")) std::abort();
  std::string shown;
  AppendValidJson(shown, value, JsonStyle::kCompact);
  boost::json::parse_options options;
  options.max_depth = 200;
  boost::json::error_code error;
  boost::json::parse(shown, error, {}, options);
  if (error && error != boost::json::error::exponent_overflow) std::abort();
  (void)RawJson::OfText(value).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nodepool;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  WallTime now = FromSeconds(1'700'000'000);
  Check([&](std::string_view t) { return ParseNode(t, now); }, text);
  Check([&](std::string_view t) { return ParseNodeRequest(t, now); }, text);
  Check([&](std::string_view t) { return ParseImageBuild(t, now); }, text);
  Check([&](std::string_view t) { return ParseImageUpload(t, now); }, text);
  for (ComponentKind kind : {ComponentKind::kLauncher, ComponentKind::kPool}) {
    Check([&](std::string_view t) { return ParseComponent(kind, t); }, text);
  }
  CheckForeign(text);
  Check(&ParseJobRule, text);
  Check(&ParseHoldNote, text);
  Check(&ParseLease, text);
  (void)ParseJobMessage(text);
  (void)ParseJobEvent(text);
  return 0;
}
