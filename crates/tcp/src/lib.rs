//! Sans-IO TCP endpoints, close enough to Linux to be compared with it packet for packet.

mod segment;
mod stack;

pub use segment::{Flags, Segment};
pub use stack::{Ecn, LossDetection, Stack};
