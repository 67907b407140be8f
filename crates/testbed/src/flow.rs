//! A flow: a connection of the kernel's TCP, or Multipath TCP, with its two ends.

use crate::algorithm::{has_options, is_paced, kernel_name};
use crate::error::TestbedError;
use crate::host::{Side, mptcp_socket};
use crate::info::{self, TcpInfo};
use crate::settings::Settings;
use crate::sys::set_socket_option;
use dumbbell_net::Application;
use dumbbell_sim::{FlowPlan, FlowRow, FlowSpec, SeriesRow};
use dumbbell_units::Time;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recv, send, shutdown, sockopt,
};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Where receivers listen.
pub(crate) const PORT: u16 = 5001;
const TCP_WINDOW_CLAMP: i32 = 10;
const TCP_NOTSENT_LOWAT: i32 = 25;
/// What may wait in a socket and has not been sent, bytes: written in time at 10 Gbit/s if the
/// writer is a millisecond late, and soon gone when a flow is stopped.
const UNSENT: u32 = 1 << 20;
/// Paces without limiting: anything but the greatest number, which means "do not pace".
const PACE: u64 = u64::MAX >> 1;
/// What is written or read at once, bytes.
pub(crate) const CHUNK: usize = 1 << 18;

/// How far a flow has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Waiting,
    Sending,
    /// It has written all that it has to.
    Written,
    /// The receiver has all of it and said so.
    Complete,
    /// The connection broke.
    Broken(i32),
}

/// A connection with both of its ends.
pub(crate) struct Flow {
    pub(crate) number: u32,
    plan: FlowPlan,
    pub(crate) stop: Option<Time>,
    bytes: u64,
    /// Writes at rates of its own, if it does.
    application: Option<Application>,
    paced: bool,
    mss: u64,
    pub(crate) listener: OwnedFd,
    pub(crate) sender: OwnedFd,
    pub(crate) receiver: Option<OwnedFd>,
    pub(crate) stage: Stage,
    pub(crate) completed: Option<Time>,
    written: u64,
    received: u64,
    /// Sum and number of the round-trip times seen: of all, and of each subflow.
    rtts: Vec<(f64, u64)>,
    /// It was looked at after it had completed.
    is_done: bool,
}

/// The two sockets of a flow, opened in their namespaces.
pub(crate) struct Ends {
    pub(crate) sender: OwnedFd,
    pub(crate) listener: OwnedFd,
}

fn tcp_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
}

pub(crate) fn address(side: Side, path: u32, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(side.address(path).into(), port)
}

/// A socket that is gone when it is closed. With data to send it would outlive the run, for minutes,
/// with its memory and namespace; and runs that find too little memory have small windows.
fn open(is_multipath: bool) -> Result<OwnedFd, TestbedError> {
    let socket = if is_multipath {
        mptcp_socket()?
    } else {
        tcp_socket().map_err(TestbedError::failed("opened a socket"))?
    };
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))
        .map_err(TestbedError::failed("prepared a socket"))?;
    Ok(socket)
}

/// Opens the sending end; called in the sender's namespace.
pub(crate) fn open_sender(
    flow: &FlowSpec,
    plan: &FlowPlan,
    settings: &Settings,
) -> Result<OwnedFd, TestbedError> {
    if has_options(&flow.cc) {
        let (name, cc) = (flow.name.clone(), kernel_name(flow));
        let reason = format!("a kernel's algorithms have no options by flow; write \"{cc}\"");
        let (key, value) = ("cc".to_owned(), format!("\"{}\"", flow.cc));
        return Err(TestbedError::Unsupported { flow: name, key, value, reason });
    }
    let socket = open(!flow.additional_subflows.is_empty())?;
    let cc = kernel_name(flow);
    sockopt::set_tcp_congestion(&socket, cc).map_err(|error| congestion_failed(cc, error))?;
    let prepared = |error: std::io::Error| TestbedError::failed("prepared a socket")(error);
    if settings.pacing {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
        set_socket_option(&socket, level, option, &PACE.to_ne_bytes()).map_err(prepared)?;
    }
    let (level, value) = (libc::IPPROTO_TCP, UNSENT.to_ne_bytes());
    let limited = set_socket_option(&socket, level, TCP_NOTSENT_LOWAT, &value);
    if flow.additional_subflows.is_empty() {
        // Multipath TCP has it since Linux 6.10 only.
        limited.map_err(prepared)?;
    }
    bind(&socket, &address(Side::Sender, plan.pair, 0))
        .map_err(TestbedError::failed("bound a socket"))?;
    Ok(socket)
}

fn congestion_failed(cc: &str, error: Errno) -> TestbedError {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(", ");
    let remedy = format!(
        "the kernel has {known}; load the module (modprobe tcp_{cc}) or choose one of these"
    );
    TestbedError::missing(format!("use the algorithm \"{cc}\""), remedy)(error)
}

/// Opens the receiving end; called in the receiver's namespace.
pub(crate) fn open_listener(
    flow: &FlowSpec,
    plan: &FlowPlan,
    settings: &Settings,
) -> Result<OwnedFd, TestbedError> {
    let socket = open(!flow.additional_subflows.is_empty())?;
    if let Some(window) = settings.window {
        let (level, value) = (libc::IPPROTO_TCP, window.to_ne_bytes());
        set_socket_option(&socket, level, TCP_WINDOW_CLAMP, &value)
            .map_err(TestbedError::failed("limited a receive window"))?;
    }
    bind(&socket, &address(Side::Receiver, plan.pair, PORT))
        .and_then(|()| listen(&socket, 1))
        .map_err(TestbedError::failed("listened on a socket"))?;
    Ok(socket)
}

impl Flow {
    pub(crate) fn new(number: u32, flow: &FlowSpec, plan: FlowPlan, ends: Ends) -> Flow {
        Flow {
            number,
            plan,
            stop: flow.stop_ns.map(Time::from_nanos),
            bytes: flow.bytes.unwrap_or(u64::MAX),
            application: Application::from_rates(&flow.write_rates(), flow.stack.mss),
            paced: flow.stack.pacing || is_paced(&flow.cc),
            mss: u64::from(flow.stack.mss),
            listener: ends.listener,
            sender: ends.sender,
            receiver: None,
            stage: Stage::Waiting,
            completed: None,
            written: 0,
            received: 0,
            rtts: Vec::new(),
            is_done: false,
        }
    }

    pub(crate) fn start(&self) -> Time {
        self.plan.start
    }

    /// The error that broke the connection, if one did.
    pub(crate) fn broken(&self) -> Option<i32> {
        if let Stage::Broken(error) = self.stage { Some(error) } else { None }
    }

    fn is_multipath(&self) -> bool {
        self.plan.paths.len() > 1
    }

    /// Opens the connection.
    pub(crate) fn connect(&mut self) {
        self.stage = match connect(&self.sender, &address(Side::Receiver, self.plan.pair, PORT)) {
            Ok(()) | Err(Errno::INPROGRESS) => Stage::Sending,
            Err(error) => Stage::Broken(error.raw_os_error()),
        };
    }

    /// What the sender waits for: room to write, if it has anything to, and the other end's word
    /// that it has all.
    pub(crate) fn interest(&self, now: Time) -> EventFlags {
        let writes = self.stage == Stage::Sending && self.allowance(now) > 0;
        if writes { EventFlags::OUT | EventFlags::RDHUP } else { EventFlags::RDHUP }
    }

    /// Bytes that the application has for the socket; at a rate of its own whole packets.
    fn allowance(&self, now: Time) -> u64 {
        let left = self.bytes - self.written;
        let Some(application) = &self.application else { return left };
        let packets = u64::from(application.written(now.since(self.plan.start)));
        (packets * self.mss).saturating_sub(self.written).min(left)
    }

    /// When the application next has something to write, if that is what the flow waits for.
    pub(crate) fn next_write(&self, now: Time) -> Option<Time> {
        let application = self.application.as_ref().filter(|_| self.stage == Stage::Sending)?;
        if self.allowance(now) > 0 {
            return None;
        }
        let next = self.written / self.mss + 1;
        Some(self.plan.start + application.due(next as u32))
    }

    /// Writes what there is to write and the socket takes.
    pub(crate) fn write(&mut self, now: Time, data: &[u8]) {
        while self.stage == Stage::Sending {
            let some = self.allowance(now).min(data.len() as u64) as usize;
            if some == 0 && self.written < self.bytes {
                return;
            }
            if some == 0 {
                return self.end();
            }
            match send(&self.sender, &data[..some], SendFlags::NOSIGNAL) {
                Ok(done) => self.written += done as u64,
                Err(Errno::AGAIN | Errno::INTR | Errno::NOTCONN) => return,
                Err(error) => self.stage = Stage::Broken(error.raw_os_error()),
            }
        }
    }

    /// No more data will be written.
    pub(crate) fn end(&mut self) {
        if self.stage == Stage::Sending {
            // If the connection is broken, its sender will learn of it all the same.
            let _ = shutdown(&self.sender, Shutdown::Write);
            self.stage = Stage::Written;
        }
    }

    /// The other end has closed: it has read all of it, or the connection broke.
    pub(crate) fn hang_up(&mut self, now: Time) {
        let error = sockopt::socket_error(&self.sender).ok().and_then(Result::err);
        match (self.stage, error) {
            (_, Some(error)) => self.stage = Stage::Broken(error.raw_os_error()),
            (Stage::Written, None) => {
                self.stage = Stage::Complete;
                let is_all = self.received >= self.bytes;
                self.completed = is_all.then_some(now);
            }
            _ => self.stage = Stage::Broken(0),
        }
    }

    /// Takes the connection that comes in.
    pub(crate) fn accept(&mut self) -> bool {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        self.receiver = accept_with(&self.listener, flags).ok();
        self.receiver.is_some()
    }

    /// Reads, and throws away, what has arrived. Whether more may come.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> bool {
        let Some(receiver) = &self.receiver else { return false };
        loop {
            // TCP that is told to truncate copies nothing (tcp(7)).
            match recv(receiver, &mut *room, RecvFlags::TRUNC) {
                Ok((0, 0)) | Err(Errno::CONNRESET) => {
                    let _ = shutdown(receiver, Shutdown::Write);
                    return false;
                }
                Ok((read, whole)) => self.received += read.max(whole) as u64,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// Whether the flow is to be looked at: from its start on, until once after its completion.
    pub(crate) fn shows(&mut self, now: Time) -> bool {
        let shows = self.plan.start <= now && !self.is_done;
        self.is_done = self.completed.is_some();
        shows
    }

    /// The flow's row, and those of its subflows by their number.
    pub(crate) fn observe(&mut self, t: f64) -> (SeriesRow, Vec<(u32, SeriesRow)>) {
        let flow = self.number;
        let mut row = SeriesRow { flow, t, received: self.received, ..SeriesRow::default() };
        let mut parts = Vec::new();
        if self.is_multipath() {
            row.ssthresh = f32::NAN;
            [row.srtt, row.rtt, row.min_rtt, row.pacing_rate] = [f32::NAN; 4];
            for (part, info) in self.subflows() {
                let mut of = SeriesRow { t, ..SeriesRow::default() };
                info.observe(self.paced, &mut of);
                of.received = of.delivered;
                row.add(&of);
                self.note_rtt(0, of.srtt);
                self.note_rtt(1 + part as usize, of.srtt);
                parts.push((part, of));
            }
            row.delivered = info::acknowledged(&self.sender).unwrap_or(0);
        } else if let Ok(info) = TcpInfo::of(&self.sender) {
            info.observe(self.paced, &mut row);
            self.note_rtt(0, row.srtt);
        }
        row.delivered = row.delivered.min(self.written);
        (row, parts)
    }

    fn note_rtt(&mut self, place: usize, srtt: f32) {
        if srtt.is_finite() {
            self.rtts.resize(self.rtts.len().max(place + 1), (0.0, 0));
            self.rtts[place].0 += f64::from(srtt);
            self.rtts[place].1 += 1;
        }
    }

    /// The mean of what was noted.
    fn rtt_mean(&self, place: usize) -> Option<f64> {
        self.rtts.get(place).map(|&(sum, count)| sum / count as f64).filter(|mean| mean.is_finite())
    }

    /// What each subflow tells, by the number of its path.
    fn subflows(&self) -> Vec<(u32, TcpInfo)> {
        let all = info::subflows(&self.sender).unwrap_or_default();
        let part = |address| Side::Sender.path(address)?.checked_sub(self.plan.pair);
        let known = all.into_iter().filter_map(|(address, info)| Some((part(address)?, info)));
        known.filter(|(part, _)| (*part as usize) < self.plan.paths.len()).collect()
    }

    /// What became of the flow, and of its subflows.
    pub(crate) fn conclude(&self) -> (FlowRow, Vec<(u32, FlowRow)>) {
        let mut row = FlowRow {
            flow: self.number,
            start: self.plan.start.as_secs_f64(),
            completed: self.completed.map(Time::as_secs_f64),
            rtt_mean: self.rtt_mean(0),
            ..FlowRow::default()
        };
        let mut parts = Vec::new();
        if self.is_multipath() {
            for (part, info) in self.subflows() {
                let mut of = FlowRow { start: row.start, ..FlowRow::default() };
                info.conclude(&mut of);
                row.add(&of);
                of.received = of.delivered;
                of.rtt_mean = self.rtt_mean(1 + part as usize);
                parts.push((part, of));
            }
            row.delivered = info::acknowledged(&self.sender).unwrap_or(0);
        } else if let Ok(info) = TcpInfo::of(&self.sender) {
            info.conclude(&mut row);
        }
        row.delivered = row.delivered.min(self.written);
        row.received = self.received;
        (row, parts)
    }
}
