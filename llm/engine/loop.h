// The thread that steps an engine while there is work and sleeps while there is none.
#pragma once

#include "llm/engine/engine.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace llm {

// Thread-safe.
class EngineLoop {
 public:
  // `engine` outlives the loop and is stepped by nobody else.
  explicit EngineLoop(Engine* engine);
  ~EngineLoop();  // ends after the current step; requests not finished are dropped

  base::Result<RequestId> submit(GenerateRequest request);
  void cancel(RequestId id);
  Engine& engine() { return engine_; }

 private:
  void run();
  void wake();
  Engine& engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace llm
