// What tests may ask of the fake runtime beyond AscendCL itself.
#ifndef FAKE_ACL_EXTRA_H
#define FAKE_ACL_EXTRA_H

#include <functional>

#include "acl/acl.h"

namespace fake_acl {

// Enqueues a kernel.
aclError launch(aclrtStream stream, std::function<void()> kernel);

// The number-th call of a function from now on (1: the next) returns the code and does nothing. The function `task`
// stands for the number-th task that any stream executes: its error shows at the next synchronisation of that stream.
void fail(const char* function, int number, aclError code);

// Streams, events and allocations that are alive.
int alive();

// Tasks take pseudo-random times, and those of stream number seed - 1 far longer than all others, so that what is not
// ordered shows; 0: no delays.
void perturb(unsigned seed);

// Of every `of` waits in a row, the one of this number is not made; -1: all are.
void leave_out(int wait, int of);

}  // namespace fake_acl

#endif  // FAKE_ACL_EXTRA_H
