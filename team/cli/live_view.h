// What a person sees while a run goes on. On a terminal: the story scrolls, and below it a block of
// a few lines shows stage, acceptance, money and who does what, redrawn in place. In a pipe: the
// story, one plain line each. Thread-safe.
#pragma once

#include "team/report/story.h"
#include "team/stages/engine.h"

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace team {

class LiveView : public Watcher {
 public:
  struct Options {
    bool terminal = false;
    bool quiet = false;  // nothing but the end
    std::string words;   // "recorded" or the model's name
    i64 budget_nusd = 0;
  };
  explicit LiveView(Options options);
  ~LiveView() override;

  void activity(const std::string& who, const std::string& what) override;
  void on_event(const Event& event, const RunState& state);
  void finish();  // takes the block away

 private:
  struct Numbers {
    std::map<std::string, std::string> stages;    // id to state
    std::map<std::string, std::string> criteria;  // id to state
    std::map<std::string, int> tasks;             // state to count
    i64 spent_nusd = 0;
    Usage usage;
    i64 calls = 0;
  };
  void tick();
  void draw();
  void erase();
  std::vector<std::string> block() const;
  void say(const StoryLine& line);

  Options options_;
  std::mutex mutex_;
  std::thread ticker_;
  bool stopping_ = false;
  std::map<std::string, std::string> activities_;
  Numbers numbers_;
  i64 started_us_ = 0;
  int drawn_lines_ = 0;
  int frame_ = 0;
};

// A story line as text; with colour for a terminal.
std::string render(const StoryLine& line, bool colour, int width);

}  // namespace team
