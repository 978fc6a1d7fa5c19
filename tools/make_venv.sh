#!/bin/sh
# Usage: make_venv.sh DIRECTORY REQUIREMENT
#
# Makes a virtual environment where there is none that works, and installs REQUIREMENT (`.` or `.[test,dev]`) into it
# as an editable package. Takes $PYTHON where that is set, else the first interpreter found that is Python 3.11 or
# newer and can make virtual environments: a `python3.12` that is only a shim, or lacks ensurepip, is passed over.
set -eu

directory=$1
requirement=$2
fits='import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'

if ! "$directory/bin/python" -c "$fits" 2>/dev/null; then
    chosen=
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if "$candidate" -c "$fits" >/dev/null 2>&1; then
            chosen=$candidate
            break
        fi
    done
    if [ -z "$chosen" ]; then
        echo "no Python 3.11 or newer with the venv module was found (tried: ${PYTHON:-python3, python3.11 to 3.14, python})" >&2
        echo "install one (Debian: apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3.11" >&2
        exit 1
    fi
    "$chosen" -m venv --clear "$directory"
fi
echo "installing $requirement into $directory" >&2
"$directory/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$requirement"
