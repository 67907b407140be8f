//! SABUL (Simple Available Bandwidth Utilization Library) by Yunhong Gu and Robert Grossman, the
//! predecessor of UDT: data over UDP, feedback over TCP, and a rate that is changed every SYN interval of
//! 10 ms, whatever the round-trip time.
//!
//! This is the version of March 2003, the last one with its source: `sender.cpp` (16 March 2003),
//! `recver.cpp`, `recver.h`, `sabul.cpp`, `sabul.h` (7 January 2003), `channel.cpp` (16 March 2003). Its
//! rate control is additive increase, multiplicative decrease. That of earlier versions (Gu, Hong,
//! Mazzucco, Grossman, "Rate Based Congestion Control over High Bandwidth/Delay Links", 2002) is in the
//! source as a comment: multiplicative in both directions, by the distance of the loss rate from 0.1 %.
//!
//! Differences: messages of the control stream are processed when they arrive, not one per data packet
//! sent; the application reads data as soon as it is in order.

pub mod codec;
mod receiver;
mod sender;

pub use receiver::Receiver;
pub use sender::Sender;

use dumbbell_units::Span;

/// Interval of the rate control, microseconds (`m_iSYNInterval`).
pub(crate) const SYN_INTERVAL_US: f64 = 10_000.0;
/// The same as a span.
pub(crate) const SYN_INTERVAL: Span = Span::from_micros(10_000);
/// Sequence numbers (`m_lMaxSeqNo`): they wrap here.
pub(crate) const MAX_SEQ_NO: u64 = 100_000_000;
/// Distance beyond which a sequence number has wrapped (`m_lSeqNoTH`).
pub(crate) const SEQ_NO_TH: u64 = 50_000_000;

/// The packet number near `base` with this sequence number; `None` if there is none from
/// `base - SEQ_NO_TH` to `base + SEQ_NO_TH`.
pub(crate) fn unwrap_seq(seq: u32, base: u64) -> Option<u64> {
    let seq = u64::from(seq);
    if seq >= MAX_SEQ_NO {
        return None;
    }
    let ahead = (seq + MAX_SEQ_NO - base % MAX_SEQ_NO) % MAX_SEQ_NO;
    match ahead < SEQ_NO_TH {
        true => Some(base + ahead),
        false => (base + ahead).checked_sub(MAX_SEQ_NO),
    }
}

/// The sequence number of a packet.
pub(crate) fn wrap_seq(packet: u64) -> u32 {
    (packet % MAX_SEQ_NO) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_wrap_at_a_hundred_million() {
        assert_eq!(unwrap_seq(5, 99_999_990), Some(100_000_005));
        assert_eq!(unwrap_seq(99_999_999, 100_000_005), Some(99_999_999));
        assert_eq!(unwrap_seq(99_999_999, 3), None, "before the first packet");
        assert_eq!(unwrap_seq(100_000_000, 0), None);
        assert_eq!(wrap_seq(300_000_007), 7);
    }
}
