// The seam between the engine and whatever computes a step. A model owns its weights, its cache and
// every buffer of a step; the engine tells it which token stands where and reads logits back.
//
// Rows of a step are tokens. Row i is token `token` at `position` of sequence `slot`; its keys and
// values go to the cache page page_table[slot][position / 16]. Rows of one slot are in order. A
// model computes each row's results independently of the other rows, bit for bit. Single-threaded:
// one caller; the model uses its Crew inside.
#pragma once

#include "base/result.h"
#include "llm/formats/tensor.h"
#include "llm/kernels/crew.h"
#include "llm/kernels/kernels.h"
#include "llm/kernels/matrix.h"

#include <memory>
#include <string>
#include <vector>

namespace llm {

inline constexpr i32 kPageTokens = 16;

struct BatchRow {
  i32 token;
  i32 position;
  i32 slot;
  bool logits;  // wanted for this row
};

struct Step {
  const BatchRow* rows;
  i32 count;
  const i32* page_table;  // [slots][pages_per_slot]
  i32 pages_per_slot;
};

struct ModelInfo {
  std::string architecture;
  i32 vocab = 0;
  i32 hidden = 0;
  i32 layers = 0;
  i32 context = 0;  // tokens the model was made for
  u64 parameters = 0;
  u64 weight_bytes = 0;       // in memory
  u64 step_weight_bytes = 0;  // read by a step of one row
  u64 cache_bytes_per_token = 0;
};

// What a model makes room for before its first step.
struct Capacity {
  i32 pages = 64;       // cache pages of 16 tokens, shared by all slots
  i32 rows = 128;       // of one step
  i32 logit_rows = 16;  // of one step
  i32 context = 1024;   // tokens of one slot
};

// Switches of the ablation; none changes any result.
struct StepTuning {
  bool fusion = true;  // few phases; off: one phase and barrier for each operation
  bool comm = true;    // sum, residual and norm in one pass; off: copy, sum, add, norm, each apart
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;
  // REQUIRES: called once, before forward().
  virtual void reserve(const Capacity& capacity) = 0;
  virtual void forward(const Step& step) = 0;
  // Of the j-th row that wanted logits, [vocab]; until the next forward().
  virtual const f32* logits(i32 j) const = 0;
  virtual i32 argmax(i32 j) const = 0;  // the lowest id among equals
  virtual void set_tuning(const StepTuning& tuning) = 0;
  // Captures the residual stream at the input of these layers for every row: a draft's features.
  virtual void capture_inputs(const std::vector<i32>& layers) = 0;
  // [layers captured * hidden] of row i.
  virtual const f32* captured(i32 row) const = 0;
  // Row `token` of the embedding table, [hidden].
  virtual void embed(i32 token, f32* out) const = 0;
  virtual const PackedMatrix& head() const = 0;
  virtual Crew& crew() const = 0;
  // Memory for a step's rows and page table that forward() reads in place wherever it computes.
  // Zeroed; lives as long as the model. Once, after reserve().
  virtual u8* step_memory(u64 bytes) = 0;
};

}  // namespace llm
