#include "team/core/run_state.h"

#include "team/core/machine.h"

#include <algorithm>
#include <array>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;

// Facts that a second execution of the same work may measure differently.
constexpr std::array<std::string_view, 12> kMeasured = {
    "wall_us", "cpu_us", "rss",    "wall_ms", "metrics",   "at_us",
    "latency", "fence",  "worker", "profile", "operation", "canary_verdict"};

bool is_entity(const Event& event) {
  return machine_of(kind_of(event)) != nullptr;
}

}  // namespace

std::string describe_move(const Event& event, std::string_view from) {
  return std::string(kind_of(event)) + " " + event.body["id"].as_string() + " cannot go from " +
         (from.empty() ? "nothing" : std::string(from)) + " to " + std::string(move_of(event));
}

UsageRow usage_row_from_json(const Json& body) {
  UsageRow row;
  row.call = body["call"].as_string();
  row.stage = body["stage"].as_string();
  row.role = body["role"].as_string();
  row.task = body["task"].as_string();
  row.attempt = body["attempt"].as_string();
  row.backend = body["backend"].as_string();
  row.model_asked = body["model_asked"].as_string();
  row.model_got = body["model_got"].as_string();
  row.price = body["price"].as_string();
  row.outcome = body["outcome"].as_string();
  row.usage = usage_from_json(body["usage"]);
  row.cost_nusd = body["cost_nusd"].as_int();
  row.ttft_ms = body["ttft_ms"].as_int();
  row.total_ms = body["total_ms"].as_int();
  return row;
}

base::Status RunState::check(const Event& event) const {
  const Machine* machine = machine_of(kind_of(event));
  if (machine == nullptr) return {};
  const std::string& id = event.body["id"].as_string();
  if (id.empty()) {
    return Error(ErrorCode::kInvalidArgument, "event " + event.type + " names no id");
  }
  std::string_view from = state_of(machine->kind, id);
  if (!machine->allows(from, move_of(event))) {
    return Error(ErrorCode::kConflict, describe_move(event, from));
  }
  return {};
}

base::Status RunState::apply(const Event& event) {
  TRY(check(event));
  last_seq_ = std::max(last_seq_, event.seq);
  last_us_ = std::max(last_us_, event.at_us);
  if (event.type == "usage.booked") {
    UsageRow row = usage_row_from_json(event.body);
    row.seq = event.seq;
    spent_nusd_ += row.cost_nusd;
    if (row.outcome == "ambiguous") ambiguous_nusd_ += row.cost_nusd;
    usage_.push_back(std::move(row));
    return {};
  }
  if (!is_entity(event)) return {};
  auto key = std::make_pair(std::string(kind_of(event)), event.body["id"].as_string());
  auto [at, fresh] = entities_.try_emplace(key);
  Entity& entity = at->second;
  if (fresh) {
    entity.kind = key.first;
    entity.id = key.second;
    entity.facts = Json::object();
    entity.first_seq = event.seq;
    entity.first_us = event.at_us;
    order_.push_back(key);
  }
  entity.state = move_of(event);
  entity.last_seq = event.seq;
  entity.last_us = event.at_us;
  for (const auto& [name, value] : event.body.members()) {
    if (name != "id") entity.facts.set(name, value);
  }
  return {};
}

const Entity* RunState::find(std::string_view kind, std::string_view id) const {
  auto at = entities_.find({std::string(kind), std::string(id)});
  return at == entities_.end() ? nullptr : &at->second;
}

std::vector<const Entity*> RunState::all(std::string_view kind) const {
  std::vector<const Entity*> out;
  for (const auto& key : order_) {
    if (key.first == kind) out.push_back(&entities_.at(key));
  }
  return out;
}

std::string_view RunState::state_of(std::string_view kind, std::string_view id) const {
  const Entity* entity = find(kind, id);
  return entity == nullptr ? std::string_view() : std::string_view(entity->state);
}

Json RunState::comparable() const {
  Json out = Json::object();
  for (const auto& [key, entity] : entities_) {
    // Which worker did it, and how many were lost on the way, is no part of what was done.
    if (key.first == "lease") continue;
    Json facts = entity.facts;
    for (std::string_view name : kMeasured) facts.remove(name);
    out.at("entities")
        .set(key.first + "/" + key.second,
             Json::object({{"state", entity.state}, {"facts", std::move(facts)}}));
  }
  Usage total;
  i64 calls = 0;
  for (const UsageRow& row : usage_) {
    if (row.outcome == "ambiguous") continue;
    total += row.usage;
    ++calls;
  }
  out.set("calls", calls);
  out.set("usage", to_json(total));
  out.set("cost_nusd", spent_nusd_ - ambiguous_nusd_);
  return out;
}

}  // namespace team
