//! The client, which receives: `command_get` of `client/command.c`, `ttp_repeat_retransmit`,
//! `ttp_request_retransmit` and `ttp_update_stats` of `client/protocol.c`.

use super::codec::{self, BlockType, Parameters, Request};
use crate::engine::{Channel, Engine, Stats};
use crate::inbox::{Inbox, ProtocolError};
use crate::options::TsunamiOptions;
use crate::received::{Arrival, Received};
use dumbbell_units::{Span, Time};

/// Interval of requests and reports (`UPDATE_PERIOD`, `include/tsunami-client.h`, line 109).
const UPDATE_PERIOD: Span = Span::from_micros(350_000);
/// They are looked at after every 50th block (`command.c`, line 586).
const UPDATE_BLOCKS: u64 = 50;
/// Missing blocks from which on the transfer restarts (`MAX_RETRANSMISSION_BUFFER`, line 107).
const MAX_RETRANSMISSION_BUFFER: usize = 2048;
/// Maximum entries of the table of missing blocks (`protocol.c`, line 444).
const MAX_TABLE: usize = 32 * MAX_RETRANSMISSION_BUFFER;
/// Blocks from the first missing one on that are kept.
const WINDOW: u64 = 1 << 24;

/// The parameters that the client sends for these options.
pub(super) fn parameters(options: &TsunamiOptions) -> Parameters {
    Parameters {
        block_size: options.block_size.into(),
        target_rate: u32::try_from(options.target_rate_bps).unwrap_or(u32::MAX),
        error_rate: options.error_rate,
        slower: [options.slower_num, options.slower_den],
        faster: [options.faster_num, options.faster_den],
    }
}

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Revision,
    Challenge,
    Authenticated,
    NameAccepted,
    FileInfo,
    Receiving,
    Done,
}

/// The end that receives data and opens the control channel.
#[derive(Debug)]
pub struct Client {
    options: TsunamiOptions,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// Whether this end has sent its revision.
    has_begun: bool,
    state: State,
    file_size: u64,
    /// Blocks are numbered from 1 to this.
    block_count: u32,
    /// Block `n` is packet `n - 1`.
    received: Received,
    blocks_left: u32,
    next_block: u32,
    /// Missing blocks to ask for (`rexmit->table`).
    table: Vec<u32>,
    restart_pending: bool,
    restart_lastidx: u32,
    restart_wireclearidx: u32,
    on_wire_estimate: u32,
    /// Smoothed error rate, thousandths of a percent.
    error_rate: f64,
    total_blocks: u64,
    this_blocks: u64,
    this_retransmits: usize,
    this_time: Time,
    stats: Stats,
}

impl Client {
    /// A client that opens the transfer when it is polled.
    pub fn new(options: TsunamiOptions) -> Client {
        Client {
            options,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            has_begun: false,
            state: State::Revision,
            file_size: 0,
            block_count: 0,
            received: Received::new(WINDOW),
            blocks_left: 0,
            next_block: 1,
            table: Vec::new(),
            restart_pending: false,
            restart_lastidx: 0,
            restart_wireclearidx: 0,
            on_wire_estimate: 0,
            error_rate: 0.0,
            total_blocks: 0,
            this_blocks: 0,
            this_retransmits: 0,
            this_time: Time::ZERO,
            stats: Stats::default(),
        }
    }

    /// Answers the server's messages before the transfer; returns whether there was one.
    fn negotiate(&mut self, now: Time) -> Result<bool, ProtocolError> {
        let needed = match self.state {
            State::Receiving | State::Done => return Ok(false),
            State::Revision => codec::REVISION.len(),
            State::Challenge => codec::CHALLENGE,
            State::Authenticated | State::NameAccepted => 1,
            State::FileInfo => codec::FILE_INFO,
        };
        let Some(bytes) = self.inbox.take(needed) else { return Ok(false) };
        self.state = match self.state {
            State::Revision if bytes != codec::REVISION => {
                let value = u64::from(crate::inbox::word(bytes, 0));
                return Err(ProtocolError::Field { field: "the protocol revision", value });
            }
            State::Revision => State::Challenge,
            State::Challenge => {
                self.outbox.extend_from_slice(&[0; codec::DIGEST]);
                State::Authenticated
            }
            State::Authenticated | State::NameAccepted if bytes[0] != 0 => {
                let value = bytes[0].into();
                return Err(ProtocolError::Field { field: "the result", value });
            }
            State::Authenticated => {
                self.outbox.extend_from_slice(codec::NAME);
                State::NameAccepted
            }
            State::NameAccepted => {
                parameters(&self.options).encode(&mut self.outbox);
                State::FileInfo
            }
            _ => {
                let info = bytes.first_chunk().copied().unwrap_or_default();
                self.open(now, &info)?;
                State::Receiving
            }
        };
        Ok(true)
    }

    /// Lines 230 to 260: the file, and an estimate of the blocks on the wire at 500 ms.
    fn open(&mut self, now: Time, info: &[u8; codec::FILE_INFO]) -> Result<(), ProtocolError> {
        let (file_size, blocks) = codec::decode_file_info(info, self.options.block_size)?;
        (self.file_size, self.block_count, self.blocks_left) = (file_size, blocks, blocks);
        let bits = 8 * u64::from(self.options.block_size);
        let estimate = u64::from(parameters(&self.options).target_rate) / 2 / bits;
        self.on_wire_estimate = estimate.min(blocks.into()) as u32;
        self.this_time = now;
        self.outbox.extend_from_slice(&[0; 2]); // the port, which the environment has
        Ok(())
    }

    fn got_block(&self, block: u32) -> bool {
        block == 0 || self.received.contains(u64::from(block) - 1)
    }

    /// The last block of the gapless section from the start (`gapless_to_block`).
    fn gapless_to_block(&self) -> u32 {
        self.received.next() as u32
    }

    /// `ttp_request_retransmit`: `false` if the table is full.
    fn request_retransmit(&mut self, block: u32) -> bool {
        if self.table.len() >= MAX_TABLE {
            return false;
        }
        if !self.got_block(block) {
            self.table.push(block);
        }
        true
    }

    /// `command.c`, lines 451 to 609.
    fn on_block(&mut self, now: Time, block: u32, kind: BlockType) {
        if self.state != State::Receiving || !(1..=self.block_count).contains(&block) {
            return;
        }
        self.total_blocks += 1;
        let got = self.got_block(block);
        if (!got || kind == BlockType::Terminate || self.restart_pending)
            && self.store(block, got)
            && !self.is_stale(block, kind)
        {
            self.advance(block, kind);
        }
        let is_due = self.total_blocks.is_multiple_of(UPDATE_BLOCKS)
            && now.since(self.this_time) > UPDATE_PERIOD;
        if is_due && self.state == State::Receiving {
            self.repeat_retransmit();
            self.update_stats(now);
        }
    }

    /// Records a block; `false` if it is too far beyond the first missing one.
    fn store(&mut self, block: u32, got: bool) -> bool {
        if got {
            return true;
        }
        if self.received.insert(u64::from(block) - 1) == Arrival::Beyond {
            return false;
        }
        self.blocks_left -= 1;
        let size = u64::from(self.options.block_size);
        self.stats.delivered += (self.file_size - (u64::from(block) - 1) * size).min(size);
        true
    }

    /// Whether a block was on the wire when the transfer restarted (lines 490 to 494).
    fn is_stale(&self, block: u32, kind: BlockType) -> bool {
        self.restart_pending
            && kind != BlockType::Terminate
            && block > self.restart_lastidx
            && block <= self.restart_wireclearidx
    }

    /// Asks for the blocks before this one that are missing, and ends the transfer if none is left.
    fn advance(&mut self, block: u32, kind: BlockType) {
        for missing in self.next_block..block {
            if !self.request_retransmit(missing) {
                break;
            }
        }
        if kind == BlockType::Original {
            self.stats.lost += u64::from(block.saturating_sub(self.next_block));
            self.next_block = block + 1;
        }
        if self.restart_pending && self.next_block >= self.restart_lastidx {
            self.restart_pending = false;
        }
        if kind != BlockType::Terminate {
            return;
        }
        if self.blocks_left == 0 {
            self.state = State::Done;
            Request::Stop.encode(&mut self.outbox);
            return;
        }
        for missing in self.gapless_to_block() + 1..self.block_count {
            if !self.request_retransmit(missing) {
                break;
            }
        }
        self.repeat_retransmit();
    }

    /// `ttp_repeat_retransmit`: asks for the missing blocks, or with too many of them for a restart.
    fn repeat_retransmit(&mut self) {
        let last = self.table.last().copied();
        let received = &self.received;
        let mut count = 0;
        // Entries after the limit are dropped with the table, as there.
        self.table.retain(|&block| {
            let is_wanted = !received.contains(u64::from(block) - 1);
            let is_kept = is_wanted && count < MAX_RETRANSMISSION_BUFFER;
            count += usize::from(is_kept);
            is_kept
        });
        self.this_retransmits = count;
        if count < MAX_RETRANSMISSION_BUFFER {
            for &block in &self.table {
                Request::Retransmit(block).encode(&mut self.outbox);
            }
            return;
        }
        let block = (self.gapless_to_block() + 1).min(self.block_count);
        Request::Restart(block).encode(&mut self.outbox);
        self.restart_pending = true;
        self.restart_lastidx = last.unwrap_or(block);
        let clear = self.restart_lastidx.saturating_add(self.on_wire_estimate);
        self.restart_wireclearidx = clear.min(self.block_count);
        self.table.clear();
        self.next_block = block;
    }

    /// `ttp_update_stats`: the error rate is the share of requests among blocks and requests, times
    /// 50,000, smoothed.
    fn update_stats(&mut self, now: Time) {
        let retransmits = self.this_retransmits as f64;
        let blocks = (self.total_blocks - self.this_blocks) as f64;
        let fraction = retransmits / (1.0 + retransmits + blocks);
        let feedback = f64::from(self.options.history) / 100.0;
        self.error_rate = feedback * self.error_rate + (1.0 - feedback) * 500.0 * 100.0 * fraction;
        Request::ErrorRate(self.error_rate as u32).encode(&mut self.outbox);
        self.this_blocks = self.total_blocks;
        self.this_retransmits = 0;
        self.this_time = now;
    }
}

impl Engine for Client {
    fn handle(&mut self, now: Time, channel: Channel, bytes: &[u8]) -> Result<(), ProtocolError> {
        match channel {
            Channel::Data => {
                if let Some((block, kind)) = codec::decode_block(bytes, self.options.block_size) {
                    self.on_block(now, block, kind);
                }
            }
            Channel::Control if !matches!(self.state, State::Receiving | State::Done) => {
                self.inbox.push(bytes);
                while self.negotiate(now)? {}
            }
            // The server sends nothing more.
            Channel::Control => {}
        }
        Ok(())
    }

    fn poll(&mut self, _now: Time, out: &mut Vec<u8>) -> Option<Channel> {
        if !self.has_begun {
            self.has_begun = true;
            self.outbox.splice(..0, codec::REVISION);
        }
        (!self.outbox.is_empty()).then(|| {
            out.append(&mut self.outbox);
            Channel::Control
        })
    }

    fn next_timeout(&self) -> Time {
        if self.has_begun { Time::MAX } else { Time::ZERO }
    }

    fn stats(&self) -> Stats {
        let size = u64::from(self.options.block_size);
        Stats { received: (self.received.next() * size).min(self.file_size), ..self.stats }
    }

    fn inspect(&self, _show: &mut dyn FnMut(&'static str, f64)) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiving(bytes: u64) -> Client {
        let mut client = Client::new(TsunamiOptions::default());
        client.poll(Time::ZERO, &mut Vec::new());
        let mut bytes_of_server = codec::REVISION.to_vec();
        bytes_of_server.extend_from_slice(&[0; codec::CHALLENGE + 2]);
        codec::encode_file_info(bytes, 1024, bytes.div_ceil(1024) as u32, &mut bytes_of_server);
        client
            .handle(Time::ZERO, Channel::Control, &bytes_of_server)
            .expect("the server's messages");
        client.poll(Time::ZERO, &mut Vec::new()).expect("the answers");
        client
    }

    fn requests(client: &mut Client) -> Vec<Request> {
        let mut bytes = Vec::new();
        client.poll(Time::ZERO, &mut bytes);
        let requests = bytes.chunks_exact(codec::REQUEST).map(|bytes| {
            Request::decode(bytes.first_chunk().expect("12 bytes")).expect("a request")
        });
        requests.collect()
    }

    /// 3 of 53 blocks are missing: 50,000 * 3 / (1 + 3 + 50), of which three quarters count at first.
    #[test]
    fn missing_blocks_and_the_error_rate_are_reported_after_350_ms() {
        let mut client = receiving(1 << 20);
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        for block in (1..=53).filter(|block| !(10..13).contains(block)) {
            client.on_block(at(if block < 53 { 10 } else { 351 }), block, BlockType::Original);
        }
        use Request::{ErrorRate, Retransmit};
        let expected = 0.75 * 50_000.0 * 3.0 / 54.0;
        assert_eq!(
            requests(&mut client),
            [Retransmit(10), Retransmit(11), Retransmit(12), ErrorRate(expected as u32)]
        );
    }

    #[test]
    fn with_2048_missing_blocks_the_transfer_restarts_at_the_first() {
        let mut client = receiving(1 << 30);
        for block in (1..=2).chain(2051..2098) {
            client.on_block(Time::ZERO, block, BlockType::Original);
        }
        let at = Time::ZERO + Span::from_millis(351);
        client.on_block(at, 2098, BlockType::Original);
        assert_eq!(requests(&mut client)[0], Request::Restart(3));
        assert!(client.restart_pending && client.next_block == 3);
    }

    #[test]
    fn the_transfer_ends_when_the_last_block_arrives_and_none_is_missing() {
        let mut client = receiving(2500);
        client.on_block(Time::ZERO, 1, BlockType::Original);
        client.on_block(Time::ZERO, 3, BlockType::Terminate);
        assert_eq!(requests(&mut client), [Request::Retransmit(2), Request::Retransmit(2)]);
        client.on_block(Time::ZERO, 2, BlockType::Retransmission);
        client.on_block(Time::ZERO, 3, BlockType::Terminate);
        assert_eq!(requests(&mut client), [Request::Stop]);
        assert_eq!((client.stats().received, client.stats().delivered), (2500, 2500));
    }
}
