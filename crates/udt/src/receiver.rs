//! The receiving half of a connection: what has arrived, what is missing, and what the sender is
//! told of it.
//!
//! Acknowledgements leave every SYN while there is something to acknowledge, and sooner after a
//! packet that is not full or after as many packets as the options say; light ones after every 64
//! packets between. A loss is reported as soon as a later packet arrives, and again until it is
//! repaired. What was measured goes along with acknowledgements once a SYN.

use crate::ack_window::AckWindow;
use crate::config::{Options, SYN};
use crate::connection::Arrival;
use crate::loss_list::ReceiveLosses;
use crate::meter::{ArrivalMeter, CapacityMeter};
use crate::packet::{Ack, AckKind, Data, DropRequest, Nak, Packet};
use crate::rtt::Rtt;
use crate::seq::{Numbering, Seq};
use crate::sink::Sink;
use dumbbell_units::{Span, Time};

/// Packets between two light acknowledgements.
const LIGHT_INTERVAL: u32 = 64;
/// The least window that is ever announced.
const MIN_WINDOW: u32 = 2;

/// The receiving half.
#[derive(Debug)]
pub(crate) struct Receiver {
    numbering: Numbering,
    payload: u16,
    /// Packets that may be in flight at most, whatever there is room for.
    window: u32,
    pub(crate) ack_interval: u32,
    light_acks: bool,
    nak_repeat: bool,
    skip_gaps: bool,
    pub(crate) sink: Sink,
    /// One past the highest packet that arrived.
    next: u64,
    losses: ReceiveLosses,
    /// The next report of losses is the rest of the last one.
    report_continues: bool,
    /// What was acknowledged last: everything before may be read.
    acked: u64,
    /// What the sender is known to know of.
    confirmed: u64,
    acks: AckWindow,
    /// When the last acknowledgement that said everything was sent.
    full_at: Option<Time>,
    /// When the last acknowledgement with a number was sent.
    acked_at: Time,
    /// The earliest time of the next acknowledgement.
    ack_due: Time,
    /// Packets since the last acknowledgement that a timer sent.
    since_ack: u32,
    /// Light acknowledgements since then.
    light: u32,
    /// Packets for which there was room when the sender was told last.
    announced: u32,
    /// There is much more room than that.
    reopened: bool,
    arrivals: ArrivalMeter,
    pairs: CapacityMeter,
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
        numbering: Numbering,
        payload: u16,
        options: &Options,
        sink: Sink,
    ) -> Receiver {
        Receiver {
            numbering,
            payload,
            window: options.window,
            ack_interval: options.ack_interval,
            light_acks: options.light_acks,
            nak_repeat: options.nak_repeat,
            skip_gaps: options.skip_gaps && matches!(sink, Sink::Count(_)),
            sink,
            next: 0,
            losses: ReceiveLosses::default(),
            report_continues: false,
            acked: 0,
            confirmed: 0,
            acks: AckWindow::default(),
            full_at: None,
            acked_at: now,
            ack_due: now + SYN,
            since_ack: 0,
            light: 0,
            announced: options.flight_window(),
            reopened: false,
            arrivals: ArrivalMeter::new(),
            pairs: CapacityMeter::new(),
            stats: ReceiverStats::default(),
        }
    }

    pub(crate) fn stats(&self) -> ReceiverStats {
        // With gaps passed over, everything that came in time is in order.
        let in_order = match self.skip_gaps {
            true => self.stats.packets - self.stats.discarded,
            false => self.first_missing(),
        };
        ReceiverStats { bytes: self.sink.in_order(in_order, self.payload), ..self.stats }
    }

    /// The packet of that sequence number.
    pub(crate) fn number_of(&self, seq: Seq) -> Option<u64> {
        self.numbering.packet(seq, self.acked)
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
    pub(crate) fn on_data(&mut self, now: Time, arrival: Arrival, data: &Data, payload: &[u8]) {
        self.stats.packets += 1;
        self.since_ack += 1;
        self.arrivals.on_arrival(arrival.at);
        let Some(packet) = self.numbering.packet(data.seq, self.acked) else {
            self.stats.discarded += 1;
            return;
        };
        self.measure_pair(arrival, packet, data);
        let room = u64::from(self.sink.room(self.acked));
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
        self.sink.put(packet, self.acked, data, payload, self.payload);
        if data.length != self.payload {
            self.ack_due = now;
        }
    }

    /// Packets sent for the first time come in pairs. One that fills a gap, or comes after one,
    /// is no half of a pair.
    #[inline]
    fn measure_pair(&mut self, arrival: Arrival, packet: u64, data: &Data) {
        // UDT4's clock has microseconds: no two packets are nearer to each other.
        let now = arrival.at + Span::from_micros(u64::from(arrival.place));
        if packet != self.next {
            self.pairs.spoil();
        } else if data.seq.begins_pair() {
            self.pairs.begin(now);
        } else if data.seq.ends_pair() {
            self.pairs.end(now);
        }
    }

    /// The sender acknowledges an acknowledgement.
    pub(crate) fn on_ack2(&mut self, now: Time, number: u32, rtt: &mut Rtt) {
        if let Some((next, sent_at)) = self.acks.take(number) {
            rtt.sample(now.since(sent_at));
            self.confirmed = self.confirmed.max(next);
        }
    }

    /// The sender gives up a message. A range that is not one, or beyond what there is room for,
    /// is ignored.
    pub(crate) fn on_drop_request(&mut self, now: Time, drop: &DropRequest) {
        let numbers = self.numbering.packet(drop.first, self.acked);
        let Some((first, last)) = numbers.zip(self.numbering.packet(drop.last, self.acked)) else {
            return;
        };
        let room = u64::from(self.sink.room(self.acked));
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
        self.sink.room(self.acked).min(self.window)
    }

    /// When to poll next.
    #[inline]
    pub(crate) fn next_timeout(&self, rtt: &Rtt) -> Time {
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
        self.reopened |= u64::from(room) >= 2 * u64::from(self.announced) + 64;
    }

    /// When the next acknowledgement is due, if nothing more arrives.
    #[inline]
    fn next_ack(&self, rtt: &Rtt) -> Time {
        if self.reopened {
            return Time::ZERO;
        }
        let next = self.first_missing();
        if next == self.confirmed {
            return Time::MAX;
        }
        match next == self.acked {
            // It was sent before: the ACK2 is overdue.
            true => self.ack_due.max(self.acked_at + rtt.overdue()),
            false => self.ack_due,
        }
    }

    /// The next packet that is to be sent now.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time, rtt: &Rtt) -> Option<Packet> {
        if self.has_report(now)
            && let Some(nak) = self.report_losses(now, rtt)
        {
            return Some(Packet::Nak(nak));
        }
        let by_count = self.ack_interval > 0 && self.since_ack >= self.ack_interval;
        if now >= self.ack_due || by_count || self.reopened {
            return self.acknowledge(now, rtt);
        }
        if self.light_acks && self.since_ack >= LIGHT_INTERVAL * (self.light + 1) {
            self.light += 1;
            let next = self.first_missing();
            return (next != self.confirmed).then(|| self.ack(AckKind::Light, 0, rtt));
        }
        None
    }

    /// Whether losses are to be reported now.
    #[inline]
    fn has_report(&self, now: Time) -> bool {
        self.losses.has_unreported() || now >= self.losses.repeat_at()
    }

    /// A report of losses, as long as a packet can be; `None` if those that were to be reported
    /// again have gone.
    fn report_losses(&mut self, now: Time, rtt: &Rtt) -> Option<Nak> {
        let mut nak = Nak::default();
        nak.continued = self.report_continues;
        // As in UDT4's code, where it is switched off, but for a least interval of 300 ms and one
        // timer for all losses: when the answer is overdue, and the sender had time to send all that
        // is missing, if it is as fast as it was. If it has become slow, it knows what of a report
        // is under way. Longer and longer intervals, as the draft has them, would let the sender's
        // EXP timer expire first, and all be sent again.
        let repairs = match self.arrivals.rate() {
            0 => Span::ZERO,
            rate => Span::from_secs(self.losses.len()) / u64::from(rate),
        };
        let interval = self.nak_repeat.then(|| rtt.overdue() + repairs);
        let numbering = self.numbering;
        self.losses.report(now, interval, |first, last| {
            nak.push(numbering.seq(first), numbering.seq(last))
        });
        self.report_continues = self.has_report(now);
        if self.skip_gaps && !self.report_continues {
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
    fn acknowledge(&mut self, now: Time, rtt: &Rtt) -> Option<Packet> {
        let next = self.first_missing();
        self.since_ack = 0;
        self.light = 0;
        let unchanged = next == self.acked;
        let known = next == self.confirmed || unchanged && now < self.acked_at + rtt.overdue();
        if known && !std::mem::take(&mut self.reopened) {
            // Not before a SYN has passed, or else the timer would come up again and again.
            self.ack_due = now + SYN;
            return None;
        }
        self.ack_due = now + SYN;
        self.release();
        self.reopened = false;
        self.announced = self.flight_window();
        self.acked_at = now;
        let number = self.acks.push(next, now);
        let full = self.full_at.is_none_or(|at| now.since(at) >= SYN);
        if full {
            self.full_at = Some(now);
        }
        Some(self.ack(if full { AckKind::Full } else { AckKind::Short }, number, rtt))
    }

    fn ack(&self, kind: AckKind, number: u32, rtt: &Rtt) -> Packet {
        let light = kind == AckKind::Light;
        let full = kind == AckKind::Full;
        Packet::Ack(
            kind,
            Ack {
                number,
                next: self.numbering.seq(self.first_missing()),
                rtt_us: if light { 0 } else { rtt.smoothed.as_micros() as u32 },
                rtt_var_us: if light { 0 } else { rtt.deviation.as_micros() as u32 },
                window: if light { 0 } else { self.flight_window().max(MIN_WINDOW) },
                arrival_rate: if full { self.arrivals.rate() } else { 0 },
                capacity: if full { self.pairs.capacity() } else { 0 },
            },
        )
    }
}
