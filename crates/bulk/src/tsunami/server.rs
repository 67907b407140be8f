//! The server, which sends: `client_handler` of `server/main.c`, `ttp_accept_retransmit` of
//! `server/protocol.c`.

use super::MAX_BLOCKS;
use super::codec::{self, BlockType, Parameters, Request};
use crate::engine::{Channel, Engine, Load, Stats, wire_rate};
use crate::inbox::{Inbox, ProtocolError};
use crate::options::TsunamiOptions;
use dumbbell_units::{Span, Time};

/// Iterations without a request after which the client's silence is looked at (`main.c`, line 365).
const HEARTBEAT_ITERATIONS: u32 = 2048;
/// Interval at which a silent client counts as an error rate of 100 % (line 371).
const HEARTBEAT_REPORT: Span = Span::from_millis(500);
/// The error rate of a silent client, thousandths of a percent (line 377).
const SILENT: u32 = 100_000;
/// Silence after which the transfer ends (`DEFAULT_HEARTBEAT_TIMEOUT`, `server/config.c`, line 79).
const HEARTBEAT_TIMEOUT: Span = Span::from_secs(15);
/// Maximum bytes of requests that wait, one per IPD: 2000 times what a client sends at a time.
const MAX_WAITING: usize = 1 << 26;
/// Maximum IPD, microseconds (`protocol.c`, line 132).
const MAX_IPD: f64 = 10_000.0;

/// What the server waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Revision,
    Digest,
    Name,
    Parameters,
    Port,
    Sending,
    Done,
}

/// The end that sends data. It waits for the client, which opens the control channel.
#[derive(Debug)]
pub struct Server {
    options: TsunamiOptions,
    load: Load,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// Whether this end has sent its revision.
    has_begun: bool,
    state: State,
    parameters: Parameters,
    block_count: u32,
    /// The last block sent in order.
    block: u32,
    /// IPD of the target rate, and the current one, microseconds.
    ipd_time: f64,
    ipd_current: f64,
    /// The client's last error rate, thousandths of a percent.
    error_rate: u32,
    /// The longest IPD so far.
    ipd_max: f64,
    /// When the next iteration of the main loop is due.
    next: Time,
    last_feedback: Time,
    last_report: Time,
    deadconnection_counter: u32,
    stats: Stats,
}

impl Server {
    /// A server of this load. The client sends the other parameters.
    pub fn new(options: TsunamiOptions, load: Load) -> Server {
        let parameters = super::client::parameters(&options);
        Server {
            options,
            load,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            has_begun: false,
            state: State::Revision,
            parameters,
            block_count: 0,
            block: 0,
            ipd_time: 0.0,
            ipd_current: 0.0,
            error_rate: 0,
            ipd_max: 0.0,
            next: Time::MAX,
            last_feedback: Time::ZERO,
            last_report: Time::ZERO,
            deadconnection_counter: 0,
            stats: Stats::default(),
        }
    }

    /// Answers the client's messages before the transfer; returns whether there was one.
    fn negotiate(&mut self, now: Time) -> Result<bool, ProtocolError> {
        let needed = match self.state {
            State::Sending | State::Done => return Ok(false),
            State::Revision => codec::REVISION.len(),
            State::Digest => codec::DIGEST,
            State::Name => codec::NAME.len(),
            State::Parameters => codec::PARAMETERS,
            State::Port => 2,
        };
        let Some(bytes) = self.inbox.take(needed) else { return Ok(false) };
        self.state = match self.state {
            State::Revision if bytes != codec::REVISION => {
                let value = u64::from(crate::inbox::word(bytes, 0));
                return Err(ProtocolError::Field { field: "the protocol revision", value });
            }
            State::Revision => {
                self.outbox.extend_from_slice(&[0; codec::CHALLENGE]);
                State::Digest
            }
            State::Digest => {
                self.outbox.push(0);
                State::Name
            }
            State::Name => {
                self.outbox.push(0);
                State::Parameters
            }
            State::Parameters => {
                let bytes = bytes.first_chunk().copied().unwrap_or_default();
                self.open_transfer(Parameters::decode(&bytes)?)?;
                State::Port
            }
            _ => {
                (self.next, self.last_feedback, self.last_report) = (now, now, now);
                State::Sending
            }
        };
        Ok(true)
    }

    /// `ttp_open_transfer`, lines 681 and 682: the transfer begins at a third of the target rate.
    fn open_transfer(&mut self, parameters: Parameters) -> Result<(), ProtocolError> {
        if parameters.block_size != u32::from(self.options.block_size) {
            let value = parameters.block_size.into();
            return Err(ProtocolError::Field { field: "the block size", value });
        }
        self.parameters = parameters;
        let size = u64::from(parameters.block_size);
        let blocks = self.load.packets(size).min(u64::from(MAX_BLOCKS));
        self.block_count = blocks as u32;
        let file_size = self.load.bytes.unwrap_or(u64::MAX).min(blocks * size);
        // At least 1 us, where the source would not wait.
        let ipd_time = (1_000_000 * 8 * size / u64::from(parameters.target_rate)).max(1);
        self.ipd_time = ipd_time as f64;
        self.ipd_current = self.ipd_time * 3.0;
        let block_size = self.options.block_size;
        codec::encode_file_info(file_size, block_size, self.block_count, &mut self.outbox);
        Ok(())
    }

    /// `ttp_accept_retransmit`, lines 120 to 132.
    fn on_error_rate(&mut self, error_rate: u32) {
        self.error_rate = error_rate;
        let Parameters { error_rate: threshold, slower, faster, .. } = self.parameters;
        if error_rate > threshold {
            let factor1 = f64::from(slower[0]) / f64::from(slower[1]) - 1.0;
            let above = f64::from(error_rate) - f64::from(threshold);
            let factor2 = (1.0 + above) / (100_000.0 - f64::from(threshold));
            self.ipd_current *= 1.0 + factor1 * factor2;
            self.stats.recoveries += 1;
        } else {
            self.ipd_current *= f64::from(faster[0]) / f64::from(faster[1]);
        }
        self.ipd_current = self.ipd_current.min(MAX_IPD).max(self.ipd_time);
    }

    /// One iteration of the main loop: a request, or the next block. Appends the block that is sent.
    fn iterate(&mut self, now: Time, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        self.ipd_max = self.ipd_max.max(self.ipd_current);
        let mut kind = BlockType::Retransmission;
        if let Some(request) = self.inbox.take_array() {
            (self.last_feedback, self.last_report) = (now, now);
            self.deadconnection_counter = 0;
            match Request::decode(&request)? {
                Request::Stop => {
                    self.state = State::Done;
                    self.stats.completed = self.load.bytes.map(|_| now);
                    return Ok(());
                }
                Request::ErrorRate(rate) => self.on_error_rate(rate),
                Request::Restart(block) if (1..=self.block_count).contains(&block) => {
                    self.block = block;
                }
                Request::Retransmit(block) if (1..=self.block_count).contains(&block) => {
                    self.stats.retransmitted += 1;
                    self.send(block, kind, out);
                }
                // A block that does not exist: the source warns.
                Request::Restart(_) | Request::Retransmit(_) => {}
            }
        } else if self.load.is_open(now) {
            self.block = (self.block + 1).min(self.block_count);
            if self.block == self.block_count {
                kind = BlockType::Terminate;
            } else {
                kind = BlockType::Original;
            }
            self.send(self.block, kind, out);
        }
        self.check_heartbeat(now);
        // The end of the file is repeated after ten of the longest delays (line 417).
        let terminates = kind == BlockType::Terminate;
        let wait = self.ipd_current + if terminates { 10.0 * self.ipd_max } else { 0.0 };
        // A late iteration is made up for by at most one delay, as the source's `ipd_time` does.
        let due = self.next.max(now - Span::from_nanos((self.ipd_current * 1e3) as u64));
        self.next = due + Span::from_nanos((wait * 1e3) as u64);
        Ok(())
    }

    fn send(&mut self, block: u32, kind: BlockType, out: &mut Vec<u8>) {
        self.stats.sent += 1;
        codec::encode_header(block, kind, out);
        out.resize(codec::HEADER + usize::from(self.options.block_size), 0);
    }

    /// `main.c`, lines 365 to 397.
    fn check_heartbeat(&mut self, now: Time) {
        self.deadconnection_counter += 1;
        if self.deadconnection_counter <= HEARTBEAT_ITERATIONS {
            return;
        }
        self.deadconnection_counter = 0;
        if now.since(self.last_report) < HEARTBEAT_REPORT {
            return;
        }
        self.last_report = now;
        self.stats.timeouts += 1;
        self.on_error_rate(SILENT);
        if now.since(self.last_feedback) > HEARTBEAT_TIMEOUT {
            self.state = State::Done;
        }
    }
}

impl Engine for Server {
    fn handle(&mut self, now: Time, channel: Channel, bytes: &[u8]) -> Result<(), ProtocolError> {
        if channel == Channel::Control && self.state != State::Done {
            self.inbox.push(bytes);
            while self.negotiate(now)? {}
            if self.inbox.len() > MAX_WAITING {
                return Err(ProtocolError::TooMuch(self.inbox.len()));
            }
        }
        Ok(())
    }

    fn poll(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Channel> {
        if !self.has_begun {
            self.has_begun = true;
            self.outbox.splice(..0, codec::REVISION);
        }
        if !self.outbox.is_empty() {
            out.append(&mut self.outbox);
            return Some(Channel::Control);
        }
        while self.state == State::Sending && now >= self.next {
            if self.iterate(now, out).is_err() {
                self.state = State::Done;
            }
            if !out.is_empty() {
                return Some(Channel::Data);
            }
        }
        None
    }

    fn next_timeout(&self) -> Time {
        match self.state {
            _ if !self.has_begun => Time::ZERO,
            State::Sending => self.next,
            _ => Time::MAX,
        }
    }

    fn stats(&self) -> Stats {
        let size = u64::from(self.options.block_size) + codec::HEADER as u64;
        let rate = wire_rate(size, self.ipd_current);
        Stats { rate: (self.state == State::Sending).then_some(rate), ..self.stats }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("ipd_current", self.ipd_current * 1e-6);
        show("error_rate", f64::from(self.error_rate) * 1e-5);
        show("block", f64::from(self.block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server whose client has negotiated the default options.
    fn opened(load: Load) -> Server {
        let mut server = Server::new(TsunamiOptions::default(), load);
        let mut bytes = codec::REVISION.to_vec();
        server.poll(Time::ZERO, &mut Vec::new()).expect("the revision");
        bytes.extend_from_slice(&[0; codec::DIGEST]);
        bytes.extend_from_slice(codec::NAME);
        super::super::client::parameters(&TsunamiOptions::default()).encode(&mut bytes);
        bytes.extend_from_slice(&[0; 2]);
        server.handle(Time::ZERO, Channel::Control, &bytes).expect("the client's messages");
        server.poll(Time::ZERO, &mut Vec::new()).expect("the answers");
        server
    }

    /// `ipd_time` = 8 * 1024 * 10^6 / 650 * 10^6 = 12 us; `ipd_current` begins at three of them. With
    /// an error rate of 50 % it grows by the factor 1 + (25/24 - 1) * 42501/92500.
    #[test]
    fn the_delay_follows_the_error_rate_as_in_the_source() {
        let mut server = opened(Load::default());
        assert_eq!((server.ipd_time, server.ipd_current), (12.0, 36.0));
        server.on_error_rate(7500);
        assert_eq!(server.ipd_current, 30.0);
        server.on_error_rate(50_000);
        let expected = 30.0 * (1.0 + (1.0 / 24.0) * (42_501.0 / 92_500.0));
        assert!((server.ipd_current - expected).abs() < 1e-9, "{}", server.ipd_current);
        for _ in 0..20 {
            server.on_error_rate(0);
        }
        assert_eq!(server.ipd_current, 12.0, "not faster than the target");
    }

    #[test]
    fn the_last_block_is_repeated_until_the_client_stops() {
        let mut server = opened(Load { bytes: Some(2500), stop: None });
        let mut blocks = Vec::new();
        for _ in 0..5 {
            let (at, mut datagram) = (server.next_timeout(), Vec::new());
            assert_eq!(server.poll(at, &mut datagram), Some(Channel::Data));
            blocks.extend(codec::decode_block(&datagram, 1024));
        }
        use BlockType::{Original, Terminate};
        let ends = [(3, Terminate); 3];
        assert_eq!(blocks[..2], [(1, Original), (2, Original)]);
        assert_eq!(blocks[2..], ends);
        let mut stop = Vec::new();
        Request::Stop.encode(&mut stop);
        let at = server.next_timeout();
        server.handle(at, Channel::Control, &stop).expect("a request");
        assert_eq!(server.poll(at, &mut Vec::new()), None);
        assert_eq!(server.stats().completed, Some(at));
    }

    #[test]
    fn a_request_takes_the_place_of_a_block() {
        let mut server = opened(Load::default());
        let mut requests = Vec::new();
        Request::Retransmit(7).encode(&mut requests);
        Request::ErrorRate(0).encode(&mut requests);
        server.handle(Time::ZERO, Channel::Control, &requests).expect("requests");
        let mut datagram = Vec::new();
        assert_eq!(server.poll(Time::ZERO, &mut datagram), Some(Channel::Data));
        let retransmission = Some((7, BlockType::Retransmission));
        assert_eq!(codec::decode_block(&datagram, 1024), retransmission);
        // The error rate costs a delay in which nothing is sent.
        assert_eq!(server.poll(server.next_timeout(), &mut Vec::new()), None);
        assert_eq!(server.ipd_current, 30.0);
    }
}
