//! A flow over UDP sockets of its hosts: UDT, SABUL, RBUDP, Tsunami, or endpoints of another crate.
//!
//! Each end runs on its own thread, which inherits the real-time priority of the thread that starts
//! it, because it does the work that a kernel does for TCP.

use crate::emulator::Clock;
use crate::error::TestbedError;
use crate::host::Side;
use crate::socket_buffer::{Buffer, set_buffer};
use crate::tcp_flow::{RECEIVER_PORT, address};
use dumbbell_sim::{FlowPlan, FlowRow, FrameRow, Internals, Series, SeriesRow};
use dumbbell_units::Time;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind};
use std::os::fd::OwnedFd;

/// Size of a UDP socket's buffers, bytes: 2 * 10 ms at 10 Gbit/s, because up to half is overhead.
const UDP_BUFFER: i32 = 1 << 25;

/// Both ends of a flow, from its start on.
pub(crate) trait RunningEnds {
    /// Fills in the current state. Returns whether the flow is complete, so that its state no longer
    /// changes.
    fn sample(&mut self, row: &mut SeriesRow) -> bool;

    /// Shows the internals of the sender's algorithm.
    fn inspect(&mut self, show: &mut dyn FnMut(&'static str, f64));

    /// Fills in the totals.
    fn finish(&mut self, row: &mut FlowRow);

    /// Gives a row for each frame of media that was captured.
    fn frames(&self, _push: &mut dyn FnMut(FrameRow)) {}

    /// Why the flow failed, if it did; called at the end of the run.
    fn failure(&mut self) -> Option<String>;
}

/// Starts both ends at the time that it gets, or says why it cannot.
pub(crate) type StartEnds = Box<dyn FnOnce(Time, Clock) -> Result<Box<dyn RunningEnds>, String>>;

/// A flow with both of its ends.
pub(crate) struct UdpFlow {
    pub(crate) number: u32,
    start: Time,
    /// Until the flow starts.
    start_ends: Option<StartEnds>,
    ends: Option<Box<dyn RunningEnds>>,
    /// Why the ends could not be started.
    error: Option<String>,
    /// Whether the flow was sampled after its completion.
    completion_sampled: bool,
}

/// Opens the UDP socket of one end; call in its host's namespace.
pub(crate) fn open_socket(side: Side, plan: &FlowPlan) -> Result<OwnedFd, TestbedError> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
        .map_err(TestbedError::failed("opened a UDP socket"))?;
    set_buffer(&socket, Buffer::Receive, UDP_BUFFER)?;
    set_buffer(&socket, Buffer::Send, UDP_BUFFER)?;
    let port = if side == Side::Sender { 0 } else { RECEIVER_PORT };
    bind(&socket, &address(side, plan.pair, port))
        .map_err(TestbedError::failed("bound a UDP socket"))?;
    Ok(socket)
}

impl UdpFlow {
    /// A flow whose ends are started at this time.
    pub(crate) fn new(number: u32, start: Time, start_ends: StartEnds) -> UdpFlow {
        UdpFlow {
            number,
            start,
            start_ends: Some(start_ends),
            ends: None,
            error: None,
            completion_sampled: false,
        }
    }

    /// Starts the ends when due; returns the next due time.
    pub(crate) fn poll(&mut self, now: Time, clock: Clock) -> Time {
        if self.start_ends.is_some() && now < self.start {
            return self.start;
        }
        match self.start_ends.take().map(|start_ends| start_ends(now, clock)) {
            None => {}
            Some(Ok(ends)) => self.ends = Some(ends),
            Some(Err(error)) => self.error = Some(error),
        }
        Time::MAX
    }

    /// Appends a sample, from the flow's start until once after its completion.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        clock: Clock,
        series: &mut Series,
        internals: Option<&mut Internals>,
    ) {
        if now < self.start || self.completion_sampled {
            return;
        }
        self.poll(now, clock);
        let (flow, t) = (self.number, now.as_secs_f64());
        let mut row = SeriesRow { flow, t, ..SeriesRow::default() };
        if let Some(ends) = &mut self.ends {
            self.completion_sampled = ends.sample(&mut row);
            if let Some(internals) = internals {
                ends.inspect(&mut |name, value| internals.push(flow, t, name, value));
            }
        }
        series.push(row);
    }

    /// Why the flow failed, if it did; call at the end of the run.
    pub(crate) fn failure(&mut self) -> Option<String> {
        self.error.clone().or_else(|| self.ends.as_mut()?.failure())
    }

    /// Totals of the flow.
    pub(crate) fn flow_row(&mut self) -> FlowRow {
        let start = self.start.as_secs_f64();
        let mut row = FlowRow { flow: self.number, start, ..FlowRow::default() };
        if let Some(ends) = &mut self.ends {
            ends.finish(&mut row);
        }
        row
    }

    /// Gives a row for each frame of media that was captured.
    pub(crate) fn frames(&self, push: &mut dyn FnMut(FrameRow)) {
        if let Some(ends) = &self.ends {
            ends.frames(&mut |row| push(FrameRow { flow: self.number, ..row }));
        }
    }
}
