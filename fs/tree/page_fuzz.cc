// A page may be hostile: it is refused, or its entries build a page that decodes to the same.
#include "base/check.h"
#include "fs/tree/page.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto page = fs::decode_page({reinterpret_cast<const char*>(data), size});
  if (!page) return 0;
  bool leaf = page->level == 0;
  CHECK(page->keys.size() == (leaf ? page->values.size() : page->children.size()));
  fs::PageBuilder builder(page->level);
  for (size_t i = 0; i < page->keys.size(); ++i) {
    CHECK(i == 0 || page->keys[i - 1] < page->keys[i]);
    if (leaf) {
      builder.add_value(page->keys[i], page->values[i]);
    } else {
      builder.add_child(page->keys[i], page->children[i]);
    }
  }
  if (builder.empty()) return 0;
  auto again = fs::decode_page(builder.take());
  CHECK(again && again->keys == page->keys && again->values == page->values);
  CHECK(again->children == page->children);
  return 0;
}
