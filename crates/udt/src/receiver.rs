//! The receiving half of a connection: what has arrived, what is missing, and what the sender is
//! told of it.
//!
//! Acknowledgements leave every SYN while there is something to acknowledge, and sooner after a
//! packet that is not full or after as many packets as the options say; light ones after every 64
//! packets between. A loss is reported as soon as a later packet arrives, and again until it is
//! repaired. What was measured goes along with acknowledgements once a SYN.

use crate::ack_window::AckWindow;
use crate::config::{SYN, TransportOptions};
use crate::connection::Arrival;
use crate::estimators::{ArrivalRateEstimator, CapacityEstimator};
use crate::loss_list::ReceiveLossList;
use crate::packet::{Ack, AckKind, DataHeader, DropRequest, Nak, Packet};
use crate::rtt::RttEstimator;
use crate::seq::{Seq, SequenceSpace};
use crate::sink::Sink;
use dumbbell_units::{Span, Time};

/// Packets between two light acknowledgements.
const LIGHT_INTERVAL: u32 = 64;
/// The least window that is ever announced.
const MIN_WINDOW: u32 = 2;

/// The receiving half.
#[derive(Debug)]
pub(crate) struct Receiver {
    numbering: SequenceSpace,
    max_payload: u16,
    /// Packets that may be in flight at most, whatever there is room for.
    window: u32,
    pub(crate) ack_interval: u32,
    light_acks: bool,
    nak_repeat: bool,
    skip_gaps: bool,
    pub(crate) sink: Sink,
    /// One past the highest packet that arrived.
    next: u64,
    losses: ReceiveLossList,
    /// The next report of losses is the rest of the last one.
    nak_continues: bool,
    /// What was acknowledged last: everything before may be read.
    acked: u64,
    /// What the sender is known to know of.
    last_ack2: u64,
    acks: AckWindow,
    /// When the last acknowledgement that said everything was sent.
    last_full_ack_at: Option<Time>,
    /// When the last acknowledgement with a number was sent.
    last_ack_at: Time,
    /// The earliest time of the next acknowledgement.
    ack_due: Time,
    /// Packets since the last acknowledgement that a timer sent.
    packets_since_ack: u32,
    /// Light acknowledgements since then.
    light_acks_sent: u32,
    /// Packets for which there was room when the sender was told last.
    advertised_window: u32,
    /// There is much more room than that.
    window_reopened: bool,
    arrival_rate: ArrivalRateEstimator,
    capacity: CapacityEstimator,
    stats: ReceiverStats,
}

/// What a receiving half has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Data packets that arrived.
    pub packets: u64,
    /// Those that had arrived before, or for which there was no room.
    pub discarded: u64,
    /// Packets that were found missing.
    pub missing: u64,
    /// Payload bytes that arrived in order.
    pub bytes: u64,
}

impl Receiver {
    /// Waits for packet 0.
    pub(crate) fn new(
        now: Time,
        numbering: SequenceSpace,
        max_payload: u16,
        options: &TransportOptions,
        sink: Sink,
    ) -> Receiver {
        Receiver {
            numbering,
            max_payload,
            window: options.window,
            ack_interval: options.ack_interval,
            light_acks: options.light_acks,
            nak_repeat: options.nak_repeat,
            skip_gaps: options.skip_gaps && matches!(sink, Sink::Count(_)),
            sink,
            next: 0,
            losses: ReceiveLossList::default(),
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
        // With gaps passed over, everything that came in time is in order.
        let in_order = match self.skip_gaps {
            true => self.stats.packets - self.stats.discarded,
            false => self.first_missing(),
        };
        ReceiverStats { bytes: self.sink.in_order_bytes(in_order, self.max_payload), ..self.stats }
    }

    /// The packet of that sequence number.
    pub(crate) fn index_of(&self, seq: Seq) -> Option<u64> {
        self.numbering.index_near(seq, self.acked)
    }

    /// Everything before this packet has arrived, or was given up.
    #[inline]
    fn first_missing(&self) -> u64 {
        match self.losses.first() {
            Some(missing) if !self.skip_gaps => missing,
            _ => self.next,
        }
    }

    /// A data packet arrived.
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        now: Time,
        arrival: Arrival,
        data: &DataHeader,
        payload: &[u8],
    ) {
        self.stats.packets += 1;
        self.packets_since_ack += 1;
        self.arrival_rate.on_arrival(arrival.at);
        let Some(packet) = self.numbering.index_near(data.seq, self.acked) else {
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
                self.losses.push(self.next..packet);
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

    /// Packets sent for the first time come in pairs. One that fills a gap, or comes after one,
    /// is no half of a pair.
    #[inline]
    fn measure_pair(&mut self, arrival: Arrival, packet: u64, data: &DataHeader) {
        // UDT4's clock has microseconds: no two packets are nearer to each other.
        let now = arrival.at + Span::from_micros(u64::from(arrival.gro_index));
        if packet != self.next {
            self.capacity.invalidate_pair();
        } else if data.seq.is_pair_first() {
            self.capacity.on_pair_first(now);
        } else if data.seq.is_pair_second() {
            self.capacity.on_pair_second(now);
        }
    }

    /// The sender acknowledges an acknowledgement.
    pub(crate) fn on_ack2(&mut self, now: Time, number: u32, rtt: &mut RttEstimator) {
        if let Some((next, sent_at)) = self.acks.acknowledge(number) {
            rtt.update(now.since(sent_at));
            self.last_ack2 = self.last_ack2.max(next);
        }
    }

    /// The sender gives up a message. A range that is not one, or beyond what there is room for,
    /// is ignored.
    pub(crate) fn on_drop_request(&mut self, now: Time, drop: &DropRequest) {
        let numbers = self.numbering.index_near(drop.first, self.acked);
        let Some((first, last)) = numbers.zip(self.numbering.index_near(drop.last, self.acked))
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

    /// Packets that may be in flight. UDT4's acknowledgements know only of the buffer: its UDT_FC
    /// counts in the handshake, and no more after it.
    #[inline]
    fn flight_window(&self) -> u32 {
        self.sink.free_packets(self.acked).min(self.window)
    }

    /// When to poll next.
    #[inline]
    pub(crate) fn next_timeout(&self, rtt: &RttEstimator) -> Time {
        let report = match self.losses.has_unreported() {
            true => Time::ZERO,
            false => self.losses.repeat_at(),
        };
        report.min(self.next_ack(rtt))
    }

    /// The application has read. A sender that knows of little room is told when there is much
    /// again; UDT4's would have to find out by trying.
    pub(crate) fn on_read(&mut self) {
        let room = self.flight_window();
        self.window_reopened |= u64::from(room) >= 2 * u64::from(self.advertised_window) + 64;
    }

    /// When the next acknowledgement is due, if nothing more arrives.
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
            // It was sent before: the ACK2 is overdue.
            true => self.ack_due.max(self.last_ack_at + rtt.rto()),
            false => self.ack_due,
        }
    }

    /// The next packet that is to be sent now.
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

    /// Whether losses are to be reported now.
    #[inline]
    fn has_nak(&self, now: Time) -> bool {
        self.losses.has_unreported() || now >= self.losses.repeat_at()
    }

    /// A report of losses, as long as a packet can be; `None` if those that were to be reported
    /// again have gone.
    fn make_nak(&mut self, now: Time, rtt: &RttEstimator) -> Option<Nak> {
        let mut nak = Nak::default();
        nak.continued = self.nak_continues;
        // As in UDT4's code, where it is switched off, but for a least interval of 300 ms and one
        // timer for all losses: when the answer is overdue, and the sender had time to send all that
        // is missing, if it is as fast as it was. If it has become slow, it knows what of a report
        // is under way. Longer and longer intervals, as the draft has them, would let the sender's
        // EXP timer expire first, and all be sent again.
        let repairs = match self.arrival_rate.rate() {
            0 => Span::ZERO,
            rate => Span::from_secs(self.losses.len()) / u64::from(rate),
        };
        let interval = self.nak_repeat.then(|| rtt.rto() + repairs);
        let numbering = self.numbering;
        self.losses.report(now, interval, |first, last| {
            nak.push(numbering.seq(first), numbering.seq(last))
        });
        self.nak_continues = self.has_nak(now);
        if self.skip_gaps && !self.nak_continues {
            self.losses.remove_range(0..self.next);
        }
        (!nak.words().is_empty()).then_some(nak)
    }

    /// What has arrived may be read, as far as nothing before it is missing.
    pub(crate) fn release(&mut self) {
        self.acked = self.first_missing();
        self.sink.release(self.acked);
    }

    /// The acknowledgement that a timer or a count asks for, if it has something to say.
    fn make_ack(&mut self, now: Time, rtt: &RttEstimator) -> Option<Packet> {
        let next = self.first_missing();
        self.packets_since_ack = 0;
        self.light_acks_sent = 0;
        let unchanged = next == self.acked;
        let known = next == self.last_ack2 || unchanged && now < self.last_ack_at + rtt.rto();
        if known && !std::mem::take(&mut self.window_reopened) {
            // Not before a SYN has passed, or else the timer would come up again and again.
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
                next: self.numbering.seq(self.first_missing()),
                rtt_us: if light { 0 } else { rtt.srtt.as_micros() as u32 },
                rtt_var_us: if light { 0 } else { rtt.rtt_var.as_micros() as u32 },
                window: if light { 0 } else { self.flight_window().max(MIN_WINDOW) },
                arrival_rate: if full { self.arrival_rate.rate() } else { 0 },
                capacity: if full { self.capacity.capacity() } else { 0 },
            },
        )
    }
}
