//! The sender's record of a packet between its first transmission and its acknowledgement.
//!
//! Thousands of flows have hundreds of thousands of records, so a record takes half a cache line.
//! Earlier times are stored as differences to the send time. Counters are stored without their upper
//! bits, which are restored from the connection's counters.

use dumbbell_cc::{PacketInfo, Path, SendState};
use dumbbell_units::{Span, Time};

/// A packet that was sent and not cumulatively acknowledged.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(crate) struct SentPacket {
    sent_at: Time,
    /// `sent_at - PacketInfo::first_sent_at`, ns (40 bits); packets in flight (24 bits).
    first_sent_in_flight: u64,
    /// `sent_at - PacketInfo::delivered_at`, ns (40 bits); packets lost by then (24 bits).
    delivered_at_lost: u64,
    /// Packets delivered by then (32 bits), CE-marked by then (24 bits), flags (8 bits).
    delivered_marked_flags: u64,
}

const _: () = assert!(size_of::<SentPacket>() == 32);

/// State of a packet, as a set of bits (Linux `TCPCB_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketFlags(u8);

impl PacketFlags {
    pub(crate) const SACKED: PacketFlags = PacketFlags(1);
    pub(crate) const LOST: PacketFlags = PacketFlags(1 << 1);
    /// A retransmission is in flight (`TCPCB_SACKED_RETRANS`).
    pub(crate) const RETRANS_OUT: PacketFlags = PacketFlags(1 << 2);
    pub(crate) const EVER_RETRANSMITTED: PacketFlags = PacketFlags(1 << 3);
    /// The flow was application-limited when the packet was sent.
    const APP_LIMITED: PacketFlags = PacketFlags(1 << 4);
    /// RACK found the packet lost. It does not consider it again before it is retransmitted, even if the
    /// loss is undone: in Linux the packet has left `tsorted_sent_queue`.
    pub(crate) const RACK_LOST: PacketFlags = PacketFlags(1 << 5);

    #[inline]
    pub(crate) const fn union(self, other: PacketFlags) -> PacketFlags {
        PacketFlags(self.0 | other.0)
    }
}

/// Bits of the counter in a word whose upper 40 bits are a time difference. The difference saturates
/// at 18 minutes.
const COUNT_BITS: u32 = 24;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const FLAG_BITS: u32 = 8;

#[inline]
fn pack(before: Span, count: u32) -> u64 {
    let before = before.as_nanos().min(u64::MAX >> COUNT_BITS);
    before << COUNT_BITS | u64::from(count) & COUNT
}

/// The time of a word that was packed at time `at`.
#[inline]
fn unpack_time(at: Time, word: u64) -> Time {
    Time::from_nanos(at.as_nanos() - (word >> COUNT_BITS))
}

/// Restores a counter from its lower bits and its current value, from which it differs by less than
/// 2^23.
#[inline]
fn widen_counter(kept: u32, now: u32) -> u32 {
    let above = u32::BITS - COUNT_BITS;
    now.wrapping_add_signed((kept.wrapping_sub(now) << above).cast_signed() >> above)
}

impl SentPacket {
    /// The record of a packet sent for the first time.
    #[inline]
    pub(crate) fn new(info: &PacketInfo) -> SentPacket {
        let &PacketInfo { send_state, first_sent_at, delivered_at } = info;
        let marked = u64::from(send_state.marked) & COUNT;
        let limited = if send_state.app_limited { PacketFlags::APP_LIMITED.0 } else { 0 };
        let delivered = send_state.delivered << (COUNT_BITS + FLAG_BITS);
        SentPacket {
            sent_at: send_state.sent_at,
            first_sent_in_flight: pack(
                send_state.sent_at.since(first_sent_at),
                send_state.in_flight,
            ),
            delivered_at_lost: pack(send_state.sent_at.since(delivered_at), send_state.lost),
            delivered_marked_flags: delivered | marked << FLAG_BITS | u64::from(limited),
        }
    }

    /// The packet is retransmitted.
    #[inline]
    pub(crate) fn retransmit(&mut self, info: &PacketInfo) {
        let before = u64::from(!PacketFlags::APP_LIMITED.union(PacketFlags::RACK_LOST).0)
            & self.delivered_marked_flags
            & ((1 << FLAG_BITS) - 1);
        *self = SentPacket::new(info);
        self.delivered_marked_flags |= before;
        self.set(PacketFlags::EVER_RETRANSMITTED);
    }

    /// When the packet was last sent.
    #[inline]
    pub(crate) fn sent_at(&self) -> Time {
        self.sent_at
    }

    /// The connection's state when the packet was last sent, restored with its current state.
    #[inline]
    pub(crate) fn info(&self, path: &Path) -> PacketInfo {
        let delivered = (self.delivered_marked_flags >> (COUNT_BITS + FLAG_BITS)) as u32;
        let since = (path.delivered as u32).wrapping_sub(delivered);
        PacketInfo {
            send_state: SendState {
                sent_at: self.sent_at,
                delivered: path.delivered - u64::from(since),
                lost: widen_counter(self.delivered_at_lost as u32, path.lost as u32),
                marked: widen_counter(
                    (self.delivered_marked_flags >> FLAG_BITS) as u32,
                    path.marked as u32,
                ),
                in_flight: (self.first_sent_in_flight & COUNT) as u32,
                app_limited: self.has(PacketFlags::APP_LIMITED),
            },
            first_sent_at: unpack_time(self.sent_at, self.first_sent_in_flight),
            delivered_at: unpack_time(self.sent_at, self.delivered_at_lost),
        }
    }

    /// Whether any of `flags` is set.
    #[inline]
    pub(crate) fn has(&self, flags: PacketFlags) -> bool {
        self.delivered_marked_flags & u64::from(flags.0) != 0
    }

    /// Whether the packet is lost and not retransmitted since.
    #[inline]
    pub(crate) fn needs_retransmit(&self) -> bool {
        self.has(PacketFlags::LOST) && !self.has(PacketFlags::RETRANS_OUT)
    }

    #[inline]
    pub(crate) fn ever_retransmitted(&self) -> bool {
        self.has(PacketFlags::EVER_RETRANSMITTED)
    }

    #[inline]
    pub(crate) fn set(&mut self, flags: PacketFlags) {
        self.delivered_marked_flags |= u64::from(flags.0);
    }

    #[inline]
    pub(crate) fn clear(&mut self, flags: PacketFlags) {
        self.delivered_marked_flags &= !u64::from(flags.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_retransmission_keeps_the_flags_but_not_the_send_state() {
        let send_state = SendState { app_limited: true, ..SendState::default() };
        let mut packet = SentPacket::new(&PacketInfo { send_state, ..PacketInfo::default() });
        packet.set(PacketFlags::LOST);
        let send_state = SendState { sent_at: Time::from_nanos(7), ..SendState::default() };
        packet.retransmit(&PacketInfo { send_state, ..PacketInfo::default() });
        assert!(packet.has(PacketFlags::LOST) && packet.ever_retransmitted());
        assert!(!packet.has(PacketFlags::SACKED) && !packet.has(PacketFlags::APP_LIMITED));
        assert_eq!(packet.sent_at(), Time::from_nanos(7));
    }

    proptest! {
        #[test]
        fn packet_info_is_restored_exactly(
            sent_at in 1u64 << 40..1 << 62,
            (first, last) in (0u64..1 << 40, 0u64..1 << 40),
            (delivered, lost, marked) in (any::<u32>(), any::<u32>(), any::<u32>()),
            delivered_above in 0u64..4,
            (more_delivered, more_lost, more_marked) in (any::<u32>(), -8_000_000i64..8_000_000, 0u64..8_000_000),
            in_flight in 0u32..1 << 24,
            app_limited: bool,
        ) {
            let sent_at = Time::from_nanos(sent_at);
            let delivered = delivered_above << 32 | u64::from(delivered);
            let send_state = SendState { sent_at, delivered, lost, marked, in_flight, app_limited };
            let ago = |ns| Time::from_nanos(sent_at.as_nanos() - ns);
            let sent = PacketInfo { send_state, first_sent_at: ago(first), delivered_at: ago(last) };
            let mut path = Path::new(1448, sent_at);
            path.delivered = delivered + u64::from(more_delivered);
            path.lost = ((1 << 32) + i64::from(lost) + more_lost) as u64;
            path.marked = u64::from(marked) + more_marked;
            let recalled = SentPacket::new(&sent).info(&path);
            prop_assert_eq!(format!("{recalled:?}"), format!("{sent:?}"));
        }
    }
}
