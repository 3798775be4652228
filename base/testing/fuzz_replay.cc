// Runs a fuzz target over the checked-in inputs named on the command line (files or folders), so
// that every corpus is also a unit test, and over 2,000 seeded random inputs.
#include "base/files.h"
#include "base/random.h"

#include <cstdio>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const u8* data, size_t size);

static int replay(const std::string& path) {
  base::Result<std::string> content = base::read_file(path);
  if (!content.ok()) return 0;
  LLVMFuzzerTestOneInput(reinterpret_cast<const u8*>(content->data()), content->size());
  return 1;
}

int main(int argc, char** argv) {
  int replayed = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    if (!base::is_directory(path)) {
      replayed += base::file_exists(path) ? replay(path) : 0;
      continue;
    }
    base::Result<std::vector<std::string>> files = base::list_tree(path);
    if (!files.ok()) return 1;
    for (const std::string& file : *files) replayed += replay(path + "/" + file);
  }
  base::Rng rng(1);
  for (int i = 0; i < 2'000; ++i) {
    std::vector<u8> bytes(rng.below(300));
    for (u8& byte : bytes) byte = static_cast<u8>(rng.next());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("replayed %d inputs and 2000 random ones\n", replayed);
  return 0;
}
