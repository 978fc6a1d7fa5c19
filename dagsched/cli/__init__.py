"""The command line: ``main`` picks a command's module, which reads files, calls the library and prints."""
