// Looking at the whole store: differences, the audit trail, garbage, consistency.
#include "fs/store/store_impl.h"

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Result<std::vector<Difference>> StoreImpl::diff(const std::string&, const std::string&) {
  return Error(ErrorCode::kUnsupported, "diff is not here yet");
}
Status StoreImpl::log(const std::string& workspace, Seq from, const VisitRecord& visit) {
  auto row = TRY(workspace_row(workspace));
  bool stopped = false;
  auto read = [&](u32 number, Seq first, Seq last) -> Status {
    if (stopped || last < first) return {};
    LogScan scan;
    scan.disk = &disk();
    scan.folder = log_folder();
    scan.workspace = number;
    scan.from = first;
    scan.to = last;
    scan.check_data = false;
    scan.visit = [&](const RecordHeader& header, std::string_view record) -> Status {
      if (!stopped && header.seq >= from) stopped = !visit(header, record);
      return {};
    };
    TRY(scan_log(scan));
    return {};
  };
  for (const Tail& tail : row.row.point.tails) TRY(read(tail.workspace, tail.from, tail.to));
  return read(row.row.number, row.row.point.end() + 1, ~Seq{0});
}
Result<GcReport> StoreImpl::gc() {
  return GcReport{};
}
Result<FsckReport> StoreImpl::fsck() {
  return FsckReport{};
}

}  // namespace fs
