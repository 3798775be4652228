// Databases with damaged pages: every operation ends with rows or an error, never with a crash, a
// hang or a read outside a page. Worth most under the asan preset.
//
// FLEET_MALFORMED_ROUNDS sets how many damaged databases are made (default 150).
#include "db/storage/test_records.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace db {
namespace {

const BytewiseOrder kOrder;

struct Good {
  std::vector<u8> image;
  PageNo table;
  PageNo index;
};

Good make_good(u32 page_bytes, AutoVacuum vacuum, base::Rng& rng) {
  auto store = Store::open("", {}).value();
  store->set_page_size(page_bytes, 0).value();
  store->set_auto_vacuum(vacuum).value();
  store->begin_write().value();
  Good good;
  good.table = create_table_t(*store);
  good.index = store->create_tree(TreeKind::kIndex).value();
  {
    Cursor rows(*store, good.table, nullptr);
    Cursor keys(*store, good.index, &kOrder);
    for (int i = 0; i < 200; i++) {
      std::string text = random_text(rng, rng.chance(0.1) ? 3000 : 60);
      (void)rows.insert(i * 3, bytes(row_of(text)));
      (void)keys.insert(bytes(text));
    }
    for (int i = 0; i < 60; i++) {
      if (rows.seek_equal(static_cast<i64>(rng.below(200)) * 3) == Hit::kRow) (void)rows.erase();
    }
  }
  store->commit().value();
  good.image = store->serialize().value();
  return good;
}

void damage(std::vector<u8>& image, u32 page_bytes, base::Rng& rng) {
  for (u64 i = rng.below(4) + 1; i > 0; i--) {
    size_t page = rng.below(image.size() / page_bytes) * page_bytes;
    size_t at = page + rng.below(page_bytes);
    // Headers and cell pointers are where damage tells most.
    if (rng.chance(0.6)) at = page + (page == 0 ? 28 : 0) + rng.below(72);
    switch (rng.below(4)) {
      case 0:
        image[at] ^= static_cast<u8>(1u << rng.below(8));
        break;
      case 1:
        image[at] = static_cast<u8>(rng.next());
        break;
      case 2:
        image[at] = rng.chance(0.5) ? 0xff : 0;
        break;
      default: {
        size_t other = rng.below(image.size() / page_bytes) * page_bytes;
        size_t bytes = std::min<size_t>(rng.below(200), page_bytes - at % page_bytes);
        std::memmove(image.data() + at, image.data() + other,
                     std::min(bytes, image.size() - other));
      }
    }
  }
}

void exercise(Store& store, const Good& good, base::Rng& rng) {
  if (!store.begin_write().ok()) return;
  (void)store.integrity_check({good.table, good.index});
  {
    Cursor rows(store, good.table, nullptr);
    Cursor keys(store, good.index, &kOrder);
    ByteView view;
    for (Cursor* cursor : {&rows, &keys}) {
      int steps = 0;
      for (Hit hit = cursor->first(); hit == Hit::kRow && steps < 2000;
           hit = cursor->next(), steps++)
        if (cursor->payload(&view) == Hit::kError) break;
      for (Hit hit = cursor->last(); hit == Hit::kRow && steps < 4000; hit = cursor->previous())
        steps++;
      (void)cursor->count();
    }
    for (int i = 0; i < 60; i++) {
      std::string text = random_text(rng, rng.chance(0.1) ? 3000 : 200);
      (void)rows.insert(rng.between(-10, 700), bytes(row_of(text)));
      (void)keys.insert(bytes(text));
      if (rows.seek_at_least(rng.between(0, 600)) == Hit::kRow) (void)rows.erase();
      if (i % 7 == 0 && keys.first() == Hit::kRow) (void)keys.erase();
      if (i == 30) (void)store.open_savepoint();
    }
    if (rng.chance(0.5)) (void)store.rollback_savepoint(0);
  }
  (void)store.create_tree(TreeKind::kTable);
  (void)store.clear_tree(good.index);
  (void)store.drop_tree(good.table);
  (void)store.incremental_vacuum(0);
  if (!store.commit().ok()) (void)store.rollback();
}

TEST(MalformedFile, EndsInAnErrorNotACrash) {
  const char* wanted = std::getenv("FLEET_MALFORMED_ROUNDS");
  const int rounds = wanted ? std::atoi(wanted) : 150;
  const char* start = std::getenv("FLEET_MALFORMED_SEED");
  const u64 seed = start ? std::strtoull(start, nullptr, 10) : 1;
  for (int round = 0; round < rounds; round++) {
    SCOPED_TRACE(round);
    base::Rng rng(seed * 1000003 + static_cast<u64>(round));
    u32 page_bytes = 512u << rng.below(4);
    AutoVacuum vacuum = static_cast<AutoVacuum>(rng.below(3));
    Good good = make_good(page_bytes, vacuum, rng);
    damage(good.image, page_bytes, rng);
    auto store = Store::open_image(good.image);
    if (store.ok()) exercise(**store, good, rng);
  }
}

}  // namespace
}  // namespace db
