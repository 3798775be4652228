#include "team/core/effects.h"

namespace team {

const char* name_of(EffectClass cls) {
  switch (cls) {
    case EffectClass::kPure:
      return "pure";
    case EffectClass::kWorkspace:
      return "workspace";
    case EffectClass::kPaid:
      return "paid";
    case EffectClass::kExternal:
      return "external";
  }
  return "?";
}

}  // namespace team
