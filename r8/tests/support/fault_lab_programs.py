"""Programs a fault lab runs as processes of their own."""

from __future__ import annotations

# Imported before the change of user, who may not be able to read the interpreter's own files.
AS_SOMEBODY = """
import os, sys
from probes.cli import main
uid = int(sys.argv[1])
os.setgroups([]); os.setgid(uid); os.setuid(uid)
sys.exit(main(sys.argv[2:]))
"""
# Says how it read: O_DIRECT where it is asked to and the file system takes it.
READER = """
import errno, mmap, os, sys
direct, buffer = os.O_DIRECT if sys.argv[1:] == ["direct"] else 0, mmap.mmap(-1, 1 << 20)
for line in sys.stdin:
    said = "buffered"
    for path in line.split():
        try:
            fd, said = os.open(path, os.O_RDONLY | direct), "direct" if direct else said
        except OSError as error:
            if error.errno != errno.EINVAL: raise
            fd, said = os.open(path, os.O_RDONLY), "EINVAL"
        while os.readv(fd, [buffer]): pass
        os.close(fd)
    print(said, flush=True)
"""
