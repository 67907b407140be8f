//! The testbed: runs a scenario in real time with the kernel's TCP, or over its UDP with UDT, QUIC, media,
//! SABUL, RBUDP, Tsunami or at a constant rate.
//!
//! Senders and receivers are kernel sockets in separate network namespaces. Their packets leave
//! through TUN devices, cross the simulator's links, which follow the real clock, and return
//! through other TUN devices. `TCP_INFO` of the sockets fills the simulator's tables.
//!
//! - `emulator` moves packets between TUN devices and links; `frame` and `pool` hold the packets.
//!   `waiting` says how it waits.
//! - `host` creates namespaces and devices; `netlink` and `sys` wrap the system calls.
//! - `driver` runs the applications: `tcp_flow`, `transfers` (flows of many connections), `udp_flow` (whose
//!   ends are those of `udt_flow`, `bulk_flow` or `datagram_flow`) and `program` (an external command).
//!   `tcp_socket` opens the sockets of TCP, `token` says which of them an event is for, and
//!   `conversation` is an application that waits. `totals` sums up what each flow counted.
//! - `capture` keeps the packets of logged flows.
//! - `info` reads `TCP_INFO`; `bpf_state` (by `btf`) the variables of eBPF's BBRs; `health` and
//!   `stalls` measure whether the machine kept up.
//!
//! Namespaces, devices and programs are anonymous. They belong to a process namespace whose init is
//! the calling process, so the kernel removes all of them when that process ends or is killed.
#![cfg(target_os = "linux")]

mod algorithm;
mod bpf_state;
mod btf;
mod bulk_flow;
mod capture;
mod conversation;
mod cpu_latency;
mod datagram_flow;
mod driver;
mod emulator;
mod error;
mod frame;
mod health;
mod host;
mod info;
mod netlink;
mod pool;
mod program;
mod run;
mod settings;
mod small_pages;
mod socket_buffer;
mod stalls;
mod sys;
mod tcp_flow;
mod tcp_socket;
mod token;
mod totals;
mod transfers;
mod udp_flow;
mod udt_flow;
mod waiting;

pub use error::TestbedError;
pub use health::{Health, MAX_STEAL, StealMeter};
pub use host::{die_with_parent, isolate};
pub use run::{TestbedOutcome, run};
pub use stalls::Stall;
