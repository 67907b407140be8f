//! Each eBPF program computes what the algorithm of the same name in `dumbbell-cc` does.
//!
//! A recorder drives the algorithm and stores every event and output. The program, built for this
//! machine, then reads the same events, and the outputs are compared. They differ by fixed point
//! and, for BBR, by what the kernel does not report. Each test states the tolerance.

mod bbr;
mod native;
mod recorder;
#[allow(dead_code, reason = "a path that dumbbell-cc's own tests use more of")]
#[path = "../../../cc/src/test_path.rs"]
mod test_path;
mod windowed;

use dumbbell_cc::{
    Ack, AnySlowStart, CaState, CongestionControl, CongestionEvent, ConnectionConfig, Path,
    RateSample, Reno, SendState, Sent, Signal, Windowed,
};
