// Any bytes may come out of a device that somebody else wrote to: decode() must name an error or
// give views that stay inside the buffer.
#include "base/check.h"
#include "fs/fuse/request.h"

namespace {
bool inside(std::string_view part, const std::uint8_t* data, std::size_t size) {
  if (part.empty()) return true;
  auto* begin = reinterpret_cast<const std::uint8_t*>(part.data());
  return begin >= data && begin + part.size() <= data + size;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (bool ext : {false, true}) {
    auto request = fs::fuse::decode({data, size}, {ext});
    if (!request.ok()) continue;
    CHECK(inside(request->name, data, size));
    CHECK(inside(request->name2, data, size));
    CHECK(inside(base::as_text(request->argument), data, size));
    CHECK(inside(base::as_text(request->data), data, size));
  }
  return 0;
}
