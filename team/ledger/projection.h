// The tables a person can query: tasks, criteria, evidence, usage, effects, leases, budgets. They
// are views of the event table and nothing else: drop them, fold the events again, and they are the
// same (a test does so). Errors: those of the database.
#pragma once

#include "base/result.h"
#include "team/core/event.h"
#include "team/ledger/database.h"

namespace team {

base::Status create_tables(Database& database);
// Empties every projection table; the events stay.
base::Status clear_projections(Database& database);
// Folds one event into the tables. Must run in the transaction that stores the event.
base::Status project(Database& database, const std::string& run, const Event& event);
// All projection tables as text, in a fixed order, for comparing two databases.
base::Result<std::string> dump_projections(Database& database);

}  // namespace team
