//! The ends of a flow over SABUL, RBUDP or Tsunami, on sockets of its hosts.

use crate::error::TestbedError;
use crate::host::{Host, Side};
use crate::tcp_flow::{RECEIVER_PORT, address};
use crate::udp_flow::{self, RunningEnds, StartEnds};
use dumbbell_bulk::io::Transfer;
use dumbbell_bulk::{Load, Options, rbudp, sabul, tsunami};
use dumbbell_sim::{FlowPlan, FlowRow, FlowSpec, SeriesRow};
use dumbbell_units::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen};
use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Port on which the sender waits for the receiver's control connection.
const CONTROL_PORT: u16 = 5002;

/// A transfer that was started, with both of its ends.
struct BulkTransfer {
    sender: Transfer,
    receiver: Transfer,
    /// When the threads were started.
    start: Time,
}

/// The sockets of both ends, each opened in its host's namespace.
struct Sockets {
    udp: [UdpSocket; 2],
    listener: TcpListener,
    control: OwnedFd,
    /// The address of the listener.
    at: SocketAddrV4,
    /// The address of the receiver's UDP socket.
    receiver: SocketAddrV4,
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

/// Prepares the ends of a flow with these options between the two hosts.
///
/// # Errors
/// If a socket cannot be opened.
pub(crate) fn prepare(
    flow: &FlowSpec,
    options: Options,
    plan: &FlowPlan,
    [sender, receiver]: [&Host; 2],
) -> std::result::Result<StartEnds, TestbedError> {
    let at = address(Side::Sender, plan.pair, CONTROL_PORT);
    let (data, listener) = sender.enter(|| {
        let listener = tcp_socket(at)?;
        listen(&listener, 1).map_err(TestbedError::failed("listened on a socket"))?;
        Ok((udp_flow::open_socket(Side::Sender, plan)?, listener))
    })?;
    let (arriving, control) = receiver.enter(|| {
        let control = tcp_socket(address(Side::Receiver, plan.pair, 0))?;
        Ok((udp_flow::open_socket(Side::Receiver, plan)?, control))
    })?;
    let sockets = Sockets {
        udp: [data, arriving].map(UdpSocket::from),
        listener: TcpListener::from(listener),
        control,
        at,
        receiver: address(Side::Receiver, plan.pair, RECEIVER_PORT),
    };
    let (bytes, stop) = (flow.bytes, flow.stop_ns.map(Time::from_nanos));
    Ok(Box::new(move |now, _| {
        let stop = stop.map(|stop| Time::ZERO + stop.since(now));
        let started = start(now, options, Load { bytes, stop }, sockets);
        Ok(Box::new(started.map_err(|error| error.to_string())?))
    }))
}

fn start(now: Time, options: Options, load: Load, sockets: Sockets) -> Result<BulkTransfer> {
    let Sockets { udp: [data, arriving], listener, control, at, receiver } = sockets;
    data.connect(receiver)?;
    arriving.connect(data.local_addr()?)?;
    let accept = move |gives_up: &dyn Fn() -> bool| accept(&listener, gives_up);
    let connect = move |gives_up: &dyn Fn() -> bool| connect_to(control, &at, gives_up);
    let (sender, receiver) = match options {
        Options::Sabul(options) => (
            Transfer::start(sabul::Sender::new(options.clone(), load), data, accept)?,
            Transfer::start(sabul::Receiver::new(options), arriving, connect)?,
        ),
        Options::Rbudp(options) => (
            Transfer::start(rbudp::Sender::new(options.clone(), load), data, accept)?,
            Transfer::start(rbudp::Receiver::new(options), arriving, connect)?,
        ),
        Options::Tsunami(options) => (
            Transfer::start(tsunami::Server::new(options.clone(), load), data, accept)?,
            Transfer::start(tsunami::Client::new(options), arriving, connect)?,
        ),
    };
    Ok(BulkTransfer { sender, receiver, start: now })
}

impl RunningEnds for BulkTransfer {
    fn sample(&mut self, row: &mut SeriesRow) -> bool {
        let (sender, receiver) = (self.sender.stats(), self.receiver.stats());
        dumbbell_bulk::sim::fill_series_row(&sender, &receiver, row);
        sender.completed.is_some()
    }

    fn inspect(&mut self, show: &mut dyn FnMut(&'static str, f64)) {
        self.sender.internals().into_iter().for_each(|(name, value)| show(name, value));
    }

    fn finish(&mut self, row: &mut FlowRow) {
        let mut stats = self.sender.stats();
        stats.completed = stats.completed.map(|at| self.start + at.since(Time::ZERO));
        dumbbell_bulk::sim::fill_flow_row(&stats, &self.receiver.stats(), row);
    }

    fn failure(&mut self) -> Option<String> {
        self.sender.failure().or(self.receiver.failure())
    }
}

fn run_ended() -> Error {
    Error::new(ErrorKind::NotConnected, "the run ended before it connected")
}

/// Connects to the sender, unless it is to give up.
fn connect_to(
    control: OwnedFd,
    to: &SocketAddrV4,
    gives_up: &dyn Fn() -> bool,
) -> Result<TcpStream> {
    let control = TcpStream::from(control);
    control.set_nonblocking(true)?;
    match connect(&control, to) {
        Ok(()) => return Ok(control),
        Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let notice = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    // An interrupted wait is a short one.
    while poll(&mut [PollFd::new(&control, PollFlags::OUT)], Some(&notice)).unwrap_or(0) == 0 {
        if gives_up() {
            return Err(run_ended());
        }
    }
    rustix::net::sockopt::socket_error(&control)??;
    Ok(control)
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
                return Err(run_ended());
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::KernelSettings;

    #[test]
    fn a_connection_that_nobody_accepts_ends_with_the_run() {
        let settings = KernelSettings { mtu: 1500, ..KernelSettings::default() };
        let open = || tcp_socket(address(Side::Receiver, 0, 0));
        let (_host, control) = match Host::new(Side::Receiver, &settings, 0, &[], open) {
            Err(error @ TestbedError::Unavailable { .. }) => {
                return println!("skipped: {error}");
            }
            made => made.expect("a host"),
        };
        let to = address(Side::Sender, 0, CONTROL_PORT);
        let error = connect_to(control, &to, &|| true).expect_err("no packet leaves the device");
        assert_eq!(error.kind(), ErrorKind::NotConnected);
    }
}
