// Any text may come as a patch. Input: the patch, a byte 1, the file it meets. A plan that is made
// must be the same when made again, and name files.
#include "base/check.h"
#include "team/agent/patch.h"

extern "C" int LLVMFuzzerTestOneInput(const u8* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(input.find('\x01'), input.size());
  const std::string patch(input.substr(0, cut));
  const std::string file(cut < input.size() ? input.substr(cut + 1) : "");
  const team::FileReader read =
      [&](const std::string& path) -> base::Result<std::optional<std::string>> {
    if (path.starts_with("new")) return std::optional<std::string>();
    return std::optional<std::string>(file);
  };
  const base::Result<team::PatchPlan> plan = team::plan_patch(patch, read);
  const base::Result<team::PatchPlan> again = team::plan_patch(patch, read);
  CHECK(plan.ok() == again.ok());
  if (!plan.ok()) {
    CHECK(!plan.error().message().empty());
    return 0;
  }
  CHECK(plan->changes.size() == again->changes.size());
  for (size_t i = 0; i < plan->changes.size(); ++i) {
    CHECK(!plan->changes[i].path.empty());
    CHECK(plan->changes[i].content == again->changes[i].content);
  }
  return 0;
}
