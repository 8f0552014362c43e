#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>

#include "config/validator.h"
#include "config/yaml/yaml_reader.h"
#include "drivers/schemas/known_drivers.h"

namespace {

using namespace nodepool;

// A configuration of about `bytes`: labels, images and one provider that offers them.
std::string BigConfig(std::size_t bytes) {
  std::string labels = "labels:\n";
  std::string images = "diskimages:\n";
  std::string offered;
  for (int i = 0; labels.size() + images.size() + offered.size() < bytes; ++i) {
    labels += fmt::format("  - name: label-{}\n    min-ready: {}\n    max-ready-age: 3600\n", i, i % 5);
    images += fmt::format(
        "  - name: image-{}\n    elements: [vm, simple-init, growroot, zuul-worker]\n    release: jammy\n"
        "    env-vars:\n      DIB_CHECKSUM: '1'\n      TMPDIR: /opt/dib_tmp\n",
        i);
    offered += fmt::format(
        "          - name: label-{}\n            diskimage: image-{}\n            min-ram: 8192\n", i, i);
  }
  return labels + images +
         "providers:\n  - name: p\n    cloud: c\n    pools:\n      - name: main\n        labels:\n" + offered;
}

void ParseTwoMegabytes(benchmark::State& state) {
  std::string text = BigConfig(2 << 20);
  for (auto _ : state) benchmark::DoNotOptimize(config::ParseYaml(text));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(ParseTwoMegabytes)->Unit(benchmark::kMillisecond);

void ParseAndValidateTwoMegabytes(benchmark::State& state) {
  std::string text = BigConfig(2 << 20);
  for (auto _ : state) {
    config::ValidationReport report =
        config::ValidateDocument(*config::ParseDocument(text), {.drivers = drivers::KnownDriverSchema});
    if (report.exit_status() != 0) state.SkipWithError(report.findings.at(0).message.c_str());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(ParseAndValidateTwoMegabytes)->Unit(benchmark::kMillisecond);

}  // namespace
