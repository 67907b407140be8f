//! The sender: `QUANTAnet_rbudpSender_c`.

use super::MAX_BLOCK;
use super::codec::{self, HEADER};
use crate::engine::{Channel, Engine, Load, Stats, wire_rate};
use crate::inbox::{Inbox, ProtocolError};
use crate::options::RbudpOptions;
use dumbbell_units::{Span, Time};

/// What the sender does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for the receiver's first byte.
    Waiting,
    /// It is to send the length of the next block.
    NextBlock,
    /// It sends packet `next` of `missing`, of a blast that began at this time.
    Blast { started: Time, next: usize },
    /// It waits for the bitmap.
    Bitmap,
    /// Everything has arrived, or the flow was stopped.
    Done,
}

/// The end that sends data. It waits for the receiver, which opens the control channel.
#[derive(Debug)]
pub struct Sender {
    options: RbudpOptions,
    load: Load,
    inbox: Inbox,
    state: State,
    /// Bytes of the blocks before this one, and of this one.
    sent_before: u64,
    block: u64,
    /// Blasts of this block so far (`endOfUdp.round`).
    round: u32,
    /// What the current blast sends (`hashTable`).
    missing: Vec<u32>,
    /// Interval between packets (`usecsPerPacket`).
    interval: Span,
    stats: Stats,
}

impl Sender {
    /// A sender of this load.
    pub fn new(options: RbudpOptions, load: Load) -> Sender {
        Sender {
            interval: usecs_per_packet(&options),
            options,
            load,
            inbox: Inbox::default(),
            state: State::Waiting,
            sent_before: 0,
            block: 0,
            round: 0,
            missing: Vec::new(),
            stats: Stats::default(),
        }
    }

    fn payload(&self) -> u64 {
        u64::from(self.options.packet_size)
    }

    fn packets(&self) -> u64 {
        self.block.div_ceil(self.payload())
    }

    /// Begins the next block and returns its length; `None` if there is none.
    fn begin_block(&mut self, now: Time) -> Option<u64> {
        self.sent_before += self.block;
        let left = self.load.bytes.map_or(self.options.buffer, |bytes| bytes - self.sent_before);
        self.block = left.min(MAX_BLOCK);
        if self.block == 0 || !self.load.is_open(now) {
            (self.block, self.state) = (0, State::Done);
            if self.load.bytes == Some(self.sent_before) {
                self.stats.completed.get_or_insert(now);
            }
            return None;
        }
        self.round = 0;
        self.missing.clear();
        self.missing.extend(0..self.packets() as u32);
        self.state = State::Blast { started: now, next: 0 };
        Some(self.block)
    }

    /// Reads the bitmap, and begins the next blast or block.
    fn on_bitmap(&mut self, now: Time) -> bool {
        let packets = self.packets();
        let Some(bitmap) = self.inbox.take(codec::bitmap_len(packets)) else { return false };
        self.missing.clear();
        self.missing.extend(codec::missing_packets(bitmap, packets).map(|packet| packet as u32));
        self.stats.lost += self.missing.len() as u64;
        self.round += 1;
        self.state = match self.missing.is_empty() {
            true => State::NextBlock,
            false => {
                self.stats.recoveries += 1;
                State::Blast { started: now, next: 0 }
            }
        };
        if self.missing.is_empty() && self.load.bytes == Some(self.sent_before + self.block) {
            self.stats.completed.get_or_insert(now);
            self.state = State::Done;
        }
        true
    }

    /// When packet `next` of a blast leaves.
    fn due(&self, started: Time, next: usize) -> Time {
        started + Span::from_nanos(self.interval.as_nanos() * next as u64)
    }

    fn send_packet(&mut self, started: Time, next: usize, out: &mut Vec<u8>) {
        let number = self.missing[next];
        self.state = State::Blast { started, next: next + 1 };
        self.stats.sent += 1;
        self.stats.retransmitted += u64::from(self.round > 0);
        let left = self.block - u64::from(number) * self.payload();
        out.extend_from_slice(&number.to_be_bytes());
        out.resize(HEADER + left.min(self.payload()) as usize, 0);
    }
}

/// `usecsPerPacket = 8 * payloadSize * 1000 / sendRate`, with the rate in kbit/s, in integers. At least
/// 1 us, where QUANTA would send without waiting.
fn usecs_per_packet(options: &RbudpOptions) -> Span {
    let kbps = (options.rate_bps / 1000).max(1);
    Span::from_micros((8 * u64::from(options.packet_size) * 1000 / kbps).max(1))
}

impl Engine for Sender {
    fn handle(&mut self, now: Time, channel: Channel, bytes: &[u8]) -> Result<(), ProtocolError> {
        if channel == Channel::Data {
            return Ok(());
        }
        self.inbox.push(bytes);
        if self.state == State::Waiting && self.inbox.take(1).is_some() {
            self.state = State::NextBlock;
        }
        if self.state == State::Bitmap {
            self.on_bitmap(now);
        }
        match self.inbox.len() {
            waiting if waiting > codec::bitmap_len(self.packets()) => {
                Err(ProtocolError::TooMuch(waiting))
            }
            _ => Ok(()),
        }
    }

    fn poll(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Channel> {
        match self.state {
            State::NextBlock => {
                let length = self.begin_block(now)?;
                out.extend_from_slice(&length.to_be_bytes());
                Some(Channel::Control)
            }
            State::Blast { next, .. } if next == self.missing.len() => {
                self.state = State::Bitmap;
                out.extend_from_slice(&codec::encode_end(self.round));
                Some(Channel::Control)
            }
            State::Blast { started, next } if now >= self.due(started, next) => {
                self.send_packet(started, next, out);
                Some(Channel::Data)
            }
            _ => None,
        }
    }

    fn next_timeout(&self) -> Time {
        match self.state {
            State::Blast { started, next } if next < self.missing.len() => self.due(started, next),
            State::Blast { .. } | State::NextBlock => Time::ZERO,
            _ => Time::MAX,
        }
    }

    fn stats(&self) -> Stats {
        let size = self.payload() + HEADER as u64;
        let rate = wire_rate(size, self.interval.as_nanos() as f64 / 1e3);
        let is_blasting = matches!(self.state, State::Blast { .. });
        Stats { rate: is_blasting.then_some(rate), ..self.stats }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("round", f64::from(self.round));
        show("missing", self.missing.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_a_whole_number_of_microseconds() {
        let interval =
            |rate_bps| usecs_per_packet(&RbudpOptions { rate_bps, ..RbudpOptions::default() });
        // 8 * 1460 * 1000 / 600000 = 19.47
        assert_eq!(interval(600_000_000), Span::from_micros(19));
        assert_eq!(interval(100_000_000_000), Span::from_micros(1));
    }

    #[test]
    fn a_blast_after_the_first_sends_what_the_bitmap_lacks() {
        let load = Load { bytes: Some(3000), stop: None };
        let mut sender = Sender::new(RbudpOptions::default(), load);
        sender.handle(Time::ZERO, Channel::Control, &[0]).expect("the receiver is ready");
        let blast = |sender: &mut Sender| {
            let (mut lengths, mut out) = (Vec::new(), Vec::new());
            let mut now = Time::ZERO;
            while now < Time::MAX {
                while let Some(channel) = sender.poll(now, &mut out) {
                    lengths.push((channel, out.len()));
                    out.clear();
                }
                now = sender.next_timeout();
            }
            lengths
        };
        use Channel::{Control, Data};
        let first = blast(&mut sender);
        assert_eq!(first, [(Control, 8), (Data, 1464), (Data, 1464), (Data, 84), (Control, 8)]);
        sender.handle(Time::ZERO, Channel::Control, &[0, 0b1111_1101]).expect("the bitmap");
        assert_eq!(blast(&mut sender), [(Data, 1464), (Control, 8)]);
        sender.handle(Time::ZERO, Channel::Control, &[1, 255]).expect("the bitmap");
        let stats = sender.stats();
        assert_eq!((stats.sent, stats.retransmitted, stats.lost), (4, 1, 1));
        assert!(stats.completed.is_some() && blast(&mut sender).is_empty());
    }
}
