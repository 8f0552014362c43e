#include "bench/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace nodepool::bench {

void Figures::Add(std::string name, double value, std::string_view unit) {
  fmt::print("{:<48}{:>14.6g} {}\n", name, value, unit);
  std::fflush(stdout);
  figures_.push_back({std::move(name), value, std::string(unit)});
}

void Figures::Write(const std::string& file) const {
  if (file.empty()) return;
  std::string text;
  for (const Figure& figure : figures_) {
    text += fmt::format("{}\t{:.9g}\t{}\n", figure.name, figure.value, figure.unit);
  }
  if (file == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream out(file);
  if (!(out << text).flush()) throw std::runtime_error("cannot write " + file);
}

double Percentile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(fraction * static_cast<double>(values.size() - 1))];
}

}  // namespace nodepool::bench
