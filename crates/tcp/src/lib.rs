//! TCP and Multipath TCP endpoints without I/O. They follow Linux closely enough to be compared with
//! it packet by packet.

mod dialogue;
mod multipath;
mod pacing;
mod prr;
mod rack;
mod ranges;
mod receive_window;
mod receiver;
mod rtt;
mod sack_blocks;
mod scoreboard;
mod segment;
mod send_buffer;
mod sender;
mod sent_packet;
mod stack;
mod undo;

pub use dialogue::Dialogue;
pub use multipath::{
    MultipathConfig, MultipathReceiver, MultipathSender, MultipathStats, Scheduler,
};
pub use receiver::{Receiver, ReceiverStats};
pub use segment::{Flags, MAX_WINDOW, Segment};
pub use sender::{Sender, SenderConfig};
pub use stack::{Ecn, LossDetection, RtoRule, Stack};
