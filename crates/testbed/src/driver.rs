//! The application side of all flows: connects, writes, reads and samples sockets.

use crate::emulator::Clock;
use crate::error::TestbedError;
use crate::host::Host;
use crate::program::Program;
use crate::sys::set_realtime_priority;
use crate::tcp_flow::{FlowState, IO_BYTES, TcpFlow};
use crate::token::{SocketRole, Token};
use crate::totals::{FlowTotals, totals};
use crate::transfers::TransferRuns;
use crate::udp_flow::UdpFlow;
use dumbbell_sim::{Histogram, Internals, SampleTime, SampleTimes, Series};
use dumbbell_units::Time;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The token of a socket of a flow by its index in the driver.
fn token(flow: usize, role: SocketRole) -> epoll::EventData {
    Token { is_transfer: false, number: flow as u32, role }.data()
}

/// The time series of all flows.
#[derive(Default)]
pub(crate) struct Samples {
    pub(crate) series: Series,
    pub(crate) subflow_series: Series,
    /// Internals of the algorithms that show them, if the scenario records them.
    pub(crate) internals: Option<Internals>,
    /// Delay between the due time of a sample and the sample.
    pub(crate) lateness: Histogram,
    /// The totals of all flows at the end of the warm-up.
    pub(crate) warm: Vec<FlowTotals>,
}

/// Runs the applications of all flows on one thread.
pub(crate) struct Driver<'a> {
    flows: &'a mut [TcpFlow],
    transfers: &'a mut TransferRuns,
    programs: &'a mut [Program],
    udp: &'a mut [UdpFlow],
    /// Number of each flow's first subflow, by flow of the scenario.
    first_subflows: &'a [u32],
    /// The sender's host of a flow that has it for itself.
    own_host: Option<Arc<Host>>,
    clock: Clock,
    epoll: OwnedFd,
    /// Epoll events that each sender is registered for.
    interests: Vec<Option<epoll::EventFlags>>,
    write_buffer: Vec<u8>,
    read_buffer: Vec<u8>,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        flows: &'a mut [TcpFlow],
        transfers: &'a mut TransferRuns,
        programs: &'a mut [Program],
        udp: &'a mut [UdpFlow],
        first_subflows: &'a [u32],
        own_host: Option<Arc<Host>>,
        clock: Clock,
    ) -> Result<Driver<'a>, TestbedError> {
        let open_epoll = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            for (number, flow) in flows.iter().enumerate() {
                let (listener, token) =
                    (flow.listener.as_ref(), token(number, SocketRole::Listener));
                let flags = epoll::EventFlags::IN;
                listener.map_or(Ok(()), |socket| epoll::add(&epoll, socket, token, flags))?;
            }
            transfers.watch_listeners(&epoll)?;
            Ok::<_, Errno>(epoll)
        };
        let epoll = open_epoll().map_err(TestbedError::failed("watched sockets"))?;
        let interests = vec![None; flows.len()];
        let (write_buffer, read_buffer) = (vec![0; IO_BYTES], vec![0; 4 * IO_BYTES]);
        Ok(Driver {
            flows,
            transfers,
            programs,
            udp,
            first_subflows,
            own_host,
            clock,
            epoll,
            interests,
            write_buffer,
            read_buffer,
        })
    }

    /// Runs all flows until the last of `times`, at which they are sampled.
    ///
    /// Calls `progress` with the completed fraction at every sample; a break stops the run.
    pub(crate) fn run(
        mut self,
        mut times: Peekable<SampleTimes>,
        duration: Time,
        internals: bool,
        mut progress: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Samples, TestbedError> {
        // Without the privilege, senders run out of data on a busy machine and then send bursts;
        // the lateness of samples shows this.
        let _ = set_realtime_priority(1);
        let internals = internals.then(Internals::default);
        let mut samples = Samples { internals, ..Samples::default() };
        let mut events = Vec::with_capacity(256);
        // The emulator delivers nothing before: a handshake begun now would measure this wait as well.
        self.clock.wait_for_start();
        loop {
            let now = self.clock.now();
            while let Some(SampleTime { at, ends_warmup }) = times.next_if(|due| due.at <= now) {
                samples.lateness.record(now.since(at));
                self.sample(at, &mut samples)?;
                if ends_warmup {
                    let host = self.own_host.as_deref();
                    let (flows, programs) = (&*self.flows, &*self.programs);
                    samples.warm = totals(flows, self.transfers, programs, self.udp, host)?;
                }
                if progress(at.as_secs_f64() / duration.as_secs_f64()).is_break() {
                    return Err(TestbedError::Stopped);
                }
                if times.peek().is_none() {
                    return Ok(samples);
                }
            }
            for event in events.drain(..) {
                self.handle(now, event).map_err(TestbedError::failed("watched a socket"))?;
            }
            let next_sample = times.peek().map_or(Time::MAX, |due| due.at);
            let next = self.poll_flows(now)?.min(next_sample);
            let timeout = self.clock.timeout_until(next);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(TestbedError::failed("waited for sockets")(error)),
            }
        }
    }

    fn handle(&mut self, now: Time, event: epoll::Event) -> Result<(), Errno> {
        let token = Token::of(&event);
        let (write_buffer, read_buffer) = (&self.write_buffer, &mut self.read_buffer);
        if token.is_transfer {
            return self.transfers.handle(now, &self.epoll, &event, write_buffer, read_buffer);
        }
        let flow = &mut self.flows[token.number as usize];
        match token.role {
            SocketRole::Listener => {
                if flow.accept() {
                    let _ = flow.listener.as_ref().map(|socket| epoll::delete(&self.epoll, socket));
                    if !flow.is_multipath() {
                        // Further subflows would arrive at it.
                        flow.listener = None;
                    }
                    let token = Token { role: SocketRole::Receiver, ..token }.data();
                    let flags = epoll::EventFlags::IN;
                    let receiver = flow.receiver.as_ref();
                    let _ = receiver.map(|socket| epoll::add(&self.epoll, socket, token, flags));
                }
            }
            SocketRole::Receiver => {
                if !flow.read(read_buffer) {
                    let receiver = flow.receiver.as_ref();
                    let _ = receiver.map(|socket| epoll::delete(&self.epoll, socket));
                }
            }
            SocketRole::Sender => {
                flow.on_sender_events(now, event.flags, write_buffer, read_buffer);
            }
        }
        Ok(())
    }

    /// Starts and stops the flows that are due; returns the next due time.
    fn poll_flows(&mut self, now: Time) -> Result<Time, TestbedError> {
        let transfers = self.transfers.poll(now, &self.epoll);
        let mut next = transfers.map_err(TestbedError::failed("watched a socket"))?;
        for program in self.programs.iter_mut() {
            next = next.min(program.poll(now)?);
        }
        for flow in self.udp.iter_mut() {
            next = next.min(flow.poll(now, self.clock));
        }
        for number in 0..self.flows.len() {
            let flow = &mut self.flows[number];
            if flow.state == FlowState::Waiting {
                if flow.start() > now {
                    next = next.min(flow.start());
                    continue;
                }
                flow.connect();
            }
            if let Some(stop) = flow.stop.filter(|_| flow.state == FlowState::Sending) {
                if stop <= now { flow.shutdown_write() } else { next = next.min(stop) }
            }
            if let Some(write) = flow.next_write_time(now) {
                next = next.min(write);
            }
            self.update_epoll_interest(number, now)
                .map_err(TestbedError::failed("watched a socket"))?;
        }
        Ok(next)
    }

    fn update_epoll_interest(&mut self, number: usize, now: Time) -> Result<(), Errno> {
        let (flow, token) = (&mut self.flows[number], token(number, SocketRole::Sender));
        let is_over = matches!(flow.state, FlowState::Complete | FlowState::Failed(_));
        let wanted = (!is_over).then(|| flow.epoll_interest(now));
        if wanted == self.interests[number] {
            return Ok(());
        }
        match (self.interests[number], wanted) {
            (None, Some(flags)) => epoll::add(&self.epoll, &flow.sender, token, flags)?,
            (Some(_), Some(flags)) => epoll::modify(&self.epoll, &flow.sender, token, flags)?,
            (_, None) => epoll::delete(&self.epoll, &flow.sender)?,
        }
        self.interests[number] = wanted;
        Ok(())
    }

    /// Samples all flows that have started; a completed flow once more after its completion.
    fn sample(&mut self, now: Time, samples: &mut Samples) -> Result<(), TestbedError> {
        let t = now.as_secs_f64();
        for flow in self.flows.iter_mut() {
            if !flow.needs_sample(now) {
                continue;
            }
            let (row, subflows) = flow.series_row(t);
            samples.series.push(row);
            if let Some(internals) = &mut samples.internals {
                flow.record_internals(t, internals)?;
            }
            let first = self.first_subflows[flow.number as usize];
            for (subflow, row) in subflows {
                let flow = first + subflow;
                samples.subflow_series.push(dumbbell_sim::SeriesRow { flow, ..row });
            }
        }
        self.transfers.sample(now, &mut samples.series);
        for program in self.programs.iter_mut().filter(|program| program.start() <= now) {
            samples.series.push(program.series_row(t));
        }
        for flow in self.udp.iter_mut() {
            flow.sample(now, self.clock, &mut samples.series, samples.internals.as_mut());
        }
        Ok(())
    }
}
