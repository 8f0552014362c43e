#include "model/states.h"

#include <array>
#include <utility>

namespace nodepool {
namespace {

template <class State, std::size_t n>
using Words = std::array<std::pair<State, std::string_view>, n>;

constexpr Words<NodeState, 11> kNodeWords = {{{NodeState::kInit, "init"},
                                              {NodeState::kBuilding, "building"},
                                              {NodeState::kTesting, "testing"},
                                              {NodeState::kReady, "ready"},
                                              {NodeState::kInUse, "in-use"},
                                              {NodeState::kUsed, "used"},
                                              {NodeState::kHold, "hold"},
                                              {NodeState::kDeleting, "deleting"},
                                              {NodeState::kDeleted, "deleted"},
                                              {NodeState::kFailed, "failed"},
                                              {NodeState::kAborted, "aborted"}}};

constexpr Words<RequestState, 4> kRequestWords = {{{RequestState::kRequested, "requested"},
                                                   {RequestState::kPending, "pending"},
                                                   {RequestState::kFulfilled, "fulfilled"},
                                                   {RequestState::kFailed, "failed"}}};

// Builds and uploads share the enumeration; each kind uses four of the five.
constexpr Words<ImageState, 5> kImageWords = {{{ImageState::kBuilding, "building"},
                                               {ImageState::kUploading, "uploading"},
                                               {ImageState::kReady, "ready"},
                                               {ImageState::kDeleting, "deleting"},
                                               {ImageState::kFailed, "failed"}}};

template <class State, std::size_t n>
std::string_view Word(const Words<State, n>& words, State state) {
  for (const auto& [candidate, word] : words) {
    if (candidate == state) return word;
  }
  return "";
}

template <class State, std::size_t n>
std::optional<State> StateOf(const Words<State, n>& words, std::string_view text) {
  for (const auto& [state, word] : words) {
    if (word == text) return state;
  }
  return std::nullopt;
}

template <class State, std::size_t n>
std::vector<std::string_view> WordsOf(const Words<State, n>& words) {
  std::vector<std::string_view> all;
  for (const auto& [state, word] : words) all.push_back(word);
  return all;
}

}  // namespace

std::string_view ToString(NodeState state) { return Word(kNodeWords, state); }
std::string_view ToString(RequestState state) { return Word(kRequestWords, state); }
std::string_view ToString(ImageState state) { return Word(kImageWords, state); }

std::optional<NodeState> ParseNodeState(std::string_view text) { return StateOf(kNodeWords, text); }
std::optional<RequestState> ParseRequestState(std::string_view text) { return StateOf(kRequestWords, text); }
std::optional<ImageState> ParseImageState(std::string_view text) { return StateOf(kImageWords, text); }

std::vector<std::string_view> NodeStateWords() { return WordsOf(kNodeWords); }
std::vector<std::string_view> RequestStateWords() { return WordsOf(kRequestWords); }
std::vector<std::string_view> ImageStateWords() { return WordsOf(kImageWords); }

}  // namespace nodepool
