//! The sending side of a multipath connection: assigns data to subflows as the scheduler says. With the
//! schedulers of the MPTCP project's Linux, v0.95, also as there:
//!
//! - Reinjection: after a retransmission timeout of a subflow, its packets are also sent on others,
//!   once. The subflow gets no new data until its losses are acknowledged.
//! - Opportunistic retransmission (`mptcp_rcv_buf_optimization`): the receive window is full and a
//!   subflow has space. It retransmits the packet that blocks the window, if its RTT is less than a
//!   quarter of that of the subflow that has the packet, or that subflow's window is at most four
//!   packets.
//! - Penalisation: the window of that slower subflow is halved, if its state is Open, at most once per
//!   RTT of the faster one.

use super::default_scheduler::{Retransmit, end_of_fragment};
use super::scheduler::{Backlog, Scheduler, SchedulerState};
use super::stream::DataStream;
use crate::{Flags, Segment, Sender, SenderConfig, Stack};
use dumbbell_cc::filters::LossIntervals;
use dumbbell_cc::{Algorithm, Metric, SenderStats};
use dumbbell_net::Endpoint;
use dumbbell_units::{Rate, Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Parameters of a [`MultipathSender`].
pub struct MultipathConfig {
    /// TCP behaviours of the subflows ([`Stack::of_subflow`]).
    pub stack: Arc<Stack>,
    /// Congestion control of each subflow.
    pub algorithms: Vec<Algorithm>,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Time of the first subflow's first SYN.
    pub start: Time,
    /// Time after which no new data is sent; `None` for no limit.
    pub stop: Option<Time>,
    /// Payload bytes of the flow; `None` for an unlimited flow.
    pub bytes: Option<u64>,
    /// The application's write rates, each from a time after the handshake on. Empty: the
    /// application always has data to send.
    pub app_rates: Vec<(Span, Rate)>,
}

/// Counters of the connection; subflows have their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultipathStats {
    /// Payload bytes acknowledged in order.
    pub acked_bytes: u64,
    /// Packets reinjected on another subflow after a timeout.
    pub reinjected: u64,
    /// Opportunistic retransmissions.
    pub opportunistic: u64,
    /// Penalisations.
    pub penalties: u64,
    /// When all data was acknowledged; `None` before, and for unlimited flows.
    pub completed: Option<Time>,
}

/// A subflow's sender and the connection's state of it.
struct SubflowSender {
    sender: Sender,
    /// DSNs of the packets enqueued, from the subflow's first unacknowledged one on.
    dsns: VecDeque<u32>,
    /// The subflow's sequence number of the first of them.
    first_seq: u32,
    timeouts: u32,
    /// Its packets were reinjected, and it got no new data since.
    reinjected: bool,
    episodes: u32,
    losses: LossIntervals,
    /// The next packet that the redundant scheduler sends here.
    redundant_next: u32,
    /// When another subflow was last penalised on its behalf.
    penalised_at: Time,
}

impl SubflowSender {
    /// Enqueues a packet.
    #[inline]
    fn enqueue(&mut self, number: u32) {
        self.dsns.push_back(number);
        self.sender.enqueue(1);
    }

    /// Removes acknowledged packets and records losses.
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
    /// Subflows that may have packets to send, as bits.
    pending_mask: u32,
    /// The scheduler may have packets to assign.
    needs_scheduling: bool,
    port: u8,
    reinjected: u64,
    opportunistic: u64,
    penalties: u64,
    /// The packet last retransmitted opportunistically.
    last_opportunistic: Option<u32>,
}

impl MultipathSender {
    /// Maximum number of subflows.
    pub const MAX_SUBFLOWS: usize = 32;

    /// A sender that connects at `config.start`.
    pub fn new(config: MultipathConfig) -> MultipathSender {
        let MultipathConfig { stack, algorithms, scheduler, start, stop, bytes, app_rates } =
            config;
        let subflow = |(at, algorithm)| SubflowSender {
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
            subflows: algorithms.into_iter().enumerate().map(subflow).collect(),
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

    /// Counters and current values of a subflow.
    pub fn subflow_stats(&self, subflow: u8) -> SenderStats {
        self.subflows[usize::from(subflow)].sender.stats()
    }

    /// Reports the internal variables of a subflow's algorithm.
    pub fn inspect(&self, subflow: u8, show: &mut dyn FnMut(Metric)) {
        self.subflows[usize::from(subflow)].sender.inspect(show);
    }

    /// Updates what a subflow's algorithm sees of its siblings.
    #[inline]
    fn share_siblings(&mut self, port: usize) {
        let (before, rest) = self.subflows.split_at_mut(port);
        let Some((subflow, after)) = rest.split_first_mut() else { return };
        let others = before.iter().chain(after.iter());
        subflow.sender.set_siblings(others.filter_map(|other| {
            let delivered = other.sender.path().delivered;
            other.sender.sibling_view(other.losses.between(delivered))
        }));
    }

    /// Data was acknowledged for the first time: the other subflows join.
    #[cold]
    fn join(&mut self, now: Time) {
        for (at, subflow) in self.subflows.iter_mut().enumerate().skip(1) {
            subflow.sender.join(now);
            self.pending_mask |= 1 << at;
        }
    }

    /// New packets that the application has written, as far as the connection's send buffer is known.
    fn unsent(&mut self, now: Time) -> u32 {
        let unsent = self.stream.unsent(now);
        let Some(default) = &mut self.scheduler.default else { return unsent };
        let written = default.written(self.stream.una, self.stack.mss);
        unsent.min(written.saturating_sub(self.stream.next_seq))
    }

    /// Assigns packets to subflows.
    fn schedule(&mut self, now: Time) {
        for (at, subflow) in self.subflows.iter().enumerate() {
            self.pending_mask |= u32::from(subflow.sender.next_timeout() <= now) << at;
        }
        if self.scheduler.scheduler == Scheduler::Redundant {
            return self.schedule_redundant(now);
        }
        self.retransmit(now);
        loop {
            let reinjects = self.stream.has_reinjections();
            let unsent = self.unsent(now);
            if !reinjects && unsent == 0 {
                return;
            }
            let DataStream { una, next_seq, window_end, .. } = self.stream;
            let open = window_end.saturating_sub(next_seq);
            let backlog = Backlog { unsent, window: window_end - una, open, next_seq };
            let senders = self.subflows.iter().map(|subflow| &subflow.sender);
            let Some((at, space)) = self.scheduler.select_subflow(now, senders, backlog) else {
                return;
            };
            self.subflows[at].reinjected = false;
            if reinjects {
                if let Some(number) = self.stream.next_reinjection(at as u8) {
                    self.reinjected += 1;
                    self.enqueue_on(at, number);
                }
                continue;
            }
            let packets = space.min(unsent).min(open);
            if packets == 0 {
                if self.scheduler.is_opportunistic() {
                    self.optimize_rcv_buf(now, at);
                }
                return;
            }
            for number in next_seq..next_seq + packets {
                self.enqueue_on(at, number);
            }
            self.stream.advance(next_seq + packets);
        }
    }

    #[inline]
    fn enqueue_on(&mut self, at: usize, number: u32) {
        self.stream.record_path(number, at);
        self.subflows[at].enqueue(number);
        self.pending_mask |= 1 << at;
    }

    /// Retransmits on other subflows at a timeout of Linux's default scheduler.
    fn retransmit(&mut self, now: Time) {
        let Some(default) = &mut self.scheduler.default else { return };
        match default.retransmit(now, self.subflows.iter().map(|subflow| &subflow.sender)) {
            Retransmit::Nothing => {}
            Retransmit::Fragment(at) => {
                let end = end_of_fragment(self.stream.una, u32::from(self.stack.mss));
                for number in self.stream.una..end.min(self.stream.snd_nxt) {
                    self.reinjected += 1;
                    self.enqueue_on(at, number);
                }
            }
            Retransmit::All => self.reinjected += u64::from(self.stream.rewind()),
        }
    }

    /// Assigns every packet to every subflow with space.
    fn schedule_redundant(&mut self, now: Time) {
        let unsent = self.stream.unsent(now);
        let end =
            self.stream.window_end.min(self.stream.next_seq + unsent).max(self.stream.next_seq);
        for at in 0..self.subflows.len() {
            let subflow = &mut self.subflows[at];
            let from = subflow.redundant_next.max(self.stream.una);
            let packets = subflow.sender.cwnd_space(now).min(end.saturating_sub(from));
            subflow.redundant_next = from + packets;
            self.stream.advance(self.stream.next_seq.max(subflow.redundant_next));
            for number in from..from + packets {
                self.enqueue_on(at, number);
            }
        }
    }

    /// The receive window is full and subflow `at` has space (`mptcp_rcv_buf_optimization`).
    fn optimize_rcv_buf(&mut self, now: Time, at: usize) {
        self.scheduler.on_blocked();
        let (head, srtt) = (self.stream.una, self.subflows[at].srtt());
        let was_assigned = |other: usize| self.stream.path_mask_of_una() & 1 << other != 0;
        let has_it = was_assigned(at);
        let mut others = (0..self.subflows.len()).filter(|&other| other != at);
        let Some(slow) = others.find(|&other| was_assigned(other)) else { return };
        let may_penalise = now.since(self.subflows[at].penalised_at) >= srtt;
        if may_penalise
            && srtt < self.subflows[slow].srtt()
            && self.subflows[slow].sender.on_receive_window_penalty(now)
        {
            self.subflows[at].penalised_at = now;
            self.penalties += 1;
        }
        let slow = &self.subflows[slow];
        let is_worthwhile = slow.sender.cwnd_and_ssthresh().0 <= 4 || srtt * 4 < slow.srtt();
        if is_worthwhile && !has_it && self.last_opportunistic != Some(head) {
            self.last_opportunistic = Some(head);
            self.opportunistic += 1;
            self.enqueue_on(at, head);
        }
    }

    /// Adds the DSS option and the payload size to a subflow's segment.
    #[inline]
    fn add_dss(&self, port: usize, mut segment: Segment) -> Segment {
        if segment.is_control() {
            return segment;
        }
        let subflow = &self.subflows[port];
        let number = subflow.dsns[(segment.number - subflow.first_seq) as usize];
        segment.set_dsn(number);
        if self.stream.is_last(number) {
            segment.flags = segment.flags.with(Flags::PSH);
        }
        segment.size = self.stream.payload(number) + self.stack.header;
        segment
    }

    /// Reinjects a subflow's packets after its timeout. Further timeouts add nothing, as it got no new
    /// data since (Linux marks each packet `MPTCP_REINJECT`).
    fn reinject(&mut self, port: usize) {
        let subflow = &mut self.subflows[port];
        subflow.timeouts = subflow.sender.timeouts();
        subflow.on_acknowledged();
        let already_reinjected = std::mem::replace(&mut subflow.reinjected, true);
        let reinjects =
            !matches!(self.scheduler.scheduler, Scheduler::Default | Scheduler::Redundant);
        if self.subflows.len() > 1 && !already_reinjected && reinjects {
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
            let una = self.stream.una;
            self.stream.acknowledge(now, segment.data_ack(), segment.window());
            if una == 0 && self.stream.una > 0 {
                self.join(now);
            }
            if let Some(default) = &mut self.scheduler.default {
                default.on_heard(at, now);
                if self.stream.una > una {
                    default.on_data_acknowledged(now, self.stream.una < self.stream.snd_nxt);
                }
            }
        }
        let subflow = &mut self.subflows[at];
        subflow.sender.handle(now, &segment.without_dss());
        subflow.on_acknowledged();
        if !self.stream.is_open() && subflow.sender.is_established() {
            self.stream.open(now, segment.window());
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
                if std::mem::replace(&mut self.needs_scheduling, true) {
                    continue;
                }
                return None;
            }
            let port = self.pending_mask.trailing_zeros() as usize;
            let subflow = &mut self.subflows[port];
            let segment = subflow.sender.poll(now);
            if subflow.sender.timeouts() != subflow.timeouts {
                self.reinject(port);
            }
            if let Some(segment) = segment {
                self.port = port as u8;
                let is_new =
                    !segment.is_control() && !segment.flags.contains(Flags::RETRANSMISSION);
                if let Some(default) = &mut self.scheduler.default
                    && is_new
                    && self.subflows[port].sender.has_sent_burst()
                {
                    default.on_burst(port, segment.number + 1);
                }
                return Some(self.add_dss(port, segment));
            }
            if let Some(default) = &mut self.scheduler.default {
                self.needs_scheduling |= default.on_sent(port, &self.subflows[port].sender);
            }
            self.pending_mask &= self.pending_mask - 1;
        }
    }

    fn next_timeout(&self) -> Time {
        let timeouts = self.subflows.iter().map(|subflow| subflow.sender.next_timeout());
        let retransmit_at = self.scheduler.default.as_ref().and_then(|it| it.retransmit_at);
        timeouts.chain(retransmit_at).fold(self.stream.wake_at, Time::min)
    }
}
