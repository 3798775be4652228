// The multi-token prediction layer of GLM-5.2: z = W [RMS(embedding); RMS(state)], then one decoder
// layer over z, a norm of its own and the model's head.
#include "llm/model/glm.h"

#include <cstring>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Status;

Status GlmModel::enable_mtp(const TensorSource& source) {
  const GlmConfig& c = config_;
  WeightReader reader(source, precision_);
  const std::string at = "blk." + std::to_string(c.layers) + ".";
  if (c.mtp_layers == 0 || !reader.has(at + "nextn.eh_proj.weight")) {
    return Error(ErrorCode::kNotFound, "the model has no layer for multi-token prediction");
  }
  if (crew_.ranks() > 1) {
    return Error(ErrorCode::kUnsupported, "multi-token prediction works in one process only");
  }
  if (reader.has(at + "nextn.embed_tokens.weight")) {
    return Error(ErrorCode::kUnsupported,
                 "a multi-token prediction layer with an embedding of its own is not supported");
  }
  Mtp mtp;
  mtp.token_norm = TRY(reader.vector(at + "nextn.enorm.weight", c.hidden));
  mtp.state_norm = TRY(reader.vector(at + "nextn.hnorm.weight", c.hidden));
  mtp.final_norm = TRY(reader.vector(at + "nextn.shared_head_norm.weight", c.hidden));
  mtp.join = TRY(reader.matrix(at + "nextn.eh_proj.weight", c.hidden, 2 * c.hidden));
  if (reader.has(at + "nextn.shared_head_head.weight")) {
    mtp.head = TRY(reader.matrix(at + "nextn.shared_head_head.weight", c.vocab, c.hidden));
  }
  i32 indexers = 0;
  for (const Layer& layer : layers_) indexers += layer.indexed ? 1 : 0;
  layers_.push_back(TRY(read_layer(&reader, c.layers)));
  index_place_.push_back(indexers);
  info_.weight_bytes += reader.bytes();
  info_.cache_bytes_per_token += static_cast<u64>(element_ * (cached_stride() + c.index_dim));
  keep_states();
  mtp_ = std::move(mtp);
  return {};
}

void GlmModel::forward_mtp(const Step& step, const f32* const* states) {
  CHECK(mtp_.has_value());
  mtp_->states = states;
  run_pass(step, {config_.layers, config_.layers + 1, &mtp_->final_norm,
                  mtp_->head.empty() ? &own_head() : &mtp_->head});
  mtp_->states = nullptr;
}

void GlmModel::start_residual(i32 thread) {
  if (!mtp_ || mtp_->states == nullptr) return Decoder::start_residual(thread);
  const i32 hidden = config_.hidden;
  const Share mine = rows_of(thread);
  for (i32 row = mine.begin; row < mine.end; ++row) {
    f32* token = mtp_->joined.row(row);
    embed(step_->rows[row].token, token);
    kernels_.rms_norm(token, mtp_->token_norm.data(), config_.eps, hidden, token);
    kernels_.rms_norm(mtp_->states[row], mtp_->state_norm.data(), config_.eps, hidden,
                      token + hidden);
  }
  mtp_->joined.quantize(kernels_, mine.begin, mine.end);
  crew_.barrier();
  multiply_share(kernels_, mtp_->join, mtp_->joined.view(), count(), mtp_->residual.data(), hidden,
                 thread, crew_.size());
  crew_.barrier();
  const Share rows = residual_rows(thread);
  for (i32 row = rows.begin; row < rows.end; ++row) {
    std::memcpy(residual(row, thread), mtp_->residual.data() + static_cast<i64>(row) * hidden,
                sizeof(f32) * static_cast<size_t>(hidden));
  }
}

}  // namespace llm
