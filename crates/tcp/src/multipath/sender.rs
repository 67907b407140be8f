//! The sending side of a multipath connection.
//!
//! What happens to data besides being scheduled, as in Linux's Multipath TCP v0.95:
//!
//! - After a retransmission timeout of a subflow, all that it holds is given to the others too
//!   (reinjection), once, and it gets nothing new until what it lost is acknowledged.
//! - If the receive window is full while a subflow has room, it repeats the packet that the window
//!   waits for (opportunistic retransmission), if it is at least four times as fast as the subflow
//!   that holds it or that one's window is four packets or less; and the slower subflow's window
//!   is halved (penalisation), if nothing is amiss there, at most once in an RTT of the faster.

use super::scheduler::{Choice, Load, Scheduler};
use super::stream::Stream;
use crate::{Flags, Segment, Sender, SenderConfig, Stack};
use dumbbell_cc::filters::LossIntervals;
use dumbbell_cc::{Algorithm, Metric, SenderStats};
use dumbbell_net::Endpoint;
use dumbbell_units::{Rate, Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a connection is to send, and how.
pub struct MultipathConfig {
    /// TCP behaviours of the subflows ([`Stack::of_subflow`]).
    pub stack: Arc<Stack>,
    /// Congestion control of each subflow.
    pub algorithms: Vec<Algorithm>,
    /// Which subflow takes the next packets.
    pub scheduler: Scheduler,
    /// When the first subflow's SYN leaves.
    pub start: Time,
    /// From when on no new data is sent.
    pub stop: Option<Time>,
    /// Bytes to send; without it, as many as there is time for.
    pub bytes: Option<u64>,
    /// The rates at which the application writes, from how long after the beginning on; without
    /// any, data is always waiting.
    pub app_rates: Vec<(Span, Rate)>,
}

/// Counters of the connection, beside those of its subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultipathStats {
    /// Payload bytes acknowledged in order.
    pub acked_bytes: u64,
    /// Packets sent on another subflow after a timeout.
    pub reinjected: u64,
    /// Packets repeated because the receive window waited for them.
    pub opportunistic: u64,
    /// Reductions of slow subflows for blocking the receive window.
    pub penalties: u64,
    /// When everything had been acknowledged, for flows of finite length.
    pub completed: Option<Time>,
}

/// A subflow's sender and what the connection keeps of it.
struct Branch {
    sender: Sender,
    /// Data numbers of the packets from the subflow's first unacknowledged one on.
    numbers: VecDeque<u32>,
    /// The subflow's number of the first of them.
    first: u32,
    timeouts: u32,
    /// The others were given what it holds, and it was offered nothing since.
    reinjected: bool,
    episodes: u32,
    losses: LossIntervals,
    /// The next packet that a redundant scheduler sends here.
    cursor: u32,
    /// When it last had another subflow penalised.
    penalised_at: Time,
}

impl Branch {
    /// Gives it a packet.
    #[inline]
    fn assign(&mut self, number: u32) {
        self.numbers.push_back(number);
        self.sender.assign(1);
    }

    /// Forgets what is acknowledged, and notes losses.
    #[inline]
    fn settle(&mut self) {
        let (una, _) = self.sender.span();
        let acked = una.wrapping_sub(self.first) as usize;
        self.numbers.drain(..acked.min(self.numbers.len()));
        self.first = una;
        let episodes = self.sender.episodes();
        if episodes != self.episodes {
            self.episodes = episodes;
            self.losses.on_loss(self.sender.path().delivered);
        }
    }

    fn srtt(&self) -> Span {
        self.sender.path().srtt.unwrap_or(Span::MAX)
    }
}

/// The sending side of a multipath connection.
pub struct MultipathSender {
    branches: Vec<Branch>,
    stream: Stream,
    choice: Choice,
    stack: Arc<Stack>,
    /// Subflows that may have something to send, by bit.
    pending: u32,
    /// Data may have to be given out.
    hungry: bool,
    port: u8,
    reinjected: u64,
    opportunistic: u64,
    penalties: u64,
    /// The packet that was last repeated opportunistically.
    repeated: Option<u32>,
}

impl MultipathSender {
    /// The most subflows of a connection.
    pub const MAX_SUBFLOWS: usize = 32;

    /// A sender that connects at `config.start`.
    pub fn new(config: MultipathConfig) -> MultipathSender {
        let MultipathConfig { stack, algorithms, scheduler, start, stop, bytes, app_rates } =
            config;
        let branch = |(at, algorithm)| Branch {
            sender: Sender::subflow(SenderConfig {
                stack: Arc::clone(&stack),
                algorithm,
                start: if at == 0 { start } else { Time::MAX },
                stop: None,
                bytes: None,
                app_rates: Vec::new(),
            }),
            numbers: VecDeque::new(),
            first: 0,
            timeouts: 0,
            reinjected: false,
            episodes: 0,
            losses: LossIntervals::default(),
            cursor: 0,
            penalised_at: start,
        };
        MultipathSender {
            branches: algorithms.into_iter().enumerate().map(branch).collect(),
            stream: Stream::new(bytes, &app_rates, stop, stack.mss),
            choice: Choice::new(scheduler),
            stack,
            pending: 0,
            hungry: true,
            port: 0,
            reinjected: 0,
            opportunistic: 0,
            penalties: 0,
            repeated: None,
        }
    }

    /// Counters of the connection.
    pub fn stats(&self) -> MultipathStats {
        MultipathStats {
            acked_bytes: self.stream.acked_bytes(),
            reinjected: self.reinjected,
            opportunistic: self.opportunistic,
            penalties: self.penalties,
            completed: self.stream.completed,
        }
    }

    /// Counters and present values of a subflow.
    pub fn subflow_stats(&self, subflow: u8) -> SenderStats {
        self.branches[usize::from(subflow)].sender.stats()
    }

    /// Shows the internals of a subflow's algorithm.
    pub fn inspect(&self, subflow: u8, show: &mut dyn FnMut(Metric)) {
        self.branches[usize::from(subflow)].sender.inspect(show);
    }

    /// Tells a subflow of the others.
    #[inline]
    fn publish(&mut self, port: usize) {
        let (before, rest) = self.branches.split_at_mut(port);
        let Some((branch, after)) = rest.split_first_mut() else { return };
        let others = before.iter().chain(after.iter());
        branch.sender.set_siblings(others.filter_map(|other| {
            let delivered = other.sender.path().delivered;
            other.sender.publish(other.losses.between(delivered))
        }));
    }

    /// The first subflow is open: so is the connection, and the others join.
    fn open(&mut self, now: Time, window: u32) {
        self.stream.open(now, window);
        for (at, branch) in self.branches.iter_mut().enumerate().skip(1) {
            branch.sender.connect(now);
            self.pending |= 1 << at;
        }
    }

    /// Gives data to subflows that have room.
    fn feed(&mut self, now: Time) {
        for (at, branch) in self.branches.iter().enumerate() {
            self.pending |= u32::from(branch.sender.next_timeout() <= now) << at;
        }
        if self.choice.scheduler == Scheduler::Redundant {
            return self.feed_all(now);
        }
        loop {
            let again = self.stream.has_again();
            let waiting = self.stream.waiting(now);
            if !again && waiting == 0 {
                return;
            }
            let window = self.stream.window_end - self.stream.una;
            let load = Load { waiting, window };
            let senders = self.branches.iter().map(|branch| &branch.sender);
            let Some((at, room)) = self.choice.choose(now, senders, load) else { return };
            self.branches[at].reinjected = false;
            if again {
                if let Some(number) = self.stream.take_again(at as u8) {
                    self.reinjected += 1;
                    self.give(at, number);
                }
                continue;
            }
            let open = self.stream.window_end.saturating_sub(self.stream.next);
            let packets = room.min(waiting).min(open);
            if packets == 0 {
                if self.choice.is_opportunistic() {
                    self.unblock(now, at);
                }
                return;
            }
            for number in self.stream.next..self.stream.next + packets {
                self.give(at, number);
            }
            self.stream.next += packets;
        }
    }

    #[inline]
    fn give(&mut self, at: usize, number: u32) {
        self.stream.note_holder(number, at);
        self.branches[at].assign(number);
        self.pending |= 1 << at;
    }

    /// Gives every packet to every subflow that has room.
    fn feed_all(&mut self, now: Time) {
        let waiting = self.stream.waiting(now);
        let end = self.stream.window_end.min(self.stream.next + waiting).max(self.stream.next);
        for at in 0..self.branches.len() {
            let branch = &mut self.branches[at];
            let from = branch.cursor.max(self.stream.una);
            let packets = branch.sender.room(now).min(end.saturating_sub(from));
            branch.cursor = from + packets;
            self.stream.next = self.stream.next.max(branch.cursor);
            for number in from..from + packets {
                self.give(at, number);
            }
        }
    }

    /// The receive window is full, though this subflow has room (mptcp_rcv_buf_optimization).
    fn unblock(&mut self, now: Time, at: usize) {
        self.choice.blocked();
        let (head, srtt) = (self.stream.una, self.branches[at].srtt());
        let holds = |other: usize| self.stream.holders_of_first() & 1 << other != 0;
        let held_here = holds(at);
        let mut others = (0..self.branches.len()).filter(|&other| other != at);
        let Some(slow) = others.find(|&other| holds(other)) else { return };
        let may = now.since(self.branches[at].penalised_at) >= srtt;
        if may
            && srtt < self.branches[slow].srtt()
            && self.branches[slow].sender.on_receive_window_penalty(now)
        {
            self.branches[at].penalised_at = now;
            self.penalties += 1;
        }
        let slow = &self.branches[slow];
        let worth = slow.sender.window().0 <= 4 || srtt * 4 < slow.srtt();
        if worth && !held_here && self.repeated != Some(head) {
            self.repeated = Some(head);
            self.opportunistic += 1;
            self.give(at, head);
        }
    }

    /// Puts the connection's part on a segment that a subflow sends.
    #[inline]
    fn sign(&self, port: usize, mut segment: Segment) -> Segment {
        if segment.flags.contains(Flags::SYN) {
            return segment;
        }
        let branch = &self.branches[port];
        let number = branch.numbers[(segment.number - branch.first) as usize];
        segment.set_data_number(number);
        segment.size = self.stream.payload(number) + self.stack.header;
        segment
    }

    /// After a timeout of a subflow, others are to send what it holds. After further ones there is
    /// nothing new: meanwhile it is given nothing (MPTCP_REINJECT marks each packet in Linux).
    fn reinject(&mut self, port: usize) {
        let branch = &mut self.branches[port];
        branch.timeouts = branch.sender.timeouts();
        branch.settle();
        let repeated = std::mem::replace(&mut branch.reinjected, true);
        let redundant = self.choice.scheduler == Scheduler::Redundant;
        if self.branches.len() > 1 && !repeated && !redundant {
            self.stream.reinject(port as u8, self.branches[port].numbers.iter().copied());
            self.hungry = true;
        }
    }
}

impl Endpoint for MultipathSender {
    type Packet = Segment;

    fn handle(&mut self, now: Time, segment: &Segment) {
        self.handle_at(now, 0, segment);
    }

    fn poll(&mut self, now: Time) -> Option<Segment> {
        loop {
            if std::mem::take(&mut self.hungry) {
                self.feed(now);
            }
            if self.pending == 0 {
                self.hungry = true;
                return None;
            }
            let port = self.pending.trailing_zeros() as usize;
            let branch = &mut self.branches[port];
            let segment = branch.sender.poll(now);
            if branch.sender.timeouts() != branch.timeouts {
                self.reinject(port);
            }
            if let Some(segment) = segment {
                self.port = port as u8;
                return Some(self.sign(port, segment));
            }
            self.pending &= self.pending - 1;
        }
    }

    fn next_timeout(&self) -> Time {
        let timeouts = self.branches.iter().map(|branch| branch.sender.next_timeout());
        timeouts.fold(self.stream.wake, Time::min)
    }

    fn ports(&self) -> u8 {
        self.branches.len() as u8
    }

    fn handle_at(&mut self, now: Time, port: u8, segment: &Segment) {
        let at = usize::from(port);
        self.pending |= 1 << port;
        self.publish(at);
        if !segment.flags.contains(Flags::SYN) {
            self.stream.acknowledge(now, segment.data_ack(), segment.window);
        }
        let branch = &mut self.branches[at];
        branch.sender.handle(now, &segment.without_signal());
        branch.settle();
        if !self.stream.is_open() && branch.sender.is_established() {
            self.open(now, segment.window);
        }
    }

    fn port(&self) -> u8 {
        self.port
    }
}
