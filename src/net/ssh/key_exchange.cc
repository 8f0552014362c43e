#include "net/ssh/key_exchange.h"

#include <libssh/libssh.h>
#include <unistd.h>

#include <utility>

#include "base/text.h"

namespace nodepool::net {

namespace {

struct FreeKey {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
using Key = std::unique_ptr<ssh_key_struct, FreeKey>;

struct FreeText {
  void operator()(char* text) const { ssh_string_free_char(text); }
};

// Nothing on this machine (the user's configuration, known hosts) may influence the exchange with
// the server.
void SetOptions(ssh_session session) {
  int verbosity = SSH_LOG_NOLOG;
  bool process_config = false;
  ssh_options_set(session, SSH_OPTIONS_LOG_VERBOSITY, &verbosity);
  ssh_options_set(session, SSH_OPTIONS_PROCESS_CONFIG, &process_config);
  ssh_options_set(session, SSH_OPTIONS_USER, "nodepool");
  ssh_options_set(session, SSH_OPTIONS_KNOWNHOSTS, "/dev/null");
  ssh_options_set(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  ssh_set_blocking(session, 0);
}

}  // namespace

void KeyExchange::FreeSession::operator()(ssh_session_struct* session) const {
  // Closes the socket. ssh_disconnect() would leave it open.
  ssh_free(session);
}

KeyExchange::KeyExchange(int descriptor, std::string algorithm)
    : descriptor_(descriptor), algorithm_(std::move(algorithm)) {}

KeyExchange::~KeyExchange() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Expected<std::optional<HostKey>> KeyExchange::Step() {
  if (!session_) {
    session_.reset(ssh_new());
    if (!session_) return Unexpected(Verdict::kRetry, "no memory for an SSH session");
    SetOptions(session_.get());
    if (!algorithm_.empty() &&
        ssh_options_set(session_.get(), SSH_OPTIONS_HOSTKEYS, algorithm_.c_str()) != SSH_OK) {
      return Unexpected(Verdict::kNotFound, "the SSH library does not know the algorithm " + algorithm_);
    }
    int descriptor = std::exchange(descriptor_, -1);
    ssh_options_set(session_.get(), SSH_OPTIONS_FD, &descriptor);
  }
  int result = ssh_connect(session_.get());
  if (result == SSH_AGAIN) return std::nullopt;
  if (result == SSH_OK) return ServersKey();
  std::string fault = ssh_get_error(session_.get());
  bool no_such_key = fault.find("no match for method server host key algo") != std::string::npos;
  return Unexpected(no_such_key ? Verdict::kNotFound : Verdict::kRetry, Excerpt(fault, 200));
}

Expected<HostKey> KeyExchange::ServersKey() const {
  ssh_key raw = nullptr;
  if (ssh_get_server_publickey(session_.get(), &raw) != SSH_OK) {
    return Unexpected(Verdict::kRetry, "the server showed no host key");
  }
  Key key(raw);
  char* text = nullptr;
  if (ssh_pki_export_pubkey_base64(key.get(), &text) != SSH_OK) {
    return Unexpected(Verdict::kRetry, "the server's host key cannot be represented");
  }
  std::unique_ptr<char, FreeText> base64(text);
  const char* type = ssh_key_type_to_char(ssh_key_type(key.get()));
  if (type == nullptr) return Unexpected(Verdict::kNotFound, "the server's host key has an unknown type");
  return HostKey{type, base64.get()};
}

}  // namespace nodepool::net
