//! A flow over SABUL, RBUDP or Tsunami on sockets of its hosts. Each end runs on its own thread.

use crate::error::TestbedError;
use crate::host::{Host, Side};
use crate::tcp_flow::{RECEIVER_PORT, address};
use crate::udt_flow;
use dumbbell_bulk::io::Transfer;
use dumbbell_bulk::{Load, Options, rbudp, sabul, tsunami};
use dumbbell_sim::{FlowPlan, FlowRow, FlowSpec, Internals, Series, SeriesRow};
use dumbbell_units::Time;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen};
use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Port on which the sender waits for the receiver's control connection.
const CONTROL_PORT: u16 = 5002;

/// A transfer with both of its ends.
pub(crate) struct BulkFlow {
    pub(crate) number: u32,
    plan: FlowPlan,
    options: Options,
    load: Load,
    stage: BulkState,
    /// Whether the flow was sampled after its completion.
    completion_sampled: bool,
}

enum BulkState {
    Waiting(Box<Sockets>),
    Open {
        sender: Transfer,
        receiver: Transfer,
        /// When the threads were started.
        start: Time,
    },
    /// The threads could not be started.
    Failed(String),
}

/// The sockets of both ends, each opened in its host's namespace.
struct Sockets {
    udp: [UdpSocket; 2],
    listener: TcpListener,
    control: OwnedFd,
    /// The address of the listener.
    at: SocketAddrV4,
}

/// The options of a flow, if its transport is one of these protocols.
pub(crate) fn options_of(flow: &FlowSpec) -> Option<Options> {
    dumbbell_bulk::sim::options(flow.external.as_ref()?).ok()
}

/// Opens a TCP socket with this address; call in its host's namespace.
fn tcp_socket(address: SocketAddrV4) -> std::result::Result<OwnedFd, TestbedError> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
        .map_err(TestbedError::failed("opened a socket"))?;
    rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::ZERO))
        .and_then(|()| bind(&socket, &address))
        .map_err(TestbedError::failed("bound a socket"))?;
    Ok(socket)
}

impl BulkFlow {
    /// A flow with these options between the two hosts.
    ///
    /// # Errors
    /// If a socket cannot be opened.
    pub(crate) fn new(
        number: u32,
        flow: &FlowSpec,
        options: Options,
        plan: FlowPlan,
        [sender, receiver]: [&Host; 2],
    ) -> std::result::Result<BulkFlow, TestbedError> {
        let at = address(Side::Sender, plan.pair, CONTROL_PORT);
        let (data, listener) = sender.enter(|| {
            let listener = tcp_socket(at)?;
            listen(&listener, 1).map_err(TestbedError::failed("listened on a socket"))?;
            Ok((udt_flow::open_socket(Side::Sender, &plan)?, listener))
        })?;
        let (arriving, control) = receiver.enter(|| {
            let control = tcp_socket(address(Side::Receiver, plan.pair, 0))?;
            Ok((udt_flow::open_socket(Side::Receiver, &plan)?, control))
        })?;
        let sockets = Sockets {
            udp: [data, arriving].map(UdpSocket::from),
            listener: TcpListener::from(listener),
            control,
            at,
        };
        Ok(BulkFlow {
            number,
            load: Load { bytes: flow.bytes, stop: flow.stop_ns.map(Time::from_nanos) },
            options,
            plan,
            stage: BulkState::Waiting(Box::new(sockets)),
            completion_sampled: false,
        })
    }

    /// Starts the transfer when due; returns the next due time.
    pub(crate) fn poll(&mut self, now: Time) -> Time {
        if !matches!(self.stage, BulkState::Waiting(_)) {
            return Time::MAX;
        }
        if now < self.plan.start {
            return self.plan.start;
        }
        let starting = std::mem::replace(&mut self.stage, BulkState::Failed(String::new()));
        if let BulkState::Waiting(sockets) = starting {
            self.stage = match self.start(now, *sockets) {
                Ok([sender, receiver]) => BulkState::Open { sender, receiver, start: now },
                Err(error) => BulkState::Failed(error.to_string()),
            };
        }
        Time::MAX
    }

    fn start(&self, now: Time, sockets: Sockets) -> Result<[Transfer; 2]> {
        let Sockets { udp: [data, arriving], listener, control, at } = sockets;
        let receiver = address(Side::Receiver, self.plan.pair, RECEIVER_PORT);
        data.connect(receiver)?;
        arriving.connect(data.local_addr()?)?;
        let since = |stop: Time| Time::ZERO + stop.since(now);
        let load = Load { stop: self.load.stop.map(since), ..self.load };
        let accept = move |gives_up: &dyn Fn() -> bool| accept(&listener, gives_up);
        let connect = move |_: &dyn Fn() -> bool| {
            connect(&control, &at)?;
            Ok(TcpStream::from(control))
        };
        Ok(match self.options.clone() {
            Options::Sabul(options) => [
                Transfer::start(sabul::Sender::new(options.clone(), load), data, accept)?,
                Transfer::start(sabul::Receiver::new(options), arriving, connect)?,
            ],
            Options::Rbudp(options) => [
                Transfer::start(rbudp::Sender::new(options.clone(), load), data, accept)?,
                Transfer::start(rbudp::Receiver::new(options), arriving, connect)?,
            ],
            Options::Tsunami(options) => [
                Transfer::start(tsunami::Server::new(options.clone(), load), data, accept)?,
                Transfer::start(tsunami::Client::new(options), arriving, connect)?,
            ],
        })
    }

    /// Why the transfer ended early, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        match &self.stage {
            BulkState::Waiting(_) => None,
            BulkState::Failed(text) => Some(text.clone()),
            BulkState::Open { sender, receiver, .. } => sender.failure().or(receiver.failure()),
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
        if let BulkState::Open { sender, receiver, .. } = &self.stage {
            dumbbell_bulk::sim::fill_series_row(&sender.stats(), &receiver.stats(), &mut row);
            self.completion_sampled = sender.stats().completed.is_some();
            if let Some(internals) = &mut internals {
                for (name, value) in sender.internals() {
                    internals.push(flow, t, name, value);
                }
            }
        }
        series.push(row);
    }

    /// Totals of the flow.
    pub(crate) fn flow_row(&self) -> FlowRow {
        let start = self.plan.start.as_secs_f64();
        let mut row = FlowRow { flow: self.number, start, ..FlowRow::default() };
        if let BulkState::Open { sender, receiver, start } = &self.stage {
            let mut stats = sender.stats();
            stats.completed = stats.completed.map(|at| *start + at.since(Time::ZERO));
            dumbbell_bulk::sim::fill_flow_row(&stats, &receiver.stats(), &mut row);
        }
        row
    }
}

/// Accepts the receiver's connection, unless it is to give up.
fn accept(listener: &TcpListener, gives_up: &dyn Fn() -> bool) -> Result<TcpStream> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((control, _)) => return Ok(control),
            Err(error) if error.kind() == ErrorKind::WouldBlock && !gives_up() => {
                std::thread::sleep(Duration::from_micros(200));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(Error::new(
                    ErrorKind::NotConnected,
                    "the run ended before it connected",
                ));
            }
            Err(error) => return Err(error),
        }
    }
}
