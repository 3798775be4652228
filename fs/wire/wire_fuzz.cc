// Whatever the other side sends: decoders refuse it or give messages that encode to the same bytes.
#include "base/check.h"
#include "fs/wire/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size >= fs::wire::kHeaderBytes) (void)fs::wire::decode_header(bytes);
  (void)fs::wire::decode_hello(bytes);
  (void)fs::wire::decode_welcome(bytes);
  (void)fs::wire::decode_answer(bytes);
  if (auto lease = fs::wire::decode_lease(bytes)) {
    CHECK(fs::wire::decode_lease(fs::wire::encode_lease(*lease)) == lease);
  }
  (void)fs::wire::decode_news(bytes);
  (void)fs::wire::decode_appended(bytes);
  (void)fs::wire::decode_rescued(bytes);
  if (auto batch = fs::wire::decode_batch(bytes)) CHECK(fs::wire::encode_batch(*batch) == bytes);
  if (auto list = fs::wire::decode_invalidations(bytes)) {
    CHECK(fs::wire::encode_invalidations(*list) == bytes);
  }
  if (auto call = fs::wire::decode_call(bytes)) {
    std::string again = fs::wire::encode_call(call->request, base::as_bytes(call->data));
    CHECK(fs::wire::decode_call(again).has_value());
  }
  return 0;
}
