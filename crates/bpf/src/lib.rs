//! Congestion control algorithms as eBPF programs for Linux.
//!
//! `src/bpf/*.bpf.c` are the programs, one per file. Each is a port of an algorithm of
//! `dumbbell-cc`. `make bpf` compiles them into the objects that the Python package `dumbbell.bpf`
//! ships and loads. They are under the GPL, version 2, as the kernel requires.
//!
//! `src/native.c` runs a program outside the kernel. The test `ports` feeds the same events to a
//! program and to the algorithm that it ports, and compares their windows.
