#include "team/report/report.h"

#include "base/files.h"
#include "team/ledger/ledger.h"
#include "team/report/page.h"

namespace team {

base::Status write_report(const std::string& folder) {
  auto ledger = TRY(Ledger::open({.path = folder + "/ledger.db", .read_only = true}));
  std::vector<Event> events = TRY(ledger->events());
  return base::replace_file(folder + "/report.html", render_page(ledger->run(), events));
}

}  // namespace team
