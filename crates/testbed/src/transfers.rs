//! Flows of many transfers: each transfer is a connection of its own, which is opened at its start and
//! closed once it is complete. The work for an event does not depend on the number of transfers.
//!
//! The sender of each transfer has an address of its own, so that the emulator gives its packets the
//! ports of the transfer, and no port number is used twice.

use crate::error::TestbedError;
use crate::host::{Host, Side};
use crate::settings::KernelSettings;
use crate::tcp_flow::{FlowState, RECEIVER_PORT, TcpFlow, address};
use crate::tcp_socket::{open_listener, open_sender};
use crate::token::{SocketRole, Token};
use dumbbell_sim::{
    FlowPlan, FlowRow, FlowSpec, Series, SeriesRow, Transfer, TransferRow, Transfers,
};
use dumbbell_units::{Span, Time};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

/// How long the receiver's socket stays open after its transfer is complete. Meanwhile the last
/// acknowledgement arrives, to which a host without the socket would send a reset.
const LAST_ACK_TIME: Span = Span::from_secs(1);
/// Files of a run for each path, and besides these and those of transfers, at most.
const PATH_FILES: usize = 8;
const OTHER_FILES: usize = 256;

/// All transfers of a run.
pub(crate) struct TransferRuns {
    /// By their index in the scenario.
    flows: BTreeMap<u32, TransferFlow>,
    /// The pair of ports of the first transfer.
    first_pair: u32,
    /// Those that have not started, in the order of their starts.
    waiting: VecDeque<TcpFlow>,
    /// Those in progress, by their number.
    open: BTreeMap<u32, TcpFlow>,
    /// Receivers of those that are complete, with the time of completion.
    closing: VecDeque<(Time, OwnedFd)>,
    /// A row for each that has started.
    rows: Vec<TransferRow>,
}

/// A flow of transfers.
struct TransferFlow {
    start: Time,
    listener: OwnedFd,
    /// The counters of the transfers that are closed.
    closed: FlowRow,
    /// The errno of each that failed.
    errors: Vec<i32>,
}

/// The token of a socket of a transfer, or of a flow's listener.
fn token(number: u32, role: SocketRole) -> EventData {
    Token { is_transfer: true, number, role }.data()
}

/// Lets the process open all sockets of flows of so many paths, and both of so many transfers, at once.
///
/// # Errors
/// If the limit of open files cannot be raised.
pub(crate) fn raise_file_limit(transfers: usize, paths: usize) -> Result<(), TestbedError> {
    let files = (2 * transfers + PATH_FILES * paths + OTHER_FILES) as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(files));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum });
    raised.map_err(TestbedError::unavailable(
        format!(
            "open {files} files, which {paths} paths and {transfers} transfers may need at once"
        ),
        "raise the limit (ulimit -Hn), or run fewer flows and transfers",
    ))
}

impl TransferRuns {
    /// No transfers yet; the first one will have this pair of ports.
    pub(crate) fn new(first_pair: u32) -> TransferRuns {
        TransferRuns {
            flows: BTreeMap::new(),
            first_pair,
            waiting: VecDeque::new(),
            open: BTreeMap::new(),
            closing: VecDeque::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a flow, and those of `transfers` that are its own, between the two hosts.
    ///
    /// # Errors
    /// If a socket cannot be opened.
    pub(crate) fn add_flow(
        &mut self,
        number: u32,
        flow: &FlowSpec,
        plan: &FlowPlan,
        transfers: &[Transfer],
        settings: &KernelSettings,
        [sender, receiver]: [&Host; 2],
    ) -> Result<(), TestbedError> {
        let listener = receiver.enter(|| open_listener(flow, plan, settings))?;
        let peer = address(Side::Receiver, plan.pair, RECEIVER_PORT);
        let own = transfers.iter().zip(self.first_pair..).filter(|(one, _)| one.flow == number);
        let plan_of = |(transfer, pair): (&Transfer, u32)| {
            let plan = FlowPlan { pair, start: transfer.start, paths: Vec::new() };
            (plan, transfer.bytes)
        };
        let own: Vec<(FlowPlan, u64)> = own.map(plan_of).collect();
        let sockets = sender.enter(|| {
            let open = |(plan, _): &(FlowPlan, u64)| open_sender(flow, plan, settings);
            own.iter().map(open).collect::<Result<Vec<_>, _>>()
        })?;
        self.waiting.extend(own.into_iter().zip(sockets).map(|((plan, bytes), socket)| {
            TcpFlow::transfer(number, flow, plan, bytes, socket, peer)
        }));
        self.waiting.make_contiguous().sort_by_key(TcpFlow::pair);
        let (closed, errors) = (FlowRow::default(), Vec::new());
        self.flows.insert(number, TransferFlow { start: plan.start, listener, closed, errors });
        Ok(())
    }

    /// Registers the listeners of all flows.
    pub(crate) fn watch_listeners(&self, epoll: &OwnedFd) -> Result<(), Errno> {
        self.flows.iter().try_for_each(|(&number, flow)| {
            epoll::add(epoll, &flow.listener, token(number, SocketRole::Listener), EventFlags::IN)
        })
    }

    /// Opens the transfers that are due; returns when the next one is.
    pub(crate) fn poll(&mut self, now: Time, epoll: &OwnedFd) -> Result<Time, Errno> {
        while self.closing.front().is_some_and(|(at, _)| *at + LAST_ACK_TIME <= now) {
            self.closing.pop_front();
        }
        while self.waiting.front().is_some_and(|transfer| transfer.start() <= now)
            && let Some(mut transfer) = self.waiting.pop_front()
        {
            let number = self.rows.len() as u32;
            let (flow, start) = (transfer.number, transfer.start().as_secs_f64());
            let bytes = transfer.bytes;
            self.rows.push(TransferRow { flow, start, bytes, ..TransferRow::default() });
            transfer.connect();
            let interest = transfer.epoll_interest(now);
            epoll::add(epoll, &transfer.sender, token(number, SocketRole::Sender), interest)?;
            self.open.insert(number, transfer);
            self.close_if_over(now, number);
        }
        Ok(self.waiting.front().map_or(Time::MAX, TcpFlow::start))
    }

    /// Handles an event of a listener or of a transfer; a transfer may have been closed by an earlier
    /// event.
    pub(crate) fn handle(
        &mut self,
        now: Time,
        epoll: &OwnedFd,
        event: &epoll::Event,
        write_buffer: &[u8],
        read_buffer: &mut [u8],
    ) -> Result<(), Errno> {
        let Token { number, role, .. } = Token::of(event);
        if role == SocketRole::Listener {
            return self.accept(epoll, number);
        }
        let Some(transfer) = self.open.get_mut(&number) else { return Ok(()) };
        if role == SocketRole::Receiver {
            if !transfer.read(read_buffer)
                && let Some(receiver) = &transfer.receiver
            {
                epoll::delete(epoll, receiver)?;
            }
            return Ok(());
        }
        let before = transfer.state;
        transfer.on_sender_events(now, event.flags, write_buffer, read_buffer);
        if before == FlowState::Sending && transfer.state == FlowState::Written {
            let interest = transfer.epoll_interest(now);
            epoll::modify(epoll, &transfer.sender, token(number, role), interest)?;
        }
        self.close_if_over(now, number);
        Ok(())
    }

    /// Accepts the connections that wait at the listener of a flow. The sender's address tells the
    /// transfer.
    fn accept(&mut self, epoll: &OwnedFd, flow: u32) -> Result<(), Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let flow = self.flows.get_mut(&flow).expect("a flow of transfers");
        loop {
            let (receiver, from) = match acceptfrom_with(&flow.listener, flags) {
                Ok(accepted) => accepted,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(error) => {
                    flow.errors.push(error.raw_os_error());
                    return epoll::delete(epoll, &flow.listener);
                }
            };
            let from = from.and_then(|from| SocketAddrV4::try_from(from).ok());
            let pair = from.and_then(|from| Side::Sender.path(from.ip().octets()));
            let number = pair.and_then(|pair| pair.checked_sub(self.first_pair));
            if let Some(number) = number
                && let Some(transfer) = self.open.get_mut(&number)
            {
                epoll::add(epoll, &receiver, token(number, SocketRole::Receiver), EventFlags::IN)?;
                transfer.receiver = Some(receiver);
            }
        }
    }

    /// Closes a transfer that is complete or has failed.
    fn close_if_over(&mut self, now: Time, number: u32) {
        let is_over =
            |one: &TcpFlow| matches!(one.state, FlowState::Complete | FlowState::Failed(_));
        if self.open.get(&number).is_none_or(|transfer| !is_over(transfer)) {
            return;
        }
        let row = self.record(number);
        let transfer = self.open.remove(&number).expect("it is open");
        let flow = self.flows.get_mut(&transfer.number).expect("a flow of transfers");
        flow.errors.extend(transfer.errno());
        flow.closed.add_transfer(&row);
        self.closing.extend(transfer.receiver.map(|receiver| (now, receiver)));
    }

    /// Returns the counters of an open transfer, and records them in its row.
    fn record(&mut self, number: u32) -> FlowRow {
        let (row, _) = self.open[&number].flow_row();
        let FlowRow { completed, sent, retransmitted, timeouts, .. } = row;
        let known = &mut self.rows[number as usize];
        *known = TransferRow { completed, sent, retransmitted, timeouts, ..*known };
        row
    }

    /// Appends the state of each flow that has started: windows and packets in flight of its
    /// transfers in progress, and the counters of all.
    pub(crate) fn sample(&mut self, now: Time, series: &mut Series) {
        let t = now.as_secs_f64();
        let started = self.flows.iter().filter(|(_, flow)| flow.start <= now);
        let mut sums: BTreeMap<u32, SeriesRow> = started
            .map(|(&flow, of)| {
                (flow, SeriesRow { flow, t, ..SeriesRow::default() }.of_transfers(&of.closed))
            })
            .collect();
        for transfer in self.open.values_mut() {
            let (row, _) = transfer.series_row(t);
            if let Some(sum) = sums.get_mut(&transfer.number) {
                sum.add_transfer(&row);
            }
        }
        sums.into_values().for_each(|row| series.push(row));
    }

    /// For each flow with transfers that failed its index, their number and the first error.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (u32, usize, std::io::Error)> {
        self.flows.iter().filter_map(|(&number, flow)| {
            let first = std::io::Error::from_raw_os_error(*flow.errors.first()?);
            Some((number, flow.errors.len(), first))
        })
    }

    /// The flows, by their index in the scenario.
    pub(crate) fn flows(&self) -> impl Iterator<Item = u32> + '_ {
        self.flows.keys().copied()
    }

    /// Totals of each flow.
    pub(crate) fn flow_rows(&mut self) -> Vec<FlowRow> {
        let closed = |(&flow, of): (&u32, &TransferFlow)| {
            (flow, FlowRow { flow, start: of.start.as_secs_f64(), ..of.closed })
        };
        let mut sums: BTreeMap<u32, FlowRow> = self.flows.iter().map(closed).collect();
        for number in self.open.keys().copied().collect::<Vec<_>>() {
            let row = self.record(number);
            let sum = sums.get_mut(&self.open[&number].number);
            sum.expect("a flow of transfers").add_transfer(&row);
        }
        sums.into_values().collect()
    }

    /// The table of all transfers that have started.
    pub(crate) fn table(&self) -> Transfers {
        let mut table = Transfers::with_capacity(self.rows.len());
        self.rows.iter().for_each(|row| table.push(*row));
        table
    }
}
