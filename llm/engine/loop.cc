#include "llm/engine/loop.h"

#include <pthread.h>

namespace llm {

EngineLoop::EngineLoop(Engine* engine) : engine_(*engine), thread_([this] { run(); }) {
  ::pthread_setname_np(thread_.native_handle(), "llm-engine");
}

EngineLoop::~EngineLoop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EngineLoop::run() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    if (engine_.step()) continue;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || engine_.has_inbox(); });
  }
}

void EngineLoop::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

base::Result<RequestId> EngineLoop::submit(GenerateRequest request) {
  const RequestId id = TRY(engine_.submit(std::move(request)));
  wake();
  return id;
}

void EngineLoop::cancel(RequestId id) {
  engine_.cancel(id);
  wake();
}

}  // namespace llm
