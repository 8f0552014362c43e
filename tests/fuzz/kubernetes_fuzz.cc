#include <unistd.h>

#include <boost/json/parse.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "base/error.h"
#include "drivers/kubernetes/api/cluster.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/config/kubernetes_config.h"
#include "drivers/kubernetes/kubeconfig/kubeconfig.h"
#include "drivers/kubernetes/machine/machines.h"
#include "drivers/kubernetes/names.h"

// Any bytes as what a cluster, a credential plugin or a kubeconfig says: lines of a watch with objects in any
// state, refusals, credentials, a file whose contexts are resolved. Nothing but Error comes of them.

namespace {

using namespace nodepool;
namespace kubernetes = drivers::kubernetes;

void ReadLine(std::string_view line) {
  boost::system::error_code error;
  boost::json::value parsed = boost::json::parse(line, error);
  if (error || !parsed.is_object()) return;
  kubernetes::Object object = kubernetes::ReadObject(parsed.as_object());
  kubernetes::StateOf(object);
  kubernetes::WhatHolds(object);
}

Task<> ReadLines(kubernetes::LineQueue& lines) {
  while (true) {
    Outcome<std::optional<std::string>> line = co_await Attempt(lines.Next());
    if (!line || !*line) co_return;
    ReadLine(**line);
  }
}

void ReadFile(std::string_view text) {
  static const std::string path = "/dev/shm/kubernetes_fuzz." + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << text;
  kubernetes::Places places{{{"KUBECONFIG", path}, {"HOME", "/nowhere"}}, "/nowhere"};
  for (const char* context : {"", "a"}) {
    try {
      kubernetes::ReadConnection(places, *context == 0 ? std::nullopt : std::optional<std::string>(context));
    } catch (const Error&) {
    }
  }
  std::filesystem::remove(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  static Loop loop;
  kubernetes::LineQueue lines({.line = 1000, .waiting = 4000});
  std::size_t half = size / 2;
  if (lines.Add(text.substr(0, half))) lines.Add(text.substr(half));
  lines.Close(std::nullopt);
  RunToEnd(loop, ReadLines(lines));
  kubernetes::ReadStatus(size % 2 == 0 ? 403 : 500, text);
  kubernetes::ParseQuantity(text);
  if (!kubernetes::IsLabelValue(kubernetes::ToLabelValue(text))) std::abort();
  try {
    kubernetes::ReadPluginOutput({.api_version = "v", .argv = {"x"}}, std::string(text));
  } catch (const Error&) {
  }
  ReadFile(text);
  return 0;
}
