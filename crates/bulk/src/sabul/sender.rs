//! The sender: `CSabulSender` of `sender.cpp`.

use super::codec::{self, Control, OPTION};
use super::{SYN_INTERVAL, SYN_INTERVAL_US, unwrap_seq, wrap_seq};
use crate::engine::{Channel, Engine, Load, Stats, wire_rate};
use crate::inbox::{Inbox, ProtocolError};
use crate::options::SabulOptions;
use dumbbell_units::{Span, Time};
use std::collections::BTreeSet;

/// A receiver that is silent for so long has lost what is in flight (`m_iEXPInterval`).
const EXP_INTERVAL: Span = Span::from_secs(1);
/// Loss rate up to which the rate is increased (`m_dLossRateLimit`).
const LOSS_RATE_LIMIT: f64 = 0.001;
/// Weight of the history in the loss rate (`m_dWeight`).
const WEIGHT: f64 = 0.1;
/// Bytes of a packet by which rates are converted to intervals (`setRate`).
const RATE_PACKET: f64 = 1500.0;
/// Factor of the interval at a decrease.
const DECREASE: f64 = 1.125;

/// The interval between packets of a rate, microseconds.
fn interval_us(rate_bps: u64) -> f64 {
    RATE_PACKET * 8e6 / rate_bps as f64
}

/// The end that sends data. It waits for the receiver, which opens the control channel.
#[derive(Debug)]
pub struct Sender {
    options: SabulOptions,
    load: Load,
    inbox: Inbox,
    /// The receiver's options, to be returned.
    reply: Option<[u8; OPTION]>,
    is_open: bool,
    /// Maximum packets from the first unacknowledged one (`m_iSendFlagSize`).
    send_flag_size: u64,
    /// Interval between packets, microseconds (`m_dInterval`).
    interval: f64,
    last_ack: u64,
    curr_seq_no: u64,
    /// `m_lCurrSeqNo` when the last SYN arrived.
    last_syn_seq_no: u64,
    /// Retransmissions since then; with the new packets the datagrams sent.
    local_send: u64,
    /// Packets reported missing since then.
    local_err: u64,
    history_rate: f64,
    err_count: u32,
    dec_count: u32,
    /// The next new packet when the rate was last decreased for a new loss.
    last_dec_seq: Option<u64>,
    /// After a new loss nothing is sent for a SYN interval.
    freeze: bool,
    /// Packets to retransmit, all from `last_ack` on and before `curr_seq_no`.
    losses: BTreeSet<u64>,
    next_send: Time,
    next_exp: Time,
    stats: Stats,
}

impl Sender {
    /// A sender of this load.
    pub fn new(options: SabulOptions, load: Load) -> Sender {
        Sender {
            interval: interval_us(options.initial_rate_bps),
            send_flag_size: u64::from(options.flag_size),
            options,
            load,
            inbox: Inbox::default(),
            reply: None,
            is_open: false,
            last_ack: 0,
            curr_seq_no: 0,
            last_syn_seq_no: 0,
            local_send: 0,
            local_err: 0,
            history_rate: 0.0,
            err_count: 0,
            dec_count: 1,
            last_dec_seq: None,
            freeze: false,
            losses: BTreeSet::new(),
            next_send: Time::ZERO,
            next_exp: Time::MAX,
            stats: Stats::default(),
        }
    }

    fn payload(&self) -> u64 {
        u64::from(self.options.packet_size) - codec::HEADER as u64
    }

    fn open(&mut self, now: Time, option: [u8; OPTION]) -> Result<(), ProtocolError> {
        let flag_size = codec::recv_flag_size(&option);
        if flag_size == 0 {
            return Err(ProtocolError::Field { field: "m_iRecvFlagSize", value: 0 });
        }
        // The receiver's, but no more than is configured here: it bounds the memory.
        self.send_flag_size = u64::from(flag_size.min(self.options.flag_size));
        (self.reply, self.is_open) = (Some(option), true);
        (self.next_send, self.next_exp) = (now, now + EXP_INTERVAL);
        Ok(())
    }

    /// `processFeedback`.
    fn process_feedback(&mut self, now: Time, message: &Control) {
        match message {
            Control::Ack(seq) => self.on_ack(now, *seq),
            Control::Err(lost) => self.on_err(lost),
            Control::Syn(_) => return self.on_syn(),
        }
        self.next_exp = now + EXP_INTERVAL;
    }

    fn on_ack(&mut self, now: Time, seq: u32) {
        let acked = unwrap_seq(seq, self.last_ack);
        let Some(acked) = acked.filter(|seq| (self.last_ack..=self.curr_seq_no).contains(seq))
        else {
            return;
        };
        self.last_ack = acked;
        self.losses = self.losses.split_off(&acked);
        if acked == self.load.packets(self.payload()) {
            self.stats.completed.get_or_insert(now);
        }
    }

    /// Each loss beyond the packets sent at the last decrease decreases the rate; of the other
    /// reports the 16th, the 32nd and so on.
    fn on_err(&mut self, lost: &[u32]) {
        let first = lost.first().and_then(|&seq| unwrap_seq(seq, self.last_ack));
        let is_new = self.last_dec_seq.is_none_or(|last| first.is_some_and(|seq| seq > last));
        if is_new {
            self.interval *= DECREASE;
            self.last_dec_seq = Some(self.curr_seq_no);
            self.freeze = true;
            (self.err_count, self.dec_count) = (1, 4);
            self.stats.recoveries += 1;
        } else {
            self.err_count += 1;
            if u64::from(self.err_count) >= 1 << self.dec_count.min(63) {
                self.dec_count += 1;
                self.interval *= DECREASE;
                self.stats.recoveries += 1;
            }
        }
        // Not to overflow; such an interval is longer than any run.
        self.interval = self.interval.min(1e12);
        for &seq in lost {
            let packet = unwrap_seq(seq, self.last_ack);
            let packet = packet.filter(|seq| (self.last_ack..self.curr_seq_no).contains(seq));
            if packet.is_some_and(|packet| self.losses.insert(packet)) {
                self.stats.lost += 1;
            }
        }
        self.local_err += lost.len() as u64;
    }

    fn on_syn(&mut self) {
        self.local_send += self.curr_seq_no - self.last_syn_seq_no;
        self.local_send = self.local_send.max(self.local_err);
        if self.local_send != 0 {
            self.rate_control(self.local_err as f64 / self.local_send as f64);
        }
        self.last_syn_seq_no = self.curr_seq_no;
        (self.local_send, self.local_err) = (0, 0);
    }

    /// `rateControl`: with little loss the rate grows by `inc` packets per SYN interval.
    fn rate_control(&mut self, curr_loss_rate: f64) {
        self.history_rate = self.history_rate * WEIGHT + curr_loss_rate * (1.0 - WEIGHT);
        if self.history_rate > LOSS_RATE_LIMIT {
            return;
        }
        let inc = libm::pow(10.0, libm::ceil(libm::log10(SYN_INTERVAL_US / self.interval))) / 1e3;
        let inc = inc.max(1.0 / 1500.0);
        self.interval = self.interval * SYN_INTERVAL_US / (self.interval * inc + SYN_INTERVAL_US);
        let lower_limit = interval_us(self.options.min_rate_bps);
        let upper_limit = interval_us(self.options.max_rate_bps);
        self.interval = self.interval.min(lower_limit).max(upper_limit);
    }

    /// The next packet: a lost one, or a new one if the window allows it.
    fn next_packet(&mut self, now: Time) -> Option<u64> {
        if let Some(lost) = self.losses.pop_first() {
            self.local_send += 1;
            self.stats.retransmitted += 1;
            return Some(lost);
        }
        let is_allowed = self.curr_seq_no - self.last_ack < self.send_flag_size
            && self.curr_seq_no < self.load.packets(self.payload())
            && self.load.is_open(now);
        is_allowed.then(|| {
            self.curr_seq_no += 1;
            self.curr_seq_no - 1
        })
    }

    fn run_exp(&mut self, now: Time) {
        if now < self.next_exp {
            return;
        }
        self.next_exp = now + EXP_INTERVAL;
        if self.last_ack < self.curr_seq_no {
            self.stats.timeouts += 1;
            self.losses.extend(self.last_ack..self.curr_seq_no);
        }
    }
}

impl Engine for Sender {
    fn handle(&mut self, now: Time, channel: Channel, bytes: &[u8]) -> Result<(), ProtocolError> {
        if channel == Channel::Data {
            return Ok(());
        }
        self.inbox.push(bytes);
        if !self.is_open {
            let Some(option) = self.inbox.take_array() else { return Ok(()) };
            self.open(now, option)?;
        }
        let max_lost = codec::max_loss_length(self.options.packet_size);
        while let Some(message) = Control::take(&mut self.inbox, max_lost)? {
            self.process_feedback(now, &message);
        }
        Ok(())
    }

    fn poll(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Channel> {
        if let Some(option) = self.reply.take() {
            out.extend_from_slice(&option);
            return Some(Channel::Control);
        }
        if !self.is_open || self.stats.completed.is_some() {
            return None;
        }
        self.run_exp(now);
        if now < self.next_send {
            return None;
        }
        let packet = self.next_packet(now)?;
        let wait = Span::from_nanos((self.interval * 1e3) as u64);
        let freeze = if std::mem::take(&mut self.freeze) { SYN_INTERVAL } else { Span::ZERO };
        self.next_send = now + wait + freeze;
        self.stats.sent += 1;
        out.extend_from_slice(&wrap_seq(packet).to_be_bytes());
        out.resize(codec::HEADER + self.load.payload(packet, self.payload()), 0);
        Some(Channel::Data)
    }

    fn next_timeout(&self) -> Time {
        if !self.is_open || self.stats.completed.is_some() {
            return Time::MAX;
        }
        let has_new = self.curr_seq_no - self.last_ack < self.send_flag_size
            && self.curr_seq_no < self.load.packets(self.payload())
            && self.load.is_open(self.next_send);
        if has_new || !self.losses.is_empty() {
            return self.next_send.min(self.next_exp);
        }
        if self.last_ack < self.curr_seq_no { self.next_exp } else { Time::MAX }
    }

    fn stats(&self) -> Stats {
        let size = u64::from(self.options.packet_size);
        Stats { rate: self.is_open.then(|| wire_rate(size, self.interval)), ..self.stats }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("interval", self.interval * 1e-6);
        show("history_rate", self.history_rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> Sender {
        let mut sender = Sender::new(SabulOptions::default(), Load::default());
        let option = codec::encode_option(1472, 25_600);
        sender.handle(Time::ZERO, Channel::Control, &option).expect("the options");
        assert_eq!(sender.poll(Time::ZERO, &mut Vec::new()), Some(Channel::Control));
        sender
    }

    fn feed(sender: &mut Sender, message: Control) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        sender.handle(Time::ZERO, Channel::Control, &bytes).expect("a message");
    }

    fn send(sender: &mut Sender, packets: usize) {
        for _ in 0..packets {
            let at = sender.next_timeout();
            assert_eq!(sender.poll(at, &mut Vec::new()), Some(Channel::Data));
        }
    }

    /// `P' = P * SYN / (P * inc + SYN)`: the rate grows by `inc` packets a SYN interval. At 100 us,
    /// `inc` is 10^ceil(log10(10000 / 100)) / 1000 = 0.1.
    #[test]
    fn without_loss_the_rate_grows_by_a_thousandth_of_its_decade() {
        let mut sender = opened();
        sender.interval = 100.0;
        send(&mut sender, 10);
        feed(&mut sender, Control::Syn(10));
        let (before, after) = (1e4 / 100.0, 1e4 / sender.interval);
        assert!((after - before - 0.1).abs() < 1e-9, "{before} to {after}");
    }

    #[test]
    fn a_new_loss_lengthens_the_interval_by_an_eighth_and_freezes() {
        let mut sender = opened();
        send(&mut sender, 50);
        feed(&mut sender, Control::Err(vec![10, 11]));
        assert_eq!(sender.interval, 10.0 * 1.125);
        // A report of packets sent before the decrease does not decrease again, up to the 15th.
        for _ in 0..14 {
            feed(&mut sender, Control::Err(vec![12]));
            assert_eq!(sender.interval, 10.0 * 1.125);
        }
        feed(&mut sender, Control::Err(vec![13]));
        assert_eq!(sender.interval, 10.0 * 1.125 * 1.125);
        // Packet 10 leaves when it is due, and packet 11 a SYN interval later.
        let at = sender.next_timeout();
        let mut datagram = Vec::new();
        assert_eq!(sender.poll(at, &mut datagram), Some(Channel::Data));
        assert_eq!(codec::decode_data(&datagram), Some((10, 1468)));
        assert_eq!(sender.next_timeout().since(at), SYN_INTERVAL + Span::from_nanos(12_656));
        assert_eq!(sender.stats().lost, 4);
    }

    #[test]
    fn a_loss_rate_above_a_thousandth_stops_the_growth() {
        let mut sender = opened();
        sender.interval = 100.0;
        send(&mut sender, 1000);
        sender.local_err = 2;
        feed(&mut sender, Control::Syn(998));
        assert_eq!((sender.interval, sender.history_rate), (100.0, 0.002 * 0.9));
    }

    #[test]
    fn a_silent_receiver_has_everything_sent_again_after_a_second() {
        let mut sender = opened();
        send(&mut sender, 3);
        let at = Time::ZERO + EXP_INTERVAL;
        let mut seen = Vec::new();
        for step in 0..3 {
            let mut datagram = Vec::new();
            sender.poll(at + Span::from_millis(step), &mut datagram);
            seen.extend(codec::decode_data(&datagram).map(|(seq, _)| seq));
        }
        assert_eq!((seen, sender.stats().timeouts), (vec![0, 1, 2], 1));
    }
}
