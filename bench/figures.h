#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nodepool::bench {

// What a benchmark has measured. Prints each figure as a line for people when it is added, and all of them as
// a table for bench/run.
class Figures {
 public:
  void Add(std::string name, double value, std::string_view unit);

  // Writes a line for each figure, name, value and unit with tabs between them; to standard output if the
  // file is "-". Does nothing without a name of a file.
  void Write(const std::string& file) const;

 private:
  struct Figure {
    std::string name;
    double value;
    std::string unit;
  };

  std::vector<Figure> figures_;
};

// The value below which `fraction` of the values are; 0 if there are none.
double Percentile(std::vector<double> values, double fraction);

}  // namespace nodepool::bench
