#include "team/ops/incidents.h"

#include "team/ops/crash_watch.h"

#include <gtest/gtest.h>

namespace team {
namespace {

TEST(IncidentSignature, IsTheSameWhateverTheNumbersAre) {
  EXPECT_EQ(incident_signature("input", {}, "died at 0x7f3a12: size 512 of 99"),
            incident_signature("input", {}, "died at 0x55ee01: size 7 of 1"));
  EXPECT_NE(incident_signature("input", {}, "died"), incident_signature("kill", {}, "died"));
}

TEST(IncidentSignature, OfACrashIsWhereItHappened) {
  const CallStack parser = {"kv::Parser::next", "kv::Server::read", "kv::Server::run", "main"};
  CallStack elsewhere = parser;
  elsewhere[0] = "kv::Store::run";
  EXPECT_EQ(incident_signature("input", parser, "one text"),
            incident_signature("input", parser, "another"));
  EXPECT_NE(incident_signature("input", parser, "x"), incident_signature("input", elsewhere, "x"));
}

TEST(OwnFrames, LeaveOutWhatTheLibrariesPutOnTop) {
  EXPECT_EQ(own_frames({"pthread_kill", "raise", "abort", "[libstdc++.so.6]", "std::terminate",
                        "__cxa_throw", "std::__throw_length_error", "std::vector::reserve",
                        "kv::Parser::next", "main", "[libc.so.6]", "_start"}),
            (CallStack{"kv::Parser::next", "main"}));
  EXPECT_EQ(own_frames({"kv::crash", "main"}), (CallStack{"kv::crash", "main"}));
}

TEST(IncidentBook, NotesASignatureOnceAndOpensAResolvedOneAgain) {
  IncidentBook book;
  Incident* first = book.note("input/crash in f", "it died");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->id, "I1");
  EXPECT_EQ(book.note("input/crash in f", "it died"), nullptr);
  EXPECT_EQ(book.note("kill/gone", "it is gone")->id, "I2");
  book.resolve("I1");
  Incident* again = book.note("input/crash in f", "it died again");
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->id, "I1");
  EXPECT_EQ(again->seen, 3);
  EXPECT_EQ(book.all().size(), 2u);
}

}  // namespace
}  // namespace team
