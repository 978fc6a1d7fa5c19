"""The emulator: a device runtime whose streams are threads, in C++, built on demand with the user's compiler."""
