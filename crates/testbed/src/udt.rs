//! A flow over UDT: a connection of ours over UDP sockets of its hosts.
//!
//! Its ends run in threads of their own, which are as real-time as the thread that starts them:
//! they stand for what a kernel would do at once.

use crate::error::TestbedError;
use crate::flow::{Ends, PORT, address};
use crate::host::Side;
use crate::sys::set_socket_option;
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

/// Bytes that may wait in a UDP socket: 10 ms at 10 Gbit/s, twice, as half of it may be overhead.
const BUFFER: i32 = 1 << 25;
/// Longer than any run: as in the simulator, the flow goes on however bad the links are.
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// A connection with both of its ends.
pub(crate) struct UdtFlow {
    pub(crate) number: u32,
    plan: FlowPlan,
    settings: Settings,
    /// From when on no new data is sent.
    stop: Option<Time>,
    bytes: u64,
    payload: u64,
    stage: Stage,
    /// It was looked at after it had completed.
    is_done: bool,
}

enum Stage {
    Waiting([UdpSocket; 2]),
    Open(Open),
    /// It could not be opened.
    Failed(Error),
}

/// A connection that has begun.
struct Open {
    sender: Socket,
    /// When the sender's clock began.
    began: Time,
    listener: Listener,
    receiver: Option<Socket>,
}

/// Opens an end; called in its namespace.
pub(crate) fn open(side: Side, plan: &FlowPlan) -> Result<OwnedFd, TestbedError> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
        .map_err(TestbedError::failed("opened a UDP socket"))?;
    for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
        set_socket_option(&socket, libc::SOL_SOCKET, option, &BUFFER.to_ne_bytes())
            .map_err(TestbedError::failed("gave a UDP socket its buffer"))?;
    }
    let port = if side == Side::Sender { 0 } else { PORT };
    bind(&socket, &address(side, plan.pair, port))
        .map_err(TestbedError::failed("bound a UDP socket"))?;
    Ok(socket)
}

impl UdtFlow {
    /// A flow of these options over two sockets.
    pub(crate) fn new(
        number: u32,
        flow: &FlowSpec,
        options: &TransportOptions,
        plan: FlowPlan,
        ends: Ends,
    ) -> UdtFlow {
        let bulk = BulkData { bytes: flow.bytes, stop: None, app_rates: flow.write_rates() };
        let settings = Settings {
            options: options.clone(),
            algorithm: flow.cc.clone(),
            connect_timeout: FOREVER,
            idle_timeout: FOREVER,
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
            stage: Stage::Waiting([ends.sender, ends.listener].map(UdpSocket::from)),
            is_done: false,
        }
    }

    /// Opens the connection if it is time to, and says when to ask again.
    pub(crate) fn act(&mut self, now: Time) -> Time {
        let Stage::Waiting(sockets) = &mut self.stage else { return Time::MAX };
        if now < self.plan.start {
            return self.plan.start;
        }
        let opened = sockets.each_ref().map(UdpSocket::try_clone);
        self.stage = match self.connect(now, opened) {
            Ok(open) => Stage::Open(open),
            Err(error) => Stage::Failed(error),
        };
        Time::MAX
    }

    fn connect(
        &self,
        now: Time,
        [sender, receiver]: [std::io::Result<UdpSocket>; 2],
    ) -> Result<Open, Error> {
        let receives = Settings { bulk: None, ..self.settings.clone() };
        let listener = Listener::from_udp_socket(receiver?, &receives)?;
        let mut sends = self.settings.clone();
        if let Some(bulk) = &mut sends.bulk {
            bulk.stop = self.stop.map(|stop| Time::ZERO + stop.since(now));
        }
        let sender = Socket::start_connect(sender?, listener.local_addr(), &sends)?;
        Ok(Open { sender, began: now, listener, receiver: None })
    }

    /// Why it ended before its time, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        match &self.stage {
            Stage::Waiting(_) => None,
            Stage::Failed(error) => Some(error.to_string()),
            Stage::Open(open) => match open.sender.error() {
                None | Some(Error::Closed) => None,
                Some(error) => Some(error.to_string()),
            },
        }
    }

    /// Writes down the present state, from the flow's start on until once after its completion.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        series: &mut Series,
        mut internals: Option<&mut Internals>,
    ) {
        if now < self.plan.start || self.is_done {
            return;
        }
        self.act(now);
        let (flow, t) = (self.number, now.as_secs_f64());
        let mut row = SeriesRow { flow, t, ..SeriesRow::default() };
        if let Stage::Open(open) = &mut self.stage {
            let stats = open.sender.statistics().sender;
            fill_series_row(&stats, self.payload, self.bytes, &mut row);
            row.received = open.received();
            self.is_done = stats.completed.is_some();
            if let Some(internals) = &mut internals {
                open.sender.inspect(&mut |shown| internals.push(flow, t, shown.name, shown.value));
            }
        }
        series.push(row);
    }

    /// What became of the flow.
    pub(crate) fn conclude(&mut self) -> FlowRow {
        let start = self.plan.start.as_secs_f64();
        let mut row = FlowRow { flow: self.number, start, ..FlowRow::default() };
        if let Stage::Open(open) = &mut self.stage {
            let mut stats = open.sender.statistics().sender;
            stats.completed = stats.completed.map(|at| open.began + at.since(Time::ZERO));
            fill_flow_row(&stats, self.payload, self.bytes, &mut row);
            row.received = open.received();
        }
        row
    }
}

impl Open {
    /// Bytes that the receiver has in order.
    fn received(&mut self) -> u64 {
        if self.receiver.is_none() {
            self.receiver = self.listener.accept(Some(Duration::ZERO)).ok();
        }
        self.receiver.as_ref().map_or(0, |receiver| receiver.statistics().receiver.bytes)
    }
}
