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

use super::scheduler::{Backlog, Scheduler, SchedulerState};
use super::stream::DataStream;
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
struct SubflowSender {
    sender: Sender,
    /// Data numbers of the packets from the subflow's first unacknowledged one on.
    dsns: VecDeque<u32>,
    /// The subflow's number of the first of them.
    first_seq: u32,
    timeouts: u32,
    /// The others were given what it holds, and it was offered nothing since.
    reinjected: bool,
    episodes: u32,
    losses: LossIntervals,
    /// The next packet that a redundant scheduler sends here.
    redundant_next: u32,
    /// When it last had another subflow penalised.
    penalised_at: Time,
}

impl SubflowSender {
    /// Gives it a packet.
    #[inline]
    fn enqueue(&mut self, number: u32) {
        self.dsns.push_back(number);
        self.sender.enqueue(1);
    }

    /// Forgets what is acknowledged, and notes losses.
    #[inline]
    fn on_acknowledged(&mut self) {
        let (una, _) = self.sender.sequence_range();
        let acked = una.wrapping_sub(self.first_seq) as usize;
        self.dsns.drain(..acked.min(self.dsns.len()));
        self.first_seq = una;
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
    subflows: Vec<SubflowSender>,
    stream: DataStream,
    scheduler: SchedulerState,
    stack: Arc<Stack>,
    /// Subflows that may have something to send, by bit.
    pending_mask: u32,
    /// Data may have to be given out.
    needs_scheduling: bool,
    port: u8,
    reinjected: u64,
    opportunistic: u64,
    penalties: u64,
    /// The packet that was last repeated opportunistically.
    last_opportunistic: Option<u32>,
}

impl MultipathSender {
    /// The most subflows of a connection.
    pub const MAX_SUBFLOWS: usize = 32;

    /// A sender that connects at `config.start`.
    pub fn new(config: MultipathConfig) -> MultipathSender {
        let MultipathConfig { stack, algorithms, scheduler, start, stop, bytes, app_rates } =
            config;
        let branch = |(at, algorithm)| SubflowSender {
            sender: Sender::subflow(SenderConfig {
                stack: Arc::clone(&stack),
                algorithm,
                start: if at == 0 { start } else { Time::MAX },
                stop: None,
                bytes: None,
                app_rates: Vec::new(),
            }),
            dsns: VecDeque::new(),
            first_seq: 0,
            timeouts: 0,
            reinjected: false,
            episodes: 0,
            losses: LossIntervals::default(),
            redundant_next: 0,
            penalised_at: start,
        };
        MultipathSender {
            subflows: algorithms.into_iter().enumerate().map(branch).collect(),
            stream: DataStream::new(bytes, &app_rates, stop, stack.mss),
            scheduler: SchedulerState::new(scheduler),
            stack,
            pending_mask: 0,
            needs_scheduling: true,
            port: 0,
            reinjected: 0,
            opportunistic: 0,
            penalties: 0,
            last_opportunistic: None,
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
        self.subflows[usize::from(subflow)].sender.stats()
    }

    /// Shows the internals of a subflow's algorithm.
    pub fn inspect(&self, subflow: u8, show: &mut dyn FnMut(Metric)) {
        self.subflows[usize::from(subflow)].sender.inspect(show);
    }

    /// Tells a subflow of the others.
    #[inline]
    fn share_siblings(&mut self, port: usize) {
        let (before, rest) = self.subflows.split_at_mut(port);
        let Some((branch, after)) = rest.split_first_mut() else { return };
        let others = before.iter().chain(after.iter());
        branch.sender.set_siblings(others.filter_map(|other| {
            let delivered = other.sender.path().delivered;
            other.sender.sibling_view(other.losses.between(delivered))
        }));
    }

    /// The first subflow is open: so is the connection, and the others join.
    fn open(&mut self, now: Time, window: u32) {
        self.stream.open(now, window);
        for (at, branch) in self.subflows.iter_mut().enumerate().skip(1) {
            branch.sender.connect(now);
            self.pending_mask |= 1 << at;
        }
    }

    /// Gives data to subflows that have room.
    fn schedule(&mut self, now: Time) {
        for (at, branch) in self.subflows.iter().enumerate() {
            self.pending_mask |= u32::from(branch.sender.next_timeout() <= now) << at;
        }
        if self.scheduler.scheduler == Scheduler::Redundant {
            return self.schedule_redundant(now);
        }
        loop {
            let again = self.stream.has_reinjections();
            let waiting = self.stream.unsent(now);
            if !again && waiting == 0 {
                return;
            }
            let window = self.stream.window_end - self.stream.una;
            let load = Backlog { unsent: waiting, window };
            let senders = self.subflows.iter().map(|branch| &branch.sender);
            let Some((at, room)) = self.scheduler.select_subflow(now, senders, load) else {
                return;
            };
            self.subflows[at].reinjected = false;
            if again {
                if let Some(number) = self.stream.next_reinjection(at as u8) {
                    self.reinjected += 1;
                    self.enqueue_on(at, number);
                }
                continue;
            }
            let open = self.stream.window_end.saturating_sub(self.stream.next_seq);
            let packets = room.min(waiting).min(open);
            if packets == 0 {
                if self.scheduler.is_opportunistic() {
                    self.optimize_rcv_buf(now, at);
                }
                return;
            }
            for number in self.stream.next_seq..self.stream.next_seq + packets {
                self.enqueue_on(at, number);
            }
            self.stream.next_seq += packets;
        }
    }

    #[inline]
    fn enqueue_on(&mut self, at: usize, number: u32) {
        self.stream.record_path(number, at);
        self.subflows[at].enqueue(number);
        self.pending_mask |= 1 << at;
    }

    /// Gives every packet to every subflow that has room.
    fn schedule_redundant(&mut self, now: Time) {
        let waiting = self.stream.unsent(now);
        let end =
            self.stream.window_end.min(self.stream.next_seq + waiting).max(self.stream.next_seq);
        for at in 0..self.subflows.len() {
            let branch = &mut self.subflows[at];
            let from = branch.redundant_next.max(self.stream.una);
            let packets = branch.sender.cwnd_space(now).min(end.saturating_sub(from));
            branch.redundant_next = from + packets;
            self.stream.next_seq = self.stream.next_seq.max(branch.redundant_next);
            for number in from..from + packets {
                self.enqueue_on(at, number);
            }
        }
    }

    /// The receive window is full, though this subflow has room (mptcp_rcv_buf_optimization).
    fn optimize_rcv_buf(&mut self, now: Time, at: usize) {
        self.scheduler.on_blocked();
        let (head, srtt) = (self.stream.una, self.subflows[at].srtt());
        let holds = |other: usize| self.stream.path_mask_of_una() & 1 << other != 0;
        let held_here = holds(at);
        let mut others = (0..self.subflows.len()).filter(|&other| other != at);
        let Some(slow) = others.find(|&other| holds(other)) else { return };
        let may = now.since(self.subflows[at].penalised_at) >= srtt;
        if may
            && srtt < self.subflows[slow].srtt()
            && self.subflows[slow].sender.on_receive_window_penalty(now)
        {
            self.subflows[at].penalised_at = now;
            self.penalties += 1;
        }
        let slow = &self.subflows[slow];
        let worth = slow.sender.cwnd_and_ssthresh().0 <= 4 || srtt * 4 < slow.srtt();
        if worth && !held_here && self.last_opportunistic != Some(head) {
            self.last_opportunistic = Some(head);
            self.opportunistic += 1;
            self.enqueue_on(at, head);
        }
    }

    /// Puts the connection's part on a segment that a subflow sends.
    #[inline]
    fn add_dss(&self, port: usize, mut segment: Segment) -> Segment {
        if segment.flags.contains(Flags::SYN) {
            return segment;
        }
        let branch = &self.subflows[port];
        let number = branch.dsns[(segment.number - branch.first_seq) as usize];
        segment.set_dsn(number);
        segment.size = self.stream.payload(number) + self.stack.header;
        segment
    }

    /// After a timeout of a subflow, others are to send what it holds. After further ones there is
    /// nothing new: meanwhile it is given nothing (MPTCP_REINJECT marks each packet in Linux).
    fn reinject(&mut self, port: usize) {
        let branch = &mut self.subflows[port];
        branch.timeouts = branch.sender.timeouts();
        branch.on_acknowledged();
        let repeated = std::mem::replace(&mut branch.reinjected, true);
        let redundant = self.scheduler.scheduler == Scheduler::Redundant;
        if self.subflows.len() > 1 && !repeated && !redundant {
            self.stream.reinject(port as u8, self.subflows[port].dsns.iter().copied());
            self.needs_scheduling = true;
        }
    }
}

impl MultipathSender {
    /// The number of ports, one per subflow.
    pub fn ports(&self) -> u8 {
        self.subflows.len() as u8
    }

    /// Processes a segment that arrived at `now` on a subflow's port.
    pub fn handle_on_port(&mut self, now: Time, port: u8, segment: &Segment) {
        let at = usize::from(port);
        self.pending_mask |= 1 << port;
        self.share_siblings(at);
        if !segment.flags.contains(Flags::SYN) {
            self.stream.acknowledge(now, segment.data_ack(), segment.window);
        }
        let branch = &mut self.subflows[at];
        branch.sender.handle(now, &segment.without_dss());
        branch.on_acknowledged();
        if !self.stream.is_open() && branch.sender.is_established() {
            self.open(now, segment.window);
        }
    }

    /// The port of the segment that [`poll`](Endpoint::poll) returned last.
    pub fn outgoing_port(&self) -> u8 {
        self.port
    }
}

impl Endpoint for MultipathSender {
    type Packet = Segment;

    fn handle(&mut self, now: Time, segment: &Segment) {
        self.handle_on_port(now, 0, segment);
    }

    fn poll(&mut self, now: Time) -> Option<Segment> {
        loop {
            if std::mem::take(&mut self.needs_scheduling) {
                self.schedule(now);
            }
            if self.pending_mask == 0 {
                self.needs_scheduling = true;
                return None;
            }
            let port = self.pending_mask.trailing_zeros() as usize;
            let branch = &mut self.subflows[port];
            let segment = branch.sender.poll(now);
            if branch.sender.timeouts() != branch.timeouts {
                self.reinject(port);
            }
            if let Some(segment) = segment {
                self.port = port as u8;
                return Some(self.add_dss(port, segment));
            }
            self.pending_mask &= self.pending_mask - 1;
        }
    }

    fn next_timeout(&self) -> Time {
        let timeouts = self.subflows.iter().map(|branch| branch.sender.next_timeout());
        timeouts.fold(self.stream.wake_at, Time::min)
    }
}
