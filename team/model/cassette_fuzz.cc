// Any file may be given as a cassette: it opens, or it is refused as damaged with the line's
// number.
#include "base/check.h"
#include "base/files.h"
#include "team/model/cassette.h"

extern "C" int LLVMFuzzerTestOneInput(const u8* data, size_t size) {
  static const base::TempDir dir("fleet-fuzz");
  const std::string path = dir / "tape";
  CHECK(base::write_file(path, {reinterpret_cast<const char*>(data), size}).ok());
  const auto opened =
      team::Cassette::open({.path = path, .mode = team::CassetteMode::kStrict}, nullptr);
  if (opened.ok()) {
    CHECK((*opened)->unused() == (*opened)->size());
  } else {
    CHECK(opened.error().code() == base::ErrorCode::kCorruption);
    CHECK(opened.error().message().find("line ") != std::string::npos);
  }
  return 0;
}
