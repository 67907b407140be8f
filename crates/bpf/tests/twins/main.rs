//! An eBPF program and the algorithm of the same name in `dumbbell-cc` are one algorithm.
//!
//! The algorithm is driven, and every event and answer written down. Then the program, built for
//! this machine, is given the same events, and its answers are compared. What differs is fixed
//! point, and for some of BBR what the kernel does not tell; each test states how much.

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
