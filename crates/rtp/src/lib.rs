//! Media over RTP: a video source, its congestion control, and the feedback of RFC 8888.
//!
//! A flow is a sender and a receiver of UDP datagrams. The sender encodes frames at the rate that
//! its [`MediaControl`] gives, splits them into RTP packets ([`RtpPacket`], RFC 3550), paces these,
//! and reads the receiver's reports ([`Report`], RFC 8888). The controls are [`Scream`], which is
//! SCReAMv2 (draft-johansson-ccwg-rfc8298bis-screamv2), and [`Gcc`], Google Congestion Control
//! (draft-ietf-rmcat-gcc-02). Nothing is retransmitted: a frame that lacks a packet is lost.
//!
//! [`endpoints`] makes the ends of flows of a [`Scenario`](dumbbell_sim::Scenario) with `external:
//! {"transport": "rtp", "stack": ""}` and `cc` one of [`ALGORITHMS`].

mod control;
mod factory;
mod feedback;
mod frames;
mod gcc;
mod history;
mod options;
mod packet;
mod receiver;
mod scream;
mod sender;
mod source;

pub use control::{Feedback, MediaControl, PacketResult, RateLimits};
pub use factory::{ALGORITHMS, endpoints};
pub use feedback::{Arrival, Report, ReportError};
pub use gcc::Gcc;
pub use options::{MediaEcn, RtpOptions};
pub use packet::{RTP_HEADER, RtpPacket};
pub use scream::Scream;
