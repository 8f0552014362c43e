#include "zk/server/password.h"

#include <openssl/rand.h>

#include "base/error.h"

namespace nodepool::zk::server {

std::string NewPassword() {
  std::string password(kPasswordSize, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(password.data()), kPasswordSize) != 1) {
    throw Error(Verdict::kFail, "the system gives no random numbers");
  }
  return password;
}

}  // namespace nodepool::zk::server
