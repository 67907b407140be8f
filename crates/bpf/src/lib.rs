//! Congestion control algorithms as eBPF programs for Linux.
//!
//! `src/bpf/*.bpf.c` are the programs, one a file, each the twin of an algorithm of `dumbbell-cc`.
//! `make bpf` compiles them into the objects that the Python package `dumbbell.bpf` ships and
//! loads. They are under the GPL, version 2, for the kernel takes no others.
//!
//! `src/native.c` builds a program for this machine, with just so much of a kernel around it as to
//! drive it, for the test `twins`: it feeds a program and its twin the same events.
