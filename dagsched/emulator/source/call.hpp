// What every call of a face does first and last: take the lock, meet injected faults, let the device go on.
#ifndef DAGSCHED_EMULATOR_CALL_HPP
#define DAGSCHED_EMULATOR_CALL_HPP

#include "core.hpp"

namespace emu {

enum class Kind {
  plain,
  work,     // an op's own call, which faults that name an op are meant for
  release,  // succeeds even where the device is lost
  look,     // the same, and tasks and callbacks may make it, too
};

class Call {
 public:
  Call(const char* function, Kind kind, int forbidden) : guard_(world().lock) {
    ThreadState& state = here();
    const bool inside = state.executing != nullptr || state.in_callback;
    if (kind == Kind::look && (inside || world().lost != 0)) return;
    if (inside) {
      const char* who = state.in_callback ? " is called by a callback" : " is called by a task";
      code = fail(forbidden, function + std::string(who) + ": it may not allocate, free, launch or synchronise");
      complain(state.message);
      return;
    }
    if (!std::exchange(state.counted, true)) ++world().host_threads;
    if (kind != Kind::release) code = enter(function, kind == Kind::work);
  }
  ~Call() {
    if (here().executing == nullptr) advance();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  int code = 0;

 private:
  Guard guard_;
};

}  // namespace emu

#endif  // DAGSCHED_EMULATOR_CALL_HPP
