#include "drivers/aws/credentials/credentials.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "base/time_text.h"

namespace nodepool::drivers::aws {

Credentials ReadCredentials(std::string_view text, std::string_view source, CredentialNames names) {
  auto refuse = [&source](std::string_view why) {
    return Error(Verdict::kInvalid, fmt::format("{} gives no credentials: {}", source, why));
  };
  boost::system::error_code malformed;
  boost::json::value parsed = boost::json::parse(text, malformed);
  if (malformed || !parsed.is_object()) throw refuse("its answer is not a JSON object");
  const boost::json::object& answer = parsed.get_object();
  std::string code = TextIn(answer, "Code");
  if (!code.empty() && code != "Success") throw refuse(Excerpt(code + ": " + TextIn(answer, "Message")));
  Credentials credentials;
  credentials.key_id = TextIn(answer, "AccessKeyId");
  credentials.secret = TextIn(answer, "SecretAccessKey");
  credentials.session_token = TextIn(answer, names.session_token);
  if (credentials.key_id.empty() || credentials.secret.empty()) throw refuse("its answer contains no keys");
  std::string expires = TextIn(answer, "Expiration");
  if (expires.empty()) return credentials;
  std::optional<WallTime> time = ParseIso8601(expires);
  if (!time) throw refuse("the time of their expiry is malformed");
  credentials.expires = *time;
  return credentials;
}

}  // namespace nodepool::drivers::aws
