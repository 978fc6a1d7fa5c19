/* The emulator declares everything in one header. */
#include "acl/acl.h"
