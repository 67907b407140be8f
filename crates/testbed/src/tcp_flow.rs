//! A flow over the kernel's TCP or Multipath TCP, with the sockets of both ends.

use crate::algorithm::{is_bpf_program, kernel_name, sets_pacing_rate};
use crate::bpf_state::BpfState;
use crate::conversation::Conversation;
use crate::error::TestbedError;
use crate::host::Side;
use crate::info::{self, TcpInfo};
use crate::tcp_socket::{MAX_UNSENT, limit_unsent};
use dumbbell_net::Application;
use dumbbell_sim::{FlowPlan, FlowRow, FlowSpec, Internals, SeriesRow};
use dumbbell_tcp::Dialogue;
use dumbbell_units::{Span, Time};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, connect, recv, send, shutdown,
    sockopt,
};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

/// Port on which receivers listen.
pub(crate) const RECEIVER_PORT: u16 = 5001;
/// Maximum data per write, bytes.
pub(crate) const IO_BYTES: usize = 1 << 18;
/// How long before its stop a flow begins to write little at a time. Until the stop it sends what was
/// written before.
const STOP_NOTICE: Span = Span::from_secs(1);
/// How long what it then writes at a time lasts. A writer that is no later than this limits nothing.
const LAST_WRITES: Span = Span::from_millis(5);

/// State of a flow's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowState {
    /// Before the start time.
    Waiting,
    /// Connecting, or sending data.
    Sending,
    /// All data is written, and the sending direction is shut down.
    Written,
    /// The receiver has read all data and closed its side.
    Complete,
    /// The connection failed with this errno; 0 if the receiver closed early.
    Failed(i32),
}

/// A TCP connection with the sockets of both ends.
pub(crate) struct TcpFlow {
    pub(crate) number: u32,
    plan: FlowPlan,
    pub(crate) stop: Option<Time>,
    pub(crate) bytes: u64,
    /// The rate schedule of the application, if it has one.
    application: Option<Application>,
    /// The application, if it is one that waits for what it sent.
    conversation: Option<Conversation>,
    is_paced: bool,
    /// The name of the kernel's algorithm.
    kernel_cc: String,
    /// The state of an eBPF program, once it was seen.
    bpf_state: Option<BpfState>,
    mss: u64,
    /// The listener's address.
    peer: SocketAddrV4,
    /// `None` if the connection shares a listener with other transfers of its flow.
    pub(crate) listener: Option<OwnedFd>,
    pub(crate) sender: OwnedFd,
    pub(crate) receiver: Option<OwnedFd>,
    pub(crate) state: FlowState,
    pub(crate) completed: Option<Time>,
    /// When the connection was first seen to be established; write rates count from then on.
    opened_at: Option<Time>,
    written: u64,
    received: u64,
    /// Sum and number of the smoothed RTT samples, s: of the flow, then of each subflow.
    rtt_sums: Vec<(f64, u64)>,
    /// Whether the flow was sampled after its completion.
    completion_sampled: bool,
}

/// The sockets of a flow, each opened in its host's namespace.
pub(crate) struct FlowSockets {
    pub(crate) sender: OwnedFd,
    pub(crate) listener: OwnedFd,
}

pub(crate) fn address(side: Side, path: u32, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(side.address(path).into(), port)
}

impl TcpFlow {
    pub(crate) fn new(
        number: u32,
        flow: &FlowSpec,
        plan: FlowPlan,
        sockets: FlowSockets,
        dialogue: Option<Box<dyn Dialogue>>,
    ) -> TcpFlow {
        if dialogue.is_some() {
            // As servers do: Nagle's algorithm would hold back the end of a message (RFC 9293, 3.7.4).
            let _ = sockopt::set_tcp_nodelay(&sockets.sender, true);
        }
        TcpFlow {
            stop: flow.stop_ns.map(Time::from_nanos),
            bytes: flow.bytes.unwrap_or(u64::MAX),
            application: Application::from_rates(&flow.write_rates(), flow.stack.mss),
            conversation: dialogue.map(Conversation::new),
            listener: Some(sockets.listener),
            ..TcpFlow::endless(number, flow, plan, sockets.sender)
        }
    }

    /// One of the transfers of a flow that consists of many, with the pair of ports and the start of
    /// `plan`. Its sender connects to the flow's listener at `peer`.
    pub(crate) fn transfer(
        number: u32,
        flow: &FlowSpec,
        plan: FlowPlan,
        bytes: u64,
        sender: OwnedFd,
        peer: SocketAddrV4,
    ) -> TcpFlow {
        TcpFlow { bytes, peer, ..TcpFlow::endless(number, flow, plan, sender) }
    }

    /// A connection that is never out of data, before its start.
    fn endless(number: u32, flow: &FlowSpec, plan: FlowPlan, sender: OwnedFd) -> TcpFlow {
        TcpFlow {
            number,
            stop: None,
            bytes: u64::MAX,
            application: None,
            conversation: None,
            is_paced: flow.stack.pacing || sets_pacing_rate(&flow.cc),
            kernel_cc: kernel_name(flow).to_owned(),
            bpf_state: None,
            mss: u64::from(flow.stack.mss),
            peer: address(Side::Receiver, plan.pair, RECEIVER_PORT),
            plan,
            listener: None,
            sender,
            receiver: None,
            state: FlowState::Waiting,
            completed: None,
            opened_at: None,
            written: 0,
            received: 0,
            rtt_sums: Vec::new(),
            completion_sampled: false,
        }
    }

    pub(crate) fn start(&self) -> Time {
        self.plan.start
    }

    /// Number of its first pair of ports.
    pub(crate) fn pair(&self) -> u32 {
        self.plan.pair
    }

    /// The errno of a failed connection.
    pub(crate) fn errno(&self) -> Option<i32> {
        if let FlowState::Failed(error) = self.state { Some(error) } else { None }
    }

    pub(crate) fn is_multipath(&self) -> bool {
        self.plan.paths.len() > 1
    }

    /// Starts to connect; the socket does not block.
    pub(crate) fn connect(&mut self) {
        self.state = match connect(&self.sender, &self.peer) {
            Ok(()) | Err(Errno::INPROGRESS) => FlowState::Sending,
            Err(error) => FlowState::Failed(error.raw_os_error()),
        };
    }

    /// Epoll events of the sender: the receiver's close and its requests, and buffer space if there
    /// is data to write.
    pub(crate) fn epoll_interest(&mut self, now: Time) -> EventFlags {
        let opens = self.conversation.as_ref().is_some_and(Conversation::is_opening);
        let writes = self.state == FlowState::Sending && (opens || self.writable_bytes(now) > 0);
        let mut events = EventFlags::RDHUP;
        events.set(EventFlags::OUT, writes);
        events.set(EventFlags::IN, self.conversation.is_some());
        events
    }

    /// Bytes that the application may write now; whole packets if it has a rate schedule.
    fn writable_bytes(&mut self, now: Time) -> u64 {
        if let Some(conversation) = &mut self.conversation {
            return conversation.writable_bytes(now, self.written);
        }
        let left = self.bytes - self.written;
        let (Some(application), Some(opened)) = (&self.application, self.opened_at) else {
            return left;
        };
        let packets = u64::from(application.written(now.since(opened)));
        (packets * self.mss).saturating_sub(self.written).min(left)
    }

    /// Time of the application's next write, if the flow waits for the application.
    pub(crate) fn next_write_time(&mut self, now: Time) -> Option<Time> {
        if let Some(conversation) = &self.conversation {
            return conversation.next_write_time().filter(|at| *at > now);
        }
        if self.writable_bytes(now) > 0 {
            return None;
        }
        let application = self.application.as_ref().filter(|_| self.state == FlowState::Sending)?;
        let next = self.written / self.mss + 1;
        Some(self.opened_at? + application.due(next as u32))
    }

    /// Handles epoll events of the sender.
    pub(crate) fn on_sender_events(
        &mut self,
        now: Time,
        flags: EventFlags,
        write_buffer: &[u8],
        read_buffer: &mut [u8],
    ) {
        if flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            return self.on_peer_close(now);
        }
        if flags.contains(EventFlags::IN) {
            self.on_request(now, read_buffer);
        }
        if flags.contains(EventFlags::OUT) {
            self.write(now, write_buffer);
        }
    }

    /// The sender's socket has the receiver's request for the next message.
    fn on_request(&mut self, now: Time, buffer: &mut [u8]) {
        let Some(conversation) = &mut self.conversation else { return };
        if recv(&self.sender, buffer, RecvFlags::empty()).is_ok_and(|(read, _)| read > 0) {
            conversation.on_request(now);
        }
        if conversation.is_over() {
            self.shutdown_write();
        }
    }

    /// How much to write at once, bytes, if the flow is to stop soon: what is written is sent even
    /// after the stop.
    fn last_write_bytes(&self, now: Time) -> Option<u64> {
        let is_near = self.stop.is_some_and(|stop| stop <= now + STOP_NOTICE);
        if !is_near || self.is_multipath() {
            return None;
        }
        let info = TcpInfo::of(&self.sender).ok()?;
        let bytes = info.bytes_in(LAST_WRITES)?.clamp(2 * self.mss, u64::from(MAX_UNSENT) / 2);
        limit_unsent(&self.sender, 2 * bytes as u32).ok()?;
        Some(if u64::from(info.unsent_bytes()) < bytes { bytes } else { 0 })
    }

    /// Writes until the application has no data or the socket buffer is full; little at a time if the
    /// flow is to stop soon.
    fn write(&mut self, now: Time, data: &[u8]) {
        self.opened_at.get_or_insert(now);
        if let Some(conversation) = &mut self.conversation {
            conversation.on_open(now);
        }
        let mut left = self.last_write_bytes(now).unwrap_or(u64::MAX);
        while self.state == FlowState::Sending {
            let count = self.writable_bytes(now).min(left).min(data.len() as u64) as usize;
            if count == 0 && self.written < self.bytes {
                return;
            }
            if count == 0 {
                return self.shutdown_write();
            }
            match send(&self.sender, &data[..count], SendFlags::NOSIGNAL) {
                Ok(done) => {
                    self.written += done as u64;
                    left -= done as u64;
                }
                Err(Errno::AGAIN | Errno::INTR | Errno::NOTCONN) => return,
                Err(error) => self.state = FlowState::Failed(error.raw_os_error()),
            }
        }
    }

    /// Ends the data: shuts down the sending direction.
    pub(crate) fn shutdown_write(&mut self) {
        if self.state == FlowState::Sending {
            // If the connection has failed, epoll reports it on the sender.
            let _ = shutdown(&self.sender, Shutdown::Write);
            self.state = FlowState::Written;
        }
    }

    /// Handles the receiver's close: completion if all data was written, otherwise a failure.
    fn on_peer_close(&mut self, now: Time) {
        let error = sockopt::socket_error(&self.sender).ok().and_then(Result::err);
        match (self.state, error) {
            (_, Some(error)) => self.state = FlowState::Failed(error.raw_os_error()),
            (FlowState::Written, None) => {
                self.state = FlowState::Complete;
                let is_all = self.received >= self.bytes;
                self.completed = is_all.then_some(now);
            }
            _ => self.state = FlowState::Failed(0),
        }
    }

    /// Accepts the connection; returns whether the listener has nothing more to do.
    pub(crate) fn accept(&mut self) -> bool {
        let Some(listener) = &self.listener else { return true };
        match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(receiver) => self.receiver = Some(receiver),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return false,
            Err(error) => self.state = FlowState::Failed(error.raw_os_error()),
        }
        true
    }

    /// Reads and discards the data that has arrived; returns whether more may follow.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> bool {
        let Some(receiver) = &self.receiver else { return false };
        loop {
            // With MSG_TRUNC, TCP discards the data without copying it (tcp(7)).
            match recv(receiver, &mut *buffer, RecvFlags::TRUNC) {
                Ok((0, 0)) | Err(Errno::CONNRESET) => {
                    let _ = shutdown(receiver, Shutdown::Write);
                    return false;
                }
                Ok((read, whole)) => self.received += read.max(whole) as u64,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let received = self.received;
        if self.conversation.as_mut().is_some_and(|one| one.requests_next(received)) {
            // If the connection has failed, epoll reports it on the sender.
            let _ = send(receiver, &[0], SendFlags::NOSIGNAL);
        }
        true
    }

    /// Whether a sample is due: from the start until once after completion.
    pub(crate) fn needs_sample(&mut self, now: Time) -> bool {
        let shows = self.plan.start <= now && !self.completion_sampled;
        self.completion_sampled = self.completed.is_some();
        shows
    }

    /// Samples the flow: its row, and the rows of its subflows with their numbers.
    pub(crate) fn series_row(&mut self, t: f64) -> (SeriesRow, Vec<(u32, SeriesRow)>) {
        let flow = self.number;
        let mut row = SeriesRow { flow, t, received: self.received, ..SeriesRow::default() };
        let mut subflows = Vec::new();
        if self.is_multipath() {
            row = row.of_several();
            for (subflow, info) in self.subflows() {
                let mut subflow_row = SeriesRow { t, ..SeriesRow::default() };
                info.fill_series_row(self.is_paced, &mut subflow_row);
                subflow_row.received = subflow_row.delivered;
                row.add(&subflow_row);
                self.record_rtt(0, subflow_row.srtt);
                self.record_rtt(1 + subflow as usize, subflow_row.srtt);
                subflows.push((subflow, subflow_row));
            }
            row.delivered = info::acknowledged_bytes(&self.sender, self.written).unwrap_or(0);
        } else if let Ok(info) = TcpInfo::of(&self.sender) {
            info.fill_series_row(self.is_paced, &mut row);
            self.record_rtt(0, row.srtt);
        }
        row.delivered = row.delivered.min(self.written);
        (row, subflows)
    }

    /// Appends the variables of the algorithm, if it is an eBPF program of ours or a kernel's BBR.
    pub(crate) fn record_internals(
        &mut self,
        t: f64,
        internals: &mut Internals,
    ) -> Result<(), TestbedError> {
        let mut show = |name, value| internals.push(self.number, t, name, value);
        if is_bpf_program(&self.kernel_cc) {
            let read = TestbedError::failed("read the variables of an eBPF program");
            BpfState::inspect(&mut self.bpf_state, &self.sender, &mut show).map_err(read)?;
        } else {
            info::inspect_bbr(&self.sender, &mut show);
        }
        Ok(())
    }

    fn record_rtt(&mut self, index: usize, srtt: f32) {
        if srtt.is_finite() {
            self.rtt_sums.resize(self.rtt_sums.len().max(index + 1), (0.0, 0));
            self.rtt_sums[index].0 += f64::from(srtt);
            self.rtt_sums[index].1 += 1;
        }
    }

    /// Sum and number of the smoothed RTT samples, s.
    fn rtt_sum(&self, index: usize) -> (f64, u64) {
        self.rtt_sums.get(index).copied().unwrap_or_default()
    }

    /// `TCP_INFO` of each subflow with its number, which is that of its path.
    fn subflows(&self) -> Vec<(u32, TcpInfo)> {
        let all = info::subflows(&self.sender).unwrap_or_default();
        let subflow = |address| Side::Sender.path(address)?.checked_sub(self.plan.pair);
        let known = all.into_iter().filter_map(|(address, info)| Some((subflow(address)?, info)));
        known.filter(|(subflow, _)| (*subflow as usize) < self.plan.paths.len()).collect()
    }

    /// Totals of the flow, and of its subflows with their numbers.
    pub(crate) fn flow_row(&self) -> (FlowRow, Vec<(u32, FlowRow)>) {
        let mut row = FlowRow {
            flow: self.number,
            start: self.plan.start.as_secs_f64(),
            completed: self.completed.map(Time::as_secs_f64),
            ..FlowRow::default().with_round_trips(self.rtt_sum(0))
        };
        let mut subflows = Vec::new();
        if self.is_multipath() {
            for (subflow, info) in self.subflows() {
                let mut subflow_row = FlowRow { start: row.start, ..FlowRow::default() };
                info.fill_flow_row(&mut subflow_row);
                row.add(&subflow_row);
                subflow_row.received = subflow_row.delivered;
                let rtt_sum = self.rtt_sum(1 + subflow as usize);
                subflows.push((subflow, subflow_row.with_round_trips(rtt_sum)));
            }
            row.delivered = info::acknowledged_bytes(&self.sender, self.written).unwrap_or(0);
        } else if let Ok(info) = TcpInfo::of(&self.sender) {
            info.fill_flow_row(&mut row);
        }
        row.delivered = row.delivered.min(self.written);
        row.received = self.received;
        (row, subflows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_sim::Scenario;
    use std::net::UdpSocket;

    #[test]
    fn a_connection_that_cannot_be_accepted_is_a_failure() -> std::io::Result<()> {
        let json = r#"{
            "duration_ns": 10, "sample_ns": 4,
            "links": [{"name": "link", "rate_bps": 1e6, "delay_ns": 1}],
            "flows": [{"name": "one", "cc": "cubic", "path": ["link"]}]
        }"#;
        let scenario = Scenario::from_json(json).expect("a scenario");
        let plan = FlowPlan { pair: 0, start: Time::ZERO, paths: Vec::new() };
        // A UDP socket accepts nothing.
        let [sender, listener] = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
        let sockets = FlowSockets { sender: sender.into(), listener: listener.into() };
        let mut flow = TcpFlow::new(0, &scenario.flows[0], plan, sockets, None);
        assert!(flow.accept(), "the listener has nothing more to do");
        assert_eq!(flow.errno(), Some(Errno::OPNOTSUPP.raw_os_error()));
        Ok(())
    }
}
