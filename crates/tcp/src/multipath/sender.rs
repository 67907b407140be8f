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
use super::stream::{DataStream, Payload};
use super::subflow_sender::SubflowSender;
use crate::segment::MAX_WINDOW;
use crate::{Flags, Segment, Sender, SenderConfig, Stack};
use dumbbell_cc::{Algorithm, Metric, SenderStats};
use dumbbell_net::Endpoint;
use dumbbell_units::{Rate, Span, Time};
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
    /// The payload last retransmitted opportunistically.
    last_opportunistic: Option<Payload>,
}

impl MultipathSender {
    /// Maximum number of subflows.
    pub const MAX_SUBFLOWS: usize = 32;

    /// A sender that connects at `config.start`.
    pub fn new(config: MultipathConfig) -> MultipathSender {
        let MultipathConfig { stack, algorithms, scheduler, start, stop, bytes, app_rates } =
            config;
        let subflow = |(at, algorithm)| {
            let sender = Sender::subflow(SenderConfig {
                stack: Arc::clone(&stack),
                algorithm,
                start: if at == 0 { start } else { Time::MAX },
                stop: None,
                bytes: None,
                app_rates: Vec::new(),
            });
            SubflowSender::new(sender, scheduler, start)
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
            acked_bytes: self.stream.una,
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

    /// Payload bytes that a subflow delivered, in any order.
    pub fn subflow_delivered_bytes(&self, subflow: u8) -> u64 {
        let subflow = &self.subflows[usize::from(subflow)];
        subflow.sender.delivered_bytes().saturating_sub(subflow.shortfall())
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
            let delivered = other.sender.delivered();
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

    /// New data that the application has written, as far as the connection's send buffer is known, bytes.
    fn unsent(&mut self, now: Time) -> u64 {
        let unsent = self.stream.unsent(now);
        let Some(default) = &mut self.scheduler.default else { return unsent };
        let written = default.written(self.stream.una);
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
            let selected = self.scheduler.select_subflow(now, self.subflows.iter(), backlog);
            let Some((at, space)) = selected else { return };
            self.subflows[at].reinjected = false;
            if reinjects {
                if let Some(payload) = self.stream.next_reinjection(at as u8) {
                    self.reinjected += 1;
                    self.enqueue_on(at, payload);
                }
                continue;
            }
            if self.assign(at, space.min(unsent).min(open), unsent) == 0 {
                if self.scheduler.is_opportunistic() {
                    self.optimize_rcv_buf(now, at);
                }
                return;
            }
        }
    }

    /// Assigns `len` of `unsent` bytes to a subflow; returns how many it gets. With Linux's default
    /// scheduler data ends anywhere, with the others with a full packet.
    #[inline]
    fn assign(&mut self, at: usize, len: u64, unsent: u64) -> u64 {
        let next = self.stream.next_seq;
        if self.scheduler.default.is_some() {
            self.subflows[at].write(next, next + len);
            self.pending_mask |= 1 << at;
            self.stream.advance(next + len);
            return len;
        }
        let mss = u64::from(self.stack.mss);
        let len = if len < unsent { len - len % mss } else { len };
        self.enqueue_packets(at, next, next + len);
        self.stream.advance(next + len);
        len
    }

    /// Enqueues data from `dsn` up to `end` as packets.
    #[inline]
    fn enqueue_packets(&mut self, at: usize, mut dsn: u64, end: u64) {
        while dsn < end {
            let len = u64::from(self.stack.mss).min(end - dsn) as u16;
            self.enqueue_on(at, Payload { dsn, len, is_pushed: false });
            dsn += u64::from(len);
        }
    }

    #[inline]
    fn enqueue_on(&mut self, at: usize, payload: Payload) {
        self.stream.record_path(payload, at);
        self.subflows[at].enqueue(payload);
        self.pending_mask |= 1 << at;
    }

    /// Retransmits on other subflows at a timeout of Linux's default scheduler.
    fn retransmit(&mut self, now: Time) {
        let Some(default) = &mut self.scheduler.default else { return };
        match default.retransmit(now, self.subflows.iter().map(|subflow| &subflow.sender)) {
            Retransmit::Nothing => {}
            Retransmit::Fragment(at) => {
                let una = self.stream.una;
                let end = end_of_fragment(una).min(self.stream.snd_nxt);
                self.reinjected += (end - una).div_ceil(u64::from(self.stack.mss));
                self.subflows[at].write(una, end);
                self.pending_mask |= 1 << at;
            }
            Retransmit::All => self.reinjected += self.stream.rewind(),
        }
    }

    /// Assigns all data to every subflow with space.
    fn schedule_redundant(&mut self, now: Time) {
        let written = self.stream.next_seq + self.stream.unsent(now);
        let end = self.stream.window_end.min(written).max(self.stream.next_seq);
        let mss = u64::from(self.stack.mss);
        for at in 0..self.subflows.len() {
            let subflow = &mut self.subflows[at];
            let from = subflow.redundant_next.max(self.stream.una);
            let space = u64::from(subflow.sender.cwnd_space(now)) * mss;
            let mut len = space.min(end.saturating_sub(from));
            if from + len < written {
                len -= len % mss;
            }
            subflow.redundant_next = from + len;
            self.stream.advance(self.stream.next_seq.max(from + len));
            self.enqueue_packets(at, from, from + len);
        }
    }

    /// The receive window is full and subflow `at` has space (`mptcp_rcv_buf_optimization`).
    fn optimize_rcv_buf(&mut self, now: Time, at: usize) {
        self.scheduler.on_blocked();
        let Some((head, paths)) = self.stream.first_assigned() else { return };
        let srtt = self.subflows[at].srtt();
        let was_assigned = |other: usize| paths & 1 << other != 0;
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
        let payload = self.subflows[port].payload(segment.number);
        segment.set_dsn(payload.dsn);
        if self.stream.is_last(payload) || payload.is_pushed {
            segment.flags = segment.flags.with(Flags::PSH);
        }
        segment.size = payload.len + self.stack.header;
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
            self.stream.reinject(port as u8, self.subflows[port].payloads());
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
        let una = self.stream.una;
        let (next, window) = segment.data_ack(una, &self.stack);
        if !segment.flags.contains(Flags::SYN) {
            self.stream.acknowledge(now, next, window);
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
        subflow.on_window(window);
        let packets = match self.scheduler.default {
            Some(_) => (window / u64::from(self.stack.mss)).min(MAX_WINDOW.into()) as u32,
            None => MAX_WINDOW,
        };
        subflow.sender.handle(now, &segment.without_dss(packets));
        subflow.on_acknowledged();
        if !self.stream.is_open() && subflow.sender.is_established() {
            self.stream.open(now, window);
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
            let segment = subflow.poll(now);
            if subflow.sender.timeouts() != subflow.timeouts {
                self.reinject(port);
            }
            if let Some(segment) = segment {
                self.port = port as u8;
                let is_new =
                    !segment.is_control() && !segment.flags.contains(Flags::RETRANSMISSION);
                if let Some(default) = &mut self.scheduler.default
                    && is_new
                    && self.subflows[port].sender.is_between_bursts()
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
