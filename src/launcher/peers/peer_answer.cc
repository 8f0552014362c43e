#include "launcher/peers/peer_answer.h"

#include <boost/json/parse.hpp>

#include "base/json_fields.h"
#include "base/text.h"

namespace nodepool::launcher {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxSentence = 1'000;
constexpr std::size_t kMaxWord = 255;

std::string WordIn(const json::object& entry, std::string_view key) {
  return Excerpt(TextIn(entry, key), kMaxWord);
}

}  // namespace

Expected<PeerAnswer> ReadPeerAnswer(std::string_view answer, const std::string& hostname) {
  boost::system::error_code error;
  json::value parsed = json::parse(answer, error);
  const json::array* entries =
      error || !parsed.is_object() ? nullptr : ArrayIn(parsed.get_object(), "reasons");
  if (entries == nullptr) return Unexpected(Verdict::kInvalid, "the answer has no list of reasons");
  PeerAnswer reasons;
  for (const json::value& value : *entries) {
    const json::object* entry = value.if_object();
    if (entry == nullptr) return Unexpected(Verdict::kInvalid, "a reason of the answer is no object");
    if (reasons.size() == kMaxPeerReasons) break;
    std::string code = WordIn(*entry, "code");
    std::string text = Excerpt(TextIn(*entry, "text"), kMaxSentence);
    if (code.empty() || text.empty()) continue;
    PoolKey pool{ProviderName(WordIn(*entry, "provider")), PoolName(WordIn(*entry, "pool"))};
    reasons[RequestId(WordIn(*entry, "id"))] = {std::move(code), std::move(pool), std::move(text), hostname};
  }
  return reasons;
}

}  // namespace nodepool::launcher
