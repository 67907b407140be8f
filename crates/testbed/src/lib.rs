//! The testbed: a scenario with the machine's own TCP, and with our UDT over its UDP.
//!
//! Senders and receivers are sockets of the kernel in network namespaces of their own. What they
//! send leaves by TUN devices, crosses the very links that the simulator simulates, driven by the
//! real clock, and comes back by other TUN devices. What they show of themselves (TCP_INFO) goes
//! into the simulator's tables.
//!
//! `frame` and `pool` know packets, `emulator` moves them, `host` makes namespaces, `flow` and
//! `driver` send and receive, `info` reads what sockets tell, `health` says whether the machine
//! kept up. `udt` is a flow over UDT. Nothing has a name outside: namespaces, devices and programs
//! live in a process namespace whose first process is ours, so all of it is gone when that is, even
//! if it is killed.
#![cfg(target_os = "linux")]

mod algorithm;
mod driver;
mod emulator;
mod error;
mod flow;
mod frame;
mod health;
mod host;
mod info;
mod netlink;
mod pool;
mod program;
mod run;
mod settings;
mod sys;
mod udt;
mod wakefulness;

pub use error::TestbedError;
pub use health::Health;
pub use host::{die_with_parent, isolate};
pub use run::{Outcome, run};
