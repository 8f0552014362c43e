#include "drivers/kubernetes/kubeconfig/certificate.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include "base/error.h"
#include "base/time_text.h"

namespace nodepool::drivers::kubernetes {

WallTime EndOfCertificate(const std::string& pem, const std::string& place, WallTime now) {
  std::unique_ptr<BIO, decltype(&BIO_free)> source(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                   BIO_free);
  std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(source.get(), nullptr, nullptr, nullptr), X509_free);
  std::tm fields{};
  if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &fields) != 1) {
    throw Error(Verdict::kInvalid,
                place + " is not a client certificate in PEM format; correct or replace it");
  }
  WallTime end = std::chrono::system_clock::from_time_t(timegm(&fields));
  if (end <= now) {
    throw Error(
        Verdict::kInvalid,
        fmt::format("the client certificate in {} ended at {}; replace it there by a new one, which is used "
                    "without a restart",
                    place, Iso8601(end)));
  }
  return end;
}

}  // namespace nodepool::drivers::kubernetes
