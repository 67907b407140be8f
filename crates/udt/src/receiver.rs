//! The receiver: loss detection, acknowledgements (ACK) and loss reports (NAK).
//!
//! - An ACK is sent every SYN while data is unacknowledged, after `ack_interval` packets, and
//!   immediately after a packet that is not full.
//! - A light ACK is sent every 64 packets in between.
//! - One ACK per SYN is a full one, with arrival rate and capacity.
//! - A NAK is sent as soon as a packet after a gap arrives, and repeated until the gap is filled. On a path
//!   that reorders packets it is delayed by as much as packets were late in the last second, which
//!   their timestamps tell: UDT4 reports them as lost, and its sender slows down.

use crate::ack_window::AckWindow;
use crate::config::{SYN, TransportOptions};
use crate::connection::Arrival;
use crate::estimators::{ArrivalRateEstimator, CapacityEstimator};
use crate::loss_list::ReceiveLossList;
use crate::packet::{Ack, AckKind, DataHeader, DropRequest, Nak, Packet};
use crate::rtt::RttEstimator;
#[cfg(feature = "io")]
use crate::seq::Seq;
use crate::seq::SequenceSpace;
use crate::sink::Sink;
use dumbbell_units::{Span, Time};

/// Maximum delay of a NAK for reordering.
const MAX_REORDER_DELAY: Span = SYN;
/// Time after which reordering is forgotten.
const REORDER_MEMORY: Span = Span::from_secs(1);
/// Packets per light ACK.
const LIGHT_INTERVAL: u32 = 64;
/// Minimum advertised window, packets.
const MIN_WINDOW: u32 = 2;

/// The receiver.
#[derive(Debug)]
pub(crate) struct Receiver {
    sequence_space: SequenceSpace,
    max_payload: u16,
    /// Upper limit of the advertised window, packets.
    window: u32,
    pub(crate) ack_interval: u32,
    light_acks: bool,
    nak_repeat: bool,
    skip_gaps: bool,
    pub(crate) sink: Sink,
    /// Largest received packet (LRSN) + 1.
    next: u64,
    losses: ReceiveLossList,
    reordering: Reordering,
    /// The next NAK continues the previous one.
    nak_continues: bool,
    /// All packets before this one are acknowledged and readable (UDT4's `m_iRcvLastAck`).
    acked: u64,
    /// Acknowledged up to here by an ACK that an ACK2 confirmed (`m_iRcvLastAckAck`).
    last_ack2: u64,
    acks: AckWindow,
    /// Time of the last full ACK.
    last_full_ack_at: Option<Time>,
    /// Time of the last short or full ACK.
    last_ack_at: Time,
    /// Earliest time of the next short or full ACK.
    ack_due: Time,
    /// Packets since the last short or full ACK.
    packets_since_ack: u32,
    /// Light ACKs since then.
    light_acks_sent: u32,
    /// Window in the last short or full ACK, packets.
    advertised_window: u32,
    /// Reading has enlarged the window enough for a window update.
    window_reopened: bool,
    arrival_rate: ArrivalRateEstimator,
    capacity: CapacityEstimator,
    stats: ReceiverStats,
}

/// How late packets are that others have overtaken. A retransmission has a new timestamp, so it is not
/// late.
#[derive(Debug, Default)]
struct Reordering {
    /// The latest timestamp, us.
    newest: Option<u32>,
    /// The maximum lateness since it was forgotten last, and the time of its last observation.
    lateness: Span,
    seen_at: Time,
}

impl Reordering {
    /// Takes the timestamp of a data packet that arrives.
    #[inline]
    fn on_packet(&mut self, now: Time, timestamp: u32) {
        let late = self.newest.map_or(0, |newest| newest.wrapping_sub(timestamp) as i32);
        if late <= 0 {
            self.newest = Some(timestamp);
            return;
        }
        let late = Span::from_micros(late as u64).min(MAX_REORDER_DELAY);
        self.lateness = self.delay(now).max(late);
        self.seen_at = now;
    }

    /// How long to wait for packets that others may have overtaken.
    #[inline]
    fn delay(&self, now: Time) -> Span {
        if now.since(self.seen_at) < REORDER_MEMORY { self.lateness } else { Span::ZERO }
    }
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Received data packets.
    pub packets: u64,
    /// Received data packets that were duplicates, too long, or beyond the receive buffer.
    pub discarded: u64,
    /// Packets found missing.
    pub missing: u64,
    /// Payload received in order, bytes.
    pub bytes: u64,
}

impl Receiver {
    /// A receiver that expects packet 0.
    pub(crate) fn new(
        now: Time,
        sequence_space: SequenceSpace,
        max_payload: u16,
        options: &TransportOptions,
        sink: Sink,
    ) -> Receiver {
        Receiver {
            sequence_space,
            max_payload,
            window: options.window,
            ack_interval: options.ack_interval,
            light_acks: options.light_acks,
            nak_repeat: options.nak_repeat,
            skip_gaps: options.skip_gaps && matches!(sink, Sink::Count(_)),
            sink,
            next: 0,
            losses: ReceiveLossList::default(),
            reordering: Reordering::default(),
            nak_continues: false,
            acked: 0,
            last_ack2: 0,
            acks: AckWindow::default(),
            last_full_ack_at: None,
            last_ack_at: now,
            ack_due: now + SYN,
            packets_since_ack: 0,
            light_acks_sent: 0,
            advertised_window: options.flight_window(),
            window_reopened: false,
            arrival_rate: ArrivalRateEstimator::new(),
            capacity: CapacityEstimator::new(),
            stats: ReceiverStats::default(),
        }
    }

    pub(crate) fn stats(&self) -> ReceiverStats {
        // If gaps are skipped, all accepted packets count as in order.
        let in_order = match self.skip_gaps {
            true => self.stats.packets - self.stats.discarded,
            false => self.first_missing(),
        };
        ReceiverStats { bytes: self.sink.in_order_bytes(in_order, self.max_payload), ..self.stats }
    }

    /// Index of the packet with this sequence number.
    #[cfg(feature = "io")]
    pub(crate) fn index_of(&self, seq: Seq) -> Option<u64> {
        self.sequence_space.index_near(seq, self.acked)
    }

    /// The peer's initial sequence number.
    #[cfg(feature = "io")]
    pub(crate) fn isn(&self) -> Seq {
        self.sequence_space.seq(0)
    }

    /// Discards a data packet that has arrived before; `false` if it has not.
    #[inline]
    pub(crate) fn discard_duplicate(&mut self, data: &DataHeader) -> bool {
        let Some(packet) = self.sequence_space.index_near(data.seq, self.acked) else {
            return false;
        };
        if packet >= self.next || packet >= self.acked && self.losses.contains(packet) {
            return false;
        }
        self.stats.packets += 1;
        self.stats.discarded += 1;
        true
    }

    /// All packets before this one have arrived or were dropped.
    #[inline]
    fn first_missing(&self) -> u64 {
        match self.losses.first() {
            Some(missing) if !self.skip_gaps => missing,
            _ => self.next,
        }
    }

    /// Handles a data packet.
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        now: Time,
        arrival: Arrival,
        data: &DataHeader,
        payload: &[u8],
    ) {
        self.stats.packets += 1;
        // The window limits packets, so that longer ones would exceed the buffer.
        if data.length > self.max_payload {
            self.stats.discarded += 1;
            return;
        }
        self.packets_since_ack += 1;
        self.arrival_rate.on_arrival(arrival.at);
        self.reordering.on_packet(now, data.timestamp);
        let Some(packet) = self.sequence_space.index_near(data.seq, self.acked) else {
            self.stats.discarded += 1;
            return;
        };
        self.measure_pair(arrival, packet, data);
        let room = u64::from(self.sink.free_packets(self.acked));
        if packet < self.acked || packet - self.acked >= room {
            self.stats.discarded += 1;
            return;
        }
        if packet >= self.next {
            if packet > self.next {
                self.stats.missing += packet - self.next;
                match self.reordering.delay(now) {
                    Span::ZERO => self.losses.push(self.next..packet),
                    _ if self.skip_gaps => self.losses.push(self.next..packet),
                    delay => self.losses.push_delayed(self.next..packet, now + delay),
                }
            }
            self.next = packet + 1;
        } else if !self.losses.remove(packet) {
            self.stats.discarded += 1;
            return;
        }
        self.sink.insert(packet, self.acked, data, payload, self.max_payload);
        if data.length != self.max_payload {
            self.ack_due = now;
        }
    }

    /// Passes the packet to the capacity estimator if it belongs to a pair. Retransmissions and
    /// packets after a gap do not.
    #[inline]
    fn measure_pair(&mut self, arrival: Arrival, packet: u64, data: &DataHeader) {
        // Packets of a GRO batch count as 1 us apart, the resolution of UDT4's clock.
        let now = arrival.at + Span::from_micros(u64::from(arrival.gro_index));
        if packet != self.next {
            self.capacity.invalidate_pair();
        } else if data.seq.is_pair_first() {
            self.capacity.on_pair_first(now);
        } else if data.seq.is_pair_second() {
            self.capacity.on_pair_second(now);
        }
    }

    /// Handles an ACK2.
    pub(crate) fn on_ack2(&mut self, now: Time, number: u32, rtt: &mut RttEstimator) {
        if let Some((next, sent_at)) = self.acks.acknowledge(number) {
            rtt.update(now.since(sent_at));
            self.last_ack2 = self.last_ack2.max(next);
        }
    }

    /// Handles a message drop request. Invalid ranges and those beyond the buffer are ignored.
    pub(crate) fn on_drop_request(&mut self, now: Time, drop: &DropRequest) {
        let numbers = self.sequence_space.index_near(drop.first, self.acked);
        let Some((first, last)) =
            numbers.zip(self.sequence_space.index_near(drop.last, self.acked))
        else {
            return;
        };
        let room = u64::from(self.sink.free_packets(self.acked));
        if first > last || last < self.acked || last - self.acked >= room {
            return;
        }
        self.sink.drop_message(drop.message, first.max(self.acked)..last + 1, self.acked);
        self.losses.remove_range(first..last + 1);
        if first <= self.next && last >= self.next {
            self.next = last + 1;
        }
        self.ack_due = now;
    }

    /// Window to advertise, packets. UDT4 applies UDT_FC in the handshake only; its ACKs advertise the
    /// buffer alone.
    #[inline]
    fn flight_window(&self) -> u32 {
        self.sink.free_packets(self.acked).min(self.window)
    }

    /// Time of the next poll.
    #[inline]
    pub(crate) fn next_timeout(&self, rtt: &RttEstimator) -> Time {
        let report = match self.losses.has_unreported() {
            true => Time::ZERO,
            false => self.losses.repeat_at(),
        };
        report.min(self.next_ack(rtt))
    }

    /// The application has read data: schedules a window update if the window has grown enough. UDT4
    /// sends none.
    pub(crate) fn on_read(&mut self) {
        let room = self.flight_window();
        self.window_reopened |= u64::from(room) >= 2 * u64::from(self.advertised_window) + 64;
    }

    /// Time of the next ACK if no further packet arrives.
    #[inline]
    fn next_ack(&self, rtt: &RttEstimator) -> Time {
        if self.window_reopened {
            return Time::ZERO;
        }
        let next = self.first_missing();
        if next == self.last_ack2 {
            return Time::MAX;
        }
        match next == self.acked {
            // Already acknowledged: repeated if the ACK2 is overdue.
            true => self.ack_due.max(self.last_ack_at + rtt.rto()),
            false => self.ack_due,
        }
    }

    /// The next packet to send now.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time, rtt: &RttEstimator) -> Option<Packet> {
        if self.has_nak(now)
            && let Some(nak) = self.make_nak(now, rtt)
        {
            return Some(Packet::Nak(nak));
        }
        let by_count = self.ack_interval > 0 && self.packets_since_ack >= self.ack_interval;
        if now >= self.ack_due || by_count || self.window_reopened {
            return self.make_ack(now, rtt);
        }
        if self.light_acks && self.packets_since_ack >= LIGHT_INTERVAL * (self.light_acks_sent + 1)
        {
            self.light_acks_sent += 1;
            let next = self.first_missing();
            return (next != self.last_ack2).then(|| self.ack(AckKind::Light, 0, rtt));
        }
        None
    }

    /// Whether a NAK is due.
    #[inline]
    fn has_nak(&self, now: Time) -> bool {
        self.losses.has_unreported() || now >= self.losses.repeat_at()
    }

    /// The next NAK, as long as fits; `None` if the losses to report again are repaired.
    fn make_nak(&mut self, now: Time, rtt: &RttEstimator) -> Option<Nak> {
        let mut nak = Nak::default();
        nak.continued = self.nak_continues;
        // RTT + 4 RTTVar plus the time to retransmit all losses at the arrival rate, as in UDT4's
        // disabled code, but per loss and without its minimum of 300 ms. A slower sender ignores
        // reports of packets that are under way. The draft's growing intervals would let the
        // sender's EXP timer expire first, which retransmits everything.
        let repairs = match self.arrival_rate.rate() {
            0 => Span::ZERO,
            rate => Span::from_secs(self.losses.len()) / u64::from(rate),
        };
        let interval = self.nak_repeat.then(|| rtt.rto() + repairs);
        let sequence_space = self.sequence_space;
        self.losses.report(now, interval, |first, last| {
            nak.push(sequence_space.seq(first), sequence_space.seq(last))
        });
        self.nak_continues = self.has_nak(now);
        if self.skip_gaps && !self.nak_continues {
            self.losses.remove_range(0..self.next);
        }
        (!nak.words().is_empty()).then_some(nak)
    }

    /// Makes all data before the first gap readable.
    pub(crate) fn release(&mut self) {
        self.acked = self.first_missing();
        self.sink.release(self.acked);
    }

    /// The short or full ACK that is due, unless it would repeat the previous one.
    fn make_ack(&mut self, now: Time, rtt: &RttEstimator) -> Option<Packet> {
        let next = self.first_missing();
        self.packets_since_ack = 0;
        self.light_acks_sent = 0;
        let unchanged = next == self.acked;
        let known = next == self.last_ack2 || unchanged && now < self.last_ack_at + rtt.rto();
        if known && !std::mem::take(&mut self.window_reopened) {
            // The next check is in a SYN, or else the timer would be due continuously.
            self.ack_due = now + SYN;
            return None;
        }
        self.ack_due = now + SYN;
        self.release();
        self.window_reopened = false;
        self.advertised_window = self.flight_window();
        self.last_ack_at = now;
        let number = self.acks.push(next, now);
        let full = self.last_full_ack_at.is_none_or(|at| now.since(at) >= SYN);
        if full {
            self.last_full_ack_at = Some(now);
        }
        Some(self.ack(if full { AckKind::Full } else { AckKind::Short }, number, rtt))
    }

    fn ack(&self, kind: AckKind, number: u32, rtt: &RttEstimator) -> Packet {
        let light = kind == AckKind::Light;
        let full = kind == AckKind::Full;
        Packet::Ack(
            kind,
            Ack {
                number,
                next: self.sequence_space.seq(self.first_missing()),
                rtt_us: if light { 0 } else { rtt.srtt.as_micros() as u32 },
                rtt_var_us: if light { 0 } else { rtt.rtt_var.as_micros() as u32 },
                window: if light { 0 } else { self.flight_window().max(MIN_WINDOW) },
                arrival_rate: if full { self.arrival_rate.rate() } else { 0 },
                capacity: if full { self.capacity.capacity() } else { 0 },
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nak_waits_as_long_as_packets_were_late_in_the_last_second() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut reordering = Reordering::default();
        let mut packet = |ms, timestamp_ms: u32| {
            reordering.on_packet(at(ms), timestamp_ms.wrapping_mul(1000));
            reordering.delay(at(ms))
        };
        // Packets in order and a retransmission, which has a new timestamp.
        assert_eq!([packet(11, 1), packet(12, 2), packet(20, 10)], [Span::ZERO; 3]);
        assert_eq!(packet(21, 7), Span::from_millis(3), "it was overtaken by 3 ms");
        assert_eq!(packet(22, 8), Span::from_millis(3), "the maximum counts");
        assert_eq!(packet(500, 490), Span::from_millis(3));
        assert_eq!(packet(600, 400), MAX_REORDER_DELAY);
        assert_eq!(packet(1599, 1500), MAX_REORDER_DELAY);
        assert_eq!(packet(1600, 1501), Span::ZERO, "forgotten");
    }
}
