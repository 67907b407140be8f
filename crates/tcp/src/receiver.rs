//! The receiving side of a connection: reassembly and acknowledgements, as Linux sends them
//! (`tcp_data_queue`, `__tcp_ack_snd_check`).
//!
//! A segment in order is acknowledged
//!
//! - with the second full-sized one (RFC 5681, 4.2), otherwise after 40 ms;
//! - immediately, if it has PSH: it ends a write or a burst;
//! - immediately, while quick ACKs last: at the start of a connection, after a duplicate, and while
//!   the receive window grows;
//! - immediately, if it fills a hole or a CE mark changes.
//!
//! A segment out of order is acknowledged immediately. From the fourth on, SACK compression (Linux
//! 4.18) reduces this to one acknowledgement per millisecond or 1/20 of a round trip, unless there
//! are quick ACKs. A segment with an old timestamp is discarded (PAWS).

use crate::ranges::RangeSet;
use crate::receive_window::ReceiveWindow;
use crate::rtt::{TIMESTAMP_TICK, ticks_between};
use crate::sack_blocks::SackBlocks;
use crate::segment::tsval;
use crate::{Ecn, Flags, Segment, Stack};
use dumbbell_net::{Endpoint, prefetch};
use dumbbell_units::{Span, Time};
use std::sync::Arc;

/// Duplicate acknowledgements sent immediately before compression begins
/// (`TCP_FASTRETRANS_THRESH`).
const FASTRETRANS_THRESH: u8 = 3;
/// Maximum acknowledgements that one compressed acknowledgement replaces (`tcp_comp_sack_nr`).
const COMP_SACK_NR: u8 = 44;
/// Maximum delay by compression (`tcp_comp_sack_delay_ns`).
const COMP_SACK_DELAY: Span = Span::from_millis(1);
/// Slack of the timer (`tcp_comp_sack_slack_ns`). An idle processor's timer fires at its end.
const COMP_SACK_SLACK: Span = Span::from_micros(100);

const NO_PACKET: u32 = u32::MAX;
/// A tick of the clock for gaps between packets is 2^22 ns, about a jiffy of Linux with 250 Hz. Gaps count
/// modulo 275 s.
const TICK_BITS: u32 = 22;

/// SACK blocks beyond which a compressed acknowledgement is sent (`TCP_SACK_BLOCKS_EXPECTED`): the
/// option has space for three, and a block that falls out would never be reported.
const SACK_BLOCKS_EXPECTED: usize = 2;

/// The receiving side of a connection; three cache lines.
#[repr(align(64))]
pub struct Receiver {
    stack: Arc<Stack>,
    /// Next packet expected (RCV.NXT).
    rcv_nxt: u32,
    out_of_order: RangeSet,
    /// The SACK blocks that report them.
    sack_blocks: SackBlocks,
    /// A packet that arrived twice, to be reported by D-SACK; `NO_PACKET` if there is none.
    dsack: u32,
    /// The latest packet whose payload is not an MSS: its number and payload.
    short_segment: u32,
    short_payload: u16,
    /// By how many bytes those before it are shorter than full ones.
    shortfall: u32,
    unacked: u32,
    /// When the latest packet arrived in order, in units of [`TICK_BITS`] (`lrcvtime`).
    received_at: u16,
    /// Quick ACKs left (`icsk_ack.quick`). While the window grows they do not end: each packet that
    /// lets it grow sets the lowest bit (`tcp_grow_window`).
    quick_acks: u16,
    ack_at: Time,
    /// Flags of the acknowledgement to send now.
    reply: Option<Flags>,
    /// An acknowledgement that was built before the latest change of the state; rare.
    pending_ack: Option<Box<Segment>>,
    /// Timestamp to echo (RFC 7323: TS.Recent).
    ts_recent: u32,
    /// `rcv_nxt` of the last acknowledgement (RFC 7323: Last.ACK.sent).
    last_ack_sent: u32,
    /// `rcv_nxt` when the duplicate acknowledgements began; Linux's name, as the next two.
    compressed_ack_rcv_nxt: u32,
    dup_ack_counter: u8,
    compressed_ack: u8,
    handshake: Handshake,
    /// ECE is set on acknowledgements. With L4S: the last packet was marked.
    ece: bool,
    /// Packets received with CE since the last acknowledgement. With L4S: since the start, modulo 256
    /// (RFC 9768: `r.cep`).
    marked: u8,
    window: ReceiveWindow,
}

const _: () = assert!(size_of::<Receiver>() == 192);

/// The receiver's handshake.
#[derive(Clone, Copy, Debug)]
enum Handshake {
    Listen,
    /// The first SYN-ACK was sent at this time.
    SynAckSent(Time),
    /// Round-trip time from the SYN-ACK to the first data.
    Rtt(Span),
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Payload bytes received in order.
    pub bytes: u64,
    /// Packets received in order.
    pub packets: u64,
}

impl Receiver {
    /// Prefetches the receiver's cache lines.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(self);
    }

    /// A receiver that waits for a SYN.
    pub fn new(stack: Arc<Stack>) -> Receiver {
        let window = ReceiveWindow::new(&stack);
        Receiver {
            rcv_nxt: 0,
            out_of_order: RangeSet::default(),
            sack_blocks: SackBlocks::default(),
            dsack: NO_PACKET,
            short_segment: NO_PACKET,
            short_payload: 0,
            shortfall: 0,
            unacked: 0,
            received_at: 0,
            quick_acks: window.quick_acks(&stack),
            ack_at: Time::MAX,
            reply: None,
            pending_ack: None,
            ts_recent: 0,
            last_ack_sent: 0,
            compressed_ack_rcv_nxt: 0,
            dup_ack_counter: 0,
            compressed_ack: 0,
            handshake: Handshake::Listen,
            ece: false,
            marked: 0,
            window,
            stack,
        }
    }

    /// The receive window of a subflow.
    pub(crate) fn window(&self) -> &ReceiveWindow {
        &self.window
    }

    /// Whether a SYN has arrived.
    fn is_open(&self) -> bool {
        !matches!(self.handshake, Handshake::Listen)
    }

    /// Whether the handshake is complete and no data has arrived.
    pub(crate) fn is_unused(&self) -> bool {
        matches!(self.handshake, Handshake::Rtt(_)) && self.rcv_nxt == 0
    }

    /// See [`ReceiveWindow::follow`].
    pub(crate) fn follow_window(&mut self, copied: u32) {
        self.window.follow(&self.stack, copied, self.span_out_of_order());
    }

    /// Whether every packet is acknowledged at once: delayed acknowledgements are off, they are quick, or
    /// there is a hole.
    pub(crate) fn acknowledges_at_once(&self) -> bool {
        !self.stack.delayed_ack || self.quick_acks > 0 || !self.out_of_order.is_empty()
    }

    /// Packets received in order since the last acknowledgement.
    pub(crate) fn unacked(&self) -> u32 {
        self.unacked
    }

    /// Acknowledges what is not acknowledged yet, unless an acknowledgement is due already. Returns whether it
    /// does.
    pub(crate) fn acknowledge(&mut self) -> bool {
        let acknowledges = self.unacked > 0 && self.reply.is_none();
        if acknowledges {
            self.reply = Some(Flags::default());
        }
        acknowledges
    }

    /// Counters.
    pub fn stats(&self) -> ReceiverStats {
        let packets = u64::from(self.rcv_nxt);
        let full = packets * u64::from(self.stack.mss);
        let short = self.shortfall.saturating_add(self.latest_shortfall());
        ReceiverStats { bytes: full - u64::from(short), packets }
    }

    /// By how many bytes the latest packet whose payload is not an MSS is shorter, if it is in order.
    fn latest_shortfall(&self) -> u32 {
        let is_in_order = self.short_segment < self.rcv_nxt;
        if is_in_order { u32::from(self.stack.mss - self.short_payload) } else { 0 }
    }

    /// Notes when a packet arrived in order. After a gap longer than the retransmission timeout, quick
    /// ACKs follow: the sender had a timeout, or was idle (`tcp_event_data_recv`).
    #[inline]
    fn note_time(&mut self, now: Time) {
        let tick = (now.as_nanos() >> TICK_BITS) as u16;
        let gap = tick.wrapping_sub(self.received_at);
        self.received_at = tick;
        if gap > 0 {
            self.on_gap(gap);
        }
    }

    #[cold]
    fn on_gap(&mut self, gap: u16) {
        // The receiver has one sample, that of the handshake (RFC 6298, 2.2).
        let Handshake::Rtt(rtt) = self.handshake else { return };
        let rto = (rtt * 3).max(rtt + Span::from_nanos(self.stack.min_rto_ns));
        if Span::from_nanos(u64::from(gap) << TICK_BITS) > rto {
            self.quick_acks = self.quick_acks.max(self.window.quick_acks(&self.stack));
        }
    }

    /// Notes a packet whose payload is not an MSS: the last of the flow, or of a message, which is written
    /// when all before it is delivered.
    #[cold]
    fn on_short_segment(&mut self, number: u32, payload: u16) {
        if self.short_segment == NO_PACKET || number > self.short_segment {
            self.shortfall = self.shortfall.saturating_add(self.latest_shortfall());
            (self.short_segment, self.short_payload) = (number, payload);
        }
    }

    fn on_syn(&mut self, now: Time, segment: &Segment) {
        self.ts_recent = segment.timestamp;
        if matches!(self.handshake, Handshake::Listen) {
            self.handshake = Handshake::SynAckSent(now);
        }
        self.reply = Some(Flags::SYN);
    }

    /// The third acknowledgement of a joining subflow's handshake, which is answered by a fourth
    /// (RFC 8684, section 3.2). The answer uses no quick ACK.
    #[cold]
    fn on_third_ack(&mut self, now: Time, segment: &Segment) {
        self.ts_recent = segment.timestamp;
        if let Handshake::SynAckSent(at) = self.handshake {
            self.handshake = Handshake::Rtt(now.since(at));
        }
        self.quick_acks = self.quick_acks.saturating_add(1);
        self.reply = Some(Flags::default());
    }

    #[inline(always)]
    fn on_data(&mut self, now: Time, segment: &Segment) {
        if let Handshake::SynAckSent(at) = self.handshake {
            self.handshake = Handshake::Rtt(now.since(at));
        }
        if self.ts_recent.wrapping_sub(segment.timestamp) as i32 > TIMESTAMP_TICK as i32
            && self.paws_discard(segment)
        {
            return;
        }
        // Of what is not sent yet; an acknowledgement that is compressed reports no duplicate
        // (`tcp_data_queue`).
        self.dsack = NO_PACKET;
        let ecn_ack_now = self.update_ecn(segment);
        let payload = segment.size - self.stack.header;
        if payload != self.stack.mss {
            self.on_short_segment(segment.number, payload);
        }
        // RFC 7323, 4.3: SEG.SEQ <= Last.ACK.sent. So the echo is of the first segment that a delayed
        // acknowledgement covers. Linux drops a segment that ends before that (`tcp_sequence`).
        let is_next_acknowledged =
            segment.number <= self.last_ack_sent && segment.number + 1 >= self.last_ack_sent;
        if is_next_acknowledged && segment.timestamp.wrapping_sub(self.ts_recent) as i32 >= 0 {
            self.ts_recent = segment.timestamp;
        }
        if self.stack.autotuning {
            self.window.measure_rtt(now, segment.tsecr());
        }
        if segment.number == self.rcv_nxt {
            let arrived = self.advance_rcv_nxt();
            if self.stack.autotuning {
                let window_grows = self.window.grow();
                self.quick_acks |= u16::from(window_grows);
            }
            self.unacked += 1;
            self.note_time(now);
            if !self.out_of_order.is_empty() {
                self.ack_out_of_order(now, ecn_ack_now);
            } else if self.unacked >= 2
                || self.quick_acks > 0
                || !self.stack.delayed_ack
                || ecn_ack_now
                || self.stack.push && segment.flags.contains(Flags::PSH)
            {
                self.reply = Some(Flags::default());
            } else {
                self.ack_at = self.stack.expiry(now, Span::from_nanos(self.stack.delayed_ack_ns));
            }
            if self.stack.autotuning {
                self.read(now, arrived);
            }
        } else {
            if self.queue_out_of_order(now, segment.number) {
                self.ack_out_of_order(now, ecn_ack_now);
            }
        }
    }

    /// Protects against wrapped sequence numbers: discards and acknowledges a packet whose timestamp is
    /// older than TS.Recent (RFC 7323, 5.3) by more than one tick (`TCP_PAWS_WINDOW`). So an original
    /// that arrives after a retransmission of an earlier packet is discarded.
    #[cold]
    fn paws_discard(&mut self, segment: &Segment) -> bool {
        if !self.stack.timestamps() || ticks_between(segment.timestamp, self.ts_recent) <= 1 {
            return false;
        }
        if segment.number < self.rcv_nxt {
            self.report_duplicate(segment.number);
        }
        self.acknowledge_without_data();
        self.reply = Some(Flags::default());
        true
    }

    /// Data that was delivered already arrived again (`tcp_enter_quickack_mode`, `tcp_dsack_set`).
    fn report_duplicate(&mut self, number: u32) {
        self.dsack = number;
        self.quick_acks = self.quick_acks.max(self.window.quick_acks(&self.stack).max(1));
    }

    /// The application reads `packets`, all that there are up to `rcv_nxt`.
    ///
    /// Those that waited for a retransmission still occupy the buffer in the acknowledgement. If the
    /// window has doubled after the read, a second acknowledgement follows (`__tcp_cleanup_rbuf`).
    #[inline]
    fn read(&mut self, now: Time, packets: u32) {
        let reply = if packets > 1 { self.reply.take() } else { None };
        if let Some(flags) = reply {
            self.pending_ack = Some(Box::new(self.build_ack(now, flags)));
        }
        let span = self.span_out_of_order();
        self.window.on_read(now, self.rcv_nxt, packets, &self.stack, span);
        if reply.is_some() && self.window.has_doubled(self.rcv_nxt, &self.stack) {
            self.acknowledge_without_data();
            self.reply = Some(Flags::default());
        }
    }

    /// How many packets beyond the next one those out of order span.
    #[inline]
    fn span_out_of_order(&self) -> u32 {
        self.out_of_order.end().map_or(0, |end| end - self.rcv_nxt)
    }

    /// The expected packet arrived: advances over it and the packets queued behind it. Returns how
    /// many these are.
    #[inline]
    fn advance_rcv_nxt(&mut self) -> u32 {
        let before = self.rcv_nxt;
        self.rcv_nxt += 1;
        if let Some((start, end)) = self.out_of_order.first()
            && start <= self.rcv_nxt
        {
            self.unacked += end - self.rcv_nxt;
            self.rcv_nxt = end;
            self.out_of_order.remove_below(end);
            self.sack_blocks.remove_below(end);
        }
        self.rcv_nxt - before
    }

    /// A packet arrived that is not the next one (`tcp_data_queue_ofo`). Returns whether its
    /// acknowledgement is due: not if it ended the compression of those before it
    /// (`tcp_sack_compress_send_ack`).
    fn queue_out_of_order(&mut self, now: Time, number: u32) -> bool {
        if number < self.rcv_nxt {
            if number + 1 < self.last_ack_sent {
                self.acknowledge_without_data();
            }
            self.report_duplicate(number);
            return true;
        }
        let mut is_new = false;
        self.out_of_order.insert(number, number + 1, |_, _| is_new = true);
        if is_new {
            self.grow_window_out_of_order();
        } else {
            self.dsack = number;
        }
        let ends_compression =
            self.compressed_ack > 0 && self.sack_blocks.index_of(number) >= SACK_BLOCKS_EXPECTED;
        if ends_compression {
            self.pending_ack = Some(Box::new(self.build_ack(now, Flags::default())));
        }
        self.sack_blocks.add(number);
        !ends_compression
    }

    /// The next acknowledgement is of no new data, so that it uses no quick ACK, unless one is due anyway
    /// (`tcp_dec_quickack_mode`).
    fn acknowledge_without_data(&mut self) {
        if self.ack_at == Time::MAX && self.reply.is_none() {
            self.quick_acks = self.quick_acks.saturating_add(1);
        }
    }

    /// A packet was queued out of order (`tcp_grow_window`).
    fn grow_window_out_of_order(&mut self) {
        if self.stack.autotuning {
            let span = self.span_out_of_order();
            let window_grows = self.window.on_queued(&self.stack, span);
            self.quick_acks |= u16::from(window_grows);
        }
    }

    /// Packets out of order occupy more than half of the buffer that subflows share (`__tcp_select_window`).
    pub(crate) fn end_quick_acks(&mut self) {
        self.quick_acks = 0;
    }

    /// Acknowledges immediately, as `ecn_ack_now` asks, or later if compression has begun
    /// (`__tcp_ack_snd_check`).
    fn ack_out_of_order(&mut self, now: Time, ecn_ack_now: bool) {
        if self.compressed_ack_rcv_nxt != self.rcv_nxt {
            self.compressed_ack_rcv_nxt = self.rcv_nxt;
            self.dup_ack_counter = 0;
        }
        let in_quickack_mode = self.quick_acks > 0 || !self.stack.delayed_ack;
        let ack_now = ecn_ack_now
            || !self.stack.sack_compression
            || self.unacked >= 2
            || in_quickack_mode
            || self.compressed_ack >= COMP_SACK_NR;
        if ack_now || self.dup_ack_counter < FASTRETRANS_THRESH {
            self.dup_ack_counter += u8::from(!ack_now);
            self.reply = Some(Flags::default());
            return;
        }
        self.compressed_ack += 1;
        if self.compressed_ack == 1 {
            let twentieth = match self.handshake {
                Handshake::Rtt(rtt) => rtt / 20,
                Handshake::Listen | Handshake::SynAckSent(_) => COMP_SACK_DELAY,
            };
            self.ack_at = now + COMP_SACK_DELAY.min(twentieth) + COMP_SACK_SLACK;
        }
    }

    /// Updates the ECN state. Returns whether the segment is acknowledged immediately:
    ///
    /// - L4S: if a packet is marked and the last one was not (RFC 9768, 3.2.2.5.1). That section's other
    ///   trigger, two marks, is met by the acknowledgement of every second packet.
    /// - DCTCP: if the mark differs from the last one (RFC 8257, 3.2), and on CWR.
    /// - Classic: on the first mark and on CWR, as the sender's window may be small then. A packet that
    ///   is not ECN-capable is a retransmission, and quick ACKs follow it too (`__tcp_ecn_check_ce`,
    ///   `tcp_ecn_accept_cwr`).
    #[inline]
    fn update_ecn(&mut self, segment: &Segment) -> bool {
        if self.stack.ecn == Ecn::Off {
            return false;
        }
        let marked = segment.flags.contains(Flags::CE);
        if self.stack.ecn == Ecn::L4s {
            self.marked = self.marked.wrapping_add(u8::from(marked));
            return !std::mem::replace(&mut self.ece, marked) && marked;
        }
        let cwr = segment.flags.contains(Flags::CWR);
        if self.stack.ecn == Ecn::Accurate {
            self.marked = self.marked.saturating_add(u8::from(marked));
            return std::mem::replace(&mut self.ece, marked) != marked || cwr;
        }
        self.ece &= !cwr;
        let first_mark = marked && !self.ece;
        if first_mark || !marked && !segment.flags.contains(Flags::ECT_0) {
            self.quick_acks = self.quick_acks.max(2);
        }
        self.ece |= marked;
        cwr || first_mark
    }

    /// The ECN field and echo of an acknowledgement, and its count of marks.
    fn ecn_feedback(&mut self) -> (Flags, u8) {
        let ect = self.stack.control_ect();
        match self.stack.ecn {
            Ecn::L4s => (ect, self.marked),
            _ => {
                let ece = if self.ece { Flags::ECE } else { Flags::default() };
                (ect.with(ece), std::mem::take(&mut self.marked))
            }
        }
    }

    /// An acknowledgement with the SACK blocks, a D-SACK block first (RFC 2018, RFC 2883), and their
    /// number. By value: one without blocks then never is in memory.
    #[inline(never)]
    fn with_sack_blocks(&mut self, mut segment: Segment) -> (Segment, usize) {
        let number = std::mem::replace(&mut self.dsack, NO_PACKET);
        let duplicate = (number != NO_PACKET).then(|| (number, number + 1));
        if duplicate.is_some() {
            segment.flags = Flags::DSACK;
        }
        let newest = self.sack_blocks.newest_first().iter().copied();
        let blocks = segment.set_blocks(duplicate.into_iter().chain(newest));
        (segment, blocks)
    }

    #[inline(always)]
    fn build_ack(&mut self, now: Time, flags: Flags) -> Segment {
        let mut flags = flags.with(Flags::ACK);
        let mut marked = 0;
        if self.stack.ecn != Ecn::Off {
            let ecn;
            (ecn, marked) = self.ecn_feedback();
            flags = flags.with(ecn);
        }
        let mut segment = Segment {
            number: self.rcv_nxt,
            timestamp: self.ts_recent,
            marked,
            ..Segment::default()
        };
        segment.set_window(self.window.advertise(self.rcv_nxt, &self.stack), tsval(now));
        let mut blocks = 0;
        if self.dsack != NO_PACKET || !self.out_of_order.is_empty() {
            (segment, blocks) = self.with_sack_blocks(segment);
        }
        segment.flags = segment.flags.with(flags);
        segment.size = if flags.contains(Flags::SYN) {
            segment.set_window(self.window.of_syn_ack(&self.stack), tsval(now));
            self.stack.control_size()
        } else {
            self.stack.ack_size(blocks)
        };
        self.unacked = 0;
        if self.window.is_half_full() {
            self.quick_acks = 0;
        }
        // The SYN-ACK uses no quick ACK: counting begins with data (`tcp_event_data_recv`).
        if !flags.contains(Flags::SYN) {
            self.quick_acks = self.quick_acks.saturating_sub(1);
        }
        self.compressed_ack = 0;
        self.ack_at = Time::MAX;
        self.last_ack_sent = self.rcv_nxt;
        segment
    }
}

impl Endpoint for Receiver {
    type Packet = Segment;

    #[inline(always)]
    fn handle(&mut self, now: Time, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            self.on_syn(now, segment);
        } else if self.is_open() && segment.is_ack() {
            self.on_third_ack(now, segment);
        } else if self.is_open() {
            self.on_data(now, segment);
        }
    }

    #[inline(always)]
    fn poll(&mut self, now: Time) -> Option<Segment> {
        if self.pending_ack.is_some() {
            return self.pending_ack.take().map(|segment| *segment);
        }
        let due = now >= self.ack_at;
        let flags = self.reply.take().or(due.then(Flags::default))?;
        Some(self.build_ack(now, flags))
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        self.ack_at
    }
}

#[cfg(test)]
mod tests;
