//! A flow over UDT on UDP sockets of its hosts.
//!
//! Each end runs on its own thread, which inherits the real-time priority of the thread that starts
//! it, because it does the work that a kernel does for TCP.

use crate::error::TestbedError;
use crate::host::Side;
use crate::sys::setsockopt;
use crate::tcp_flow::{FlowSockets, RECEIVER_PORT, address};
use dumbbell_sim::{
    FlowPlan, FlowRow, FlowSpec, Internals, Series, SeriesRow, fill_flow_row, fill_series_row,
};
use dumbbell_udt::io::{Error, Listener, Settings, Socket};
use dumbbell_udt::{BulkData, TransportOptions};
use dumbbell_units::Time;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Size of a UDP socket's buffers, bytes: 2 * 10 ms at 10 Gbit/s, because up to half is overhead.
const UDP_BUFFER: i32 = 1 << 25;
/// A timeout longer than any run: as in the simulator, a connection never gives up.
const NO_TIMEOUT: Duration = Duration::from_secs(1 << 30);

/// A UDT connection with both of its ends.
pub(crate) struct UdtFlow {
    pub(crate) number: u32,
    plan: FlowPlan,
    settings: Settings,
    /// Time after which no new data is sent.
    stop: Option<Time>,
    bytes: u64,
    payload: u64,
    stage: UdtState,
    /// Whether the flow was sampled after its completion.
    completion_sampled: bool,
}

enum UdtState {
    Waiting([UdpSocket; 2]),
    Open(Connection),
    /// The connection could not be opened.
    Failed(Error),
}

/// The sockets of an open connection.
struct Connection {
    sender: Socket,
    /// Time at which the sender's clock started.
    start: Time,
    listener: Listener,
    receiver: Option<Socket>,
}

/// Opens the UDP socket of one end; call in its host's namespace.
pub(crate) fn open_socket(side: Side, plan: &FlowPlan) -> Result<OwnedFd, TestbedError> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
        .map_err(TestbedError::failed("opened a UDP socket"))?;
    for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
        setsockopt(&socket, libc::SOL_SOCKET, option, &UDP_BUFFER.to_ne_bytes())
            .map_err(TestbedError::failed("gave a UDP socket its buffer"))?;
    }
    let port = if side == Side::Sender { 0 } else { RECEIVER_PORT };
    bind(&socket, &address(side, plan.pair, port))
        .map_err(TestbedError::failed("bound a UDP socket"))?;
    Ok(socket)
}

impl UdtFlow {
    /// A flow with these options over the two sockets.
    pub(crate) fn new(
        number: u32,
        flow: &FlowSpec,
        options: &TransportOptions,
        plan: FlowPlan,
        ends: FlowSockets,
    ) -> UdtFlow {
        let bulk = BulkData { bytes: flow.bytes, stop: None, app_rates: flow.write_rates() };
        let settings = Settings {
            options: options.clone(),
            algorithm: flow.cc.clone(),
            connect_timeout: NO_TIMEOUT,
            idle_timeout: NO_TIMEOUT,
            bulk: Some(bulk),
            keep_received: false,
            ..Settings::default()
        };
        UdtFlow {
            number,
            plan,
            settings,
            stop: flow.stop_ns.map(Time::from_nanos),
            bytes: flow.bytes.unwrap_or(u64::MAX),
            payload: u64::from(options.max_payload()),
            stage: UdtState::Waiting([ends.sender, ends.listener].map(UdpSocket::from)),
            completion_sampled: false,
        }
    }

    /// Opens the connection when due; returns the next due time.
    pub(crate) fn poll(&mut self, now: Time) -> Time {
        let UdtState::Waiting(sockets) = &mut self.stage else { return Time::MAX };
        if now < self.plan.start {
            return self.plan.start;
        }
        let opened = sockets.each_ref().map(UdpSocket::try_clone);
        self.stage = match self.connect(now, opened) {
            Ok(open) => UdtState::Open(open),
            Err(error) => UdtState::Failed(error),
        };
        Time::MAX
    }

    fn connect(
        &self,
        now: Time,
        [sender, receiver]: [std::io::Result<UdpSocket>; 2],
    ) -> Result<Connection, Error> {
        let receives = Settings { bulk: None, ..self.settings.clone() };
        let listener = Listener::from_udp_socket(receiver?, &receives)?;
        let mut sends = self.settings.clone();
        if let Some(bulk) = &mut sends.bulk {
            bulk.stop = self.stop.map(|stop| Time::ZERO + stop.since(now));
        }
        let sender = Socket::start_connect(sender?, listener.local_addr(), &sends)?;
        Ok(Connection { sender, start: now, listener, receiver: None })
    }

    /// The error with which the connection ended, if any.
    pub(crate) fn failure(&self) -> Option<String> {
        match &self.stage {
            UdtState::Waiting(_) => None,
            UdtState::Failed(error) => Some(error.to_string()),
            UdtState::Open(open) => match open.sender.error() {
                None | Some(Error::Closed) => None,
                Some(error) => Some(error.to_string()),
            },
        }
    }

    /// Appends a sample, from the flow's start until once after its completion.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        series: &mut Series,
        mut internals: Option<&mut Internals>,
    ) {
        if now < self.plan.start || self.completion_sampled {
            return;
        }
        self.poll(now);
        let (flow, t) = (self.number, now.as_secs_f64());
        let mut row = SeriesRow { flow, t, ..SeriesRow::default() };
        if let UdtState::Open(open) = &mut self.stage {
            let stats = open.sender.statistics().sender;
            fill_series_row(&stats, self.payload, self.bytes, &mut row);
            row.received = open.received();
            self.completion_sampled = stats.completed.is_some();
            if let Some(internals) = &mut internals {
                open.sender.inspect(&mut |shown| internals.push(flow, t, shown.name, shown.value));
            }
        }
        series.push(row);
    }

    /// Totals of the flow.
    pub(crate) fn flow_row(&mut self) -> FlowRow {
        let start = self.plan.start.as_secs_f64();
        let mut row = FlowRow { flow: self.number, start, ..FlowRow::default() };
        if let UdtState::Open(open) = &mut self.stage {
            let mut stats = open.sender.statistics().sender;
            stats.completed = stats.completed.map(|at| open.start + at.since(Time::ZERO));
            fill_flow_row(&stats, self.payload, self.bytes, &mut row);
            row.received = open.received();
        }
        row
    }
}

impl Connection {
    /// Bytes that the receiver has received in order.
    fn received(&mut self) -> u64 {
        if self.receiver.is_none() {
            self.receiver = self.listener.accept(Some(Duration::ZERO)).ok();
        }
        self.receiver.as_ref().map_or(0, |receiver| receiver.statistics().receiver.bytes)
    }
}
