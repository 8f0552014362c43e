#include "net/ssh/ssh_host_key.h"

#include <libssh/libssh.h>

#include <memory>

#include "base/text.h"

namespace nodepool::net {

namespace {

struct FreeSession {
  void operator()(ssh_session session) const {
    ssh_disconnect(session);
    ssh_free(session);
  }
};
using Session = std::unique_ptr<ssh_session_struct, FreeSession>;

struct FreeKey {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
using Key = std::unique_ptr<ssh_key_struct, FreeKey>;

struct FreeText {
  void operator()(char* text) const { ssh_string_free_char(text); }
};

// Nothing on this machine (user's configuration, known hosts) may influence what a
// server is asked.
Session NewSession(const std::string& address, int port, Duration limit) {
  Session session(ssh_new());
  if (!session) return session;
  unsigned int number = static_cast<unsigned int>(port);
  long seconds = static_cast<long>(std::chrono::ceil<std::chrono::seconds>(limit).count());
  int verbosity = SSH_LOG_NOLOG;
  bool process_config = false;
  ssh_options_set(session.get(), SSH_OPTIONS_LOG_VERBOSITY, &verbosity);
  ssh_options_set(session.get(), SSH_OPTIONS_PROCESS_CONFIG, &process_config);
  ssh_options_set(session.get(), SSH_OPTIONS_HOST, address.c_str());
  ssh_options_set(session.get(), SSH_OPTIONS_PORT, &number);
  ssh_options_set(session.get(), SSH_OPTIONS_USER, "nodepool");
  ssh_options_set(session.get(), SSH_OPTIONS_TIMEOUT, &seconds);
  ssh_options_set(session.get(), SSH_OPTIONS_KNOWNHOSTS, "/dev/null");
  ssh_options_set(session.get(), SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  return session;
}

}  // namespace

Expected<HostKey> ReadHostKey(const std::string& address, int port, const std::string& algorithm,
                              Duration limit) {
  Session session = NewSession(address, port, limit);
  if (!session) return Unexpected(Verdict::kRetry, "no memory for an SSH session");
  if (!algorithm.empty() &&
      ssh_options_set(session.get(), SSH_OPTIONS_HOSTKEYS, algorithm.c_str()) != SSH_OK) {
    return Unexpected(Verdict::kNotFound, "the SSH library does not know the algorithm " + algorithm);
  }
  if (ssh_connect(session.get()) != SSH_OK) {
    std::string fault = ssh_get_error(session.get());
    bool no_such_key = fault.find("no match for method server host key algo") != std::string::npos;
    return Unexpected(no_such_key ? Verdict::kNotFound : Verdict::kRetry, Excerpt(fault, 200));
  }
  ssh_key raw = nullptr;
  if (ssh_get_server_publickey(session.get(), &raw) != SSH_OK) {
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
