#pragma once

#include <bitset>
#include <cstdio>
#include <cstdlib>
#include <functional>

// Included by the sources that tools/mutants has changed. NODEPOOL_MUTANT is the number of the
// mutant that is on; those that are reached are added to the file NODEPOOL_MUTANTS_REACHED.
namespace nodepool::mutants {

inline int Chosen() {
  static const char* text = std::getenv("NODEPOOL_MUTANT");
  static const int number = text != nullptr ? std::atoi(text) : 0;
  return number;
}

inline void Note(int number) {
  static const char* path = std::getenv("NODEPOOL_MUTANTS_REACHED");
  static std::bitset<1 << 16> noted;
  if (path == nullptr || noted[number]) return;
  noted.set(number);
  // Written at once: a test may end its process in any way.
  std::FILE* file = std::fopen(path, "a");
  std::fprintf(file, "%d\n", number);
  std::fclose(file);
}

inline bool On(int number) {
  Note(number);
  return number == Chosen();
}

// `a < b` becomes `a ^Comparison<7, std::less<>, std::less_equal<>>{}^ b`: no operator that stands
// beside a comparison binds less tightly than `^` and more tightly than the comparison, so the
// operands need not be found.
template <int number, class Original, class Changed>
struct Comparison {};

template <class Left, class Kind>
struct LeftOf {
  const Left& value;
};

template <class Left, int number, class Original, class Changed>
LeftOf<Left, Comparison<number, Original, Changed>> operator^(const Left& left,
                                                              Comparison<number, Original, Changed>) {
  return {left};
}

template <class Left, class Right, int number, class Original, class Changed>
bool operator^(LeftOf<Left, Comparison<number, Original, Changed>> left, const Right& right) {
  return On(number) ? Changed{}(left.value, right) : Original{}(left.value, right);
}

}  // namespace nodepool::mutants
