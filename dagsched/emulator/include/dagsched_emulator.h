/* What a program may ask of the emulator beyond the runtime that it stands for: functions that run on its device, names
 * for what it does, seeds, faults and a trace. */
#ifndef DAGSCHED_EMULATOR_H
#define DAGSCHED_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DAGSCHED_READ = 0, DAGSCHED_WRITE = 1, DAGSCHED_UPDATE = 2, DAGSCHED_ACCUMULATE = 3 };

/* The calls that this thread makes from now on are an op's ("" and -1: nobody's); traces, faults and reports say so. */
void dagsched_emulator_note(const char* op, int64_t iteration);

/* Queues a function as a kernel. It is called on the stream's thread and returns 0 or the error that the device meets;
 * `release`, where given, is called once when the argument is not needed any more. */
int dagsched_emulator_launch(void* stream, const char* name, int (*run)(void* argument), void* argument,
                             void (*release)(void* argument));

/* In a kernel: where a device address can be touched. Other addresses are returned as they are. */
void* dagsched_emulator_device(const void* address);

/* In a kernel or a host function: what it touches, for the trace. */
void dagsched_emulator_access(const void* address, size_t bytes, int mode);

/* The same for what the issuing thread itself does with memory. */
void dagsched_emulator_host_access(const char* name, const void* address, size_t bytes, int mode);

/* In a kernel or a host function: a point at which other streams may make their steps. */
void dagsched_emulator_breathe(void);

/* CPU functions that stand for kernels of a binary, for operators and for models. `run` gets the launch's arguments, or
 * the addresses and sizes of inputs and outputs, and returns 0 or an error code. */
typedef int (*dagsched_kernel)(void* user, uint32_t blocks, const void* args, size_t size);
typedef int (*dagsched_operator)(void* user, size_t inputs, const void* const* input, const size_t* input_sizes,
                                 size_t outputs, void* const* output, const size_t* output_sizes);
void dagsched_emulator_register_kernel(const char* name, dagsched_kernel run, void* user);
void dagsched_emulator_register_operator(const char* op_type, dagsched_operator run, void* user);
void dagsched_emulator_register_model(uint32_t model, dagsched_operator run, void* user);

/* The interleaving: equal seeds give equal ones, as far as the program's own threads allow. */
void dagsched_emulator_seed(uint64_t seed);

/* `TARGET[@I]:CODE[:call|task|lost]` or `FUNCTION#N:CODE`; "" takes all faults back, and what they broke is whole again.
 * Returns 0, or -1 where it cannot be read. */
int dagsched_emulator_inject(const char* fault);

/* Of every `of` waits in a row, the one of this number is not made; -1: all are. */
void dagsched_emulator_leave_out(int wait, int of);

/* Begins a trace, to be written to a file by dagsched_emulator_write_trace and when the runtime is finalised. */
void dagsched_emulator_trace(const char* path);
void dagsched_emulator_write_trace(void);

/* Streams, events and blocks that have not been released; misuse that was reported. */
int dagsched_emulator_alive(void);
int dagsched_emulator_complaints(void);

/* Copies a device block's contents to the host, by the name and number under which it was allocated: the n-th block of
 * `buffer NAME`. Returns its size, or -1. */
int64_t dagsched_emulator_contents(const char* name, int number, void* to, size_t room);

/* The issuing thread writes to, or reads from, any memory, at once and as a step of the trace. */
void dagsched_emulator_set(void* address, const void* from, size_t bytes, const char* name);
void dagsched_emulator_get(void* to, const void* address, size_t bytes, const char* name);

/* Adds a line to the file that DAGSCHED_EMU_LOG names. Any thread may; ThreadSanitizer sees no order in it. */
void dagsched_emulator_log(const char* line);

/* For one process that runs many programs: numbers, names, faults and the trace begin anew, and options are read from
 * the environment again. */
void dagsched_emulator_start_over(void);

#ifdef __cplusplus
}

#include <utility>

namespace dagsched_emulator {

/// Queues anything that can be called and returns an int as a kernel.
template <class Kernel>
int launch(void* stream, const char* name, Kernel kernel) {
  return dagsched_emulator_launch(
      stream, name, [](void* argument) { return static_cast<int>((*static_cast<Kernel*>(argument))()); },
      new Kernel(std::move(kernel)), [](void* argument) { delete static_cast<Kernel*>(argument); });
}

/// A device address as its kernels may use it.
template <class T>
T* device(T* address) {
  return static_cast<T*>(dagsched_emulator_device(address));
}

}  // namespace dagsched_emulator
#endif

#endif /* DAGSCHED_EMULATOR_H */
