"""The untrusted side of the evaluator: what runs inside the sandbox.

Nothing here ever sees an expected output. The files are loaded by `zygote.py` in an interpreter of
its own, without the rest of the package; so they import the standard library and each other alone.
The trusted side imports `protocol`, and names of some others. Read `protocol` first, then `server`:

- `server`: the fork server, a process a test; `watch` waits for it from outside;
- `isolation`: the layers around both, with `private_root`, `seccomp`, `kernel`, `limits`, `folders`
  and, where the kernel enforces less, `quota`;
- `runner`: a program in its own process; `functions` calls its function, with `nodes` for
  lists and trees; `batch` runs several tests in a process; `warmup` rehearses all of that.
"""
