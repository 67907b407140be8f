//! What applications do: open connections when they are due, write, read, and look at sockets.

use crate::emulator::Clock;
use crate::error::TestbedError;
use crate::flow::{CHUNK, Flow, Stage};
use crate::program::Program;
use crate::sys::become_realtime;
use crate::udt::UdtFlow;
use dumbbell_sim::{Histogram, Internals, Series};
use dumbbell_units::{Span, Time};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

/// Who of a flow an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Sender,
    Listener,
    Receiver,
}

fn token(flow: usize, end: End) -> epoll::EventData {
    epoll::EventData::new_u64((flow as u64) << 2 | end as u64)
}

/// What was seen of flows.
#[derive(Default)]
pub(crate) struct Samples {
    pub(crate) series: Series,
    pub(crate) part_series: Series,
    /// Of algorithms that are ours, if they are asked for.
    pub(crate) internals: Option<Internals>,
    /// How late samples were taken.
    pub(crate) lateness: Histogram,
}

pub(crate) struct Driver<'a> {
    flows: &'a mut [Flow],
    programs: &'a mut [Program],
    udt: &'a mut [UdtFlow],
    /// By flow of the scenario, the number of its first subflow.
    first_parts: &'a [u32],
    clock: Clock,
    epoll: OwnedFd,
    /// What each sender waits for at present.
    interests: Vec<Option<epoll::EventFlags>>,
    data: Vec<u8>,
    room: Vec<u8>,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        flows: &'a mut [Flow],
        programs: &'a mut [Program],
        udt: &'a mut [UdtFlow],
        first_parts: &'a [u32],
        clock: Clock,
    ) -> Result<Driver<'a>, TestbedError> {
        let watch = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            for (number, flow) in flows.iter().enumerate() {
                let token = token(number, End::Listener);
                epoll::add(&epoll, &flow.listener, token, epoll::EventFlags::IN)?;
            }
            Ok::<_, Errno>(epoll)
        };
        let epoll = watch().map_err(TestbedError::failed("watched sockets"))?;
        let interests = vec![None; flows.len()];
        let (data, room) = (vec![0; CHUNK], vec![0; 4 * CHUNK]);
        Ok(Driver { flows, programs, udt, first_parts, clock, epoll, interests, data, room })
    }

    /// Drives all flows until the end, and samples them at the interval.
    pub(crate) fn run(
        mut self,
        duration: Time,
        sample: Span,
        internals: bool,
        mut go_on: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Samples, TestbedError> {
        // Without the right to it senders run dry on a busy machine, and then send bursts, which
        // the lateness of samples tells.
        let _ = become_realtime(1);
        let internals = internals.then(Internals::default);
        let mut samples = Samples { internals, ..Samples::default() };
        let mut next_sample = Time::ZERO;
        let mut events = Vec::with_capacity(256);
        loop {
            let now = self.clock.now();
            while next_sample <= now {
                samples.lateness.record(now.since(next_sample));
                self.sample(next_sample, &mut samples);
                let share = next_sample.as_secs_f64() / duration.as_secs_f64();
                if go_on(share).is_break() {
                    return Err(TestbedError::Stopped);
                }
                if next_sample == duration {
                    return Ok(samples);
                }
                next_sample = (next_sample + sample).min(duration);
            }
            for event in events.drain(..) {
                self.handle(now, event);
            }
            let next = self.act(now)?.min(next_sample);
            let timeout = self.clock.until(next);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(TestbedError::failed("waited for sockets")(error)),
            }
        }
    }

    fn handle(&mut self, now: Time, event: epoll::Event) {
        let number = (event.data.u64() >> 2) as usize;
        let (flow, flags) = (&mut self.flows[number], event.flags);
        match event.data.u64() & 3 {
            end if end == End::Listener as u64 => {
                if flow.accept() {
                    let _ = epoll::delete(&self.epoll, &flow.listener);
                    let token = token(number, End::Receiver);
                    let receiver = flow.receiver.as_ref();
                    let flags = epoll::EventFlags::IN;
                    let _ = receiver.map(|end| epoll::add(&self.epoll, end, token, flags));
                }
            }
            end if end == End::Receiver as u64 => {
                if !flow.read(&mut self.room) {
                    let receiver = flow.receiver.as_ref();
                    let _ = receiver.map(|end| epoll::delete(&self.epoll, end));
                }
            }
            _ => {
                use epoll::EventFlags;
                if flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
                    flow.hang_up(now);
                } else if flags.contains(EventFlags::OUT) {
                    flow.write(now, &self.data);
                }
            }
        }
    }

    /// Starts and stops what is due, and says when to do so next.
    fn act(&mut self, now: Time) -> Result<Time, TestbedError> {
        let mut next = Time::MAX;
        for program in self.programs.iter_mut() {
            next = next.min(program.act(now)?);
        }
        for flow in self.udt.iter_mut() {
            next = next.min(flow.act(now));
        }
        for number in 0..self.flows.len() {
            let flow = &mut self.flows[number];
            if flow.stage == Stage::Waiting {
                if flow.start() > now {
                    next = next.min(flow.start());
                    continue;
                }
                flow.connect();
            }
            if let Some(stop) = flow.stop.filter(|_| flow.stage == Stage::Sending) {
                if stop <= now { flow.end() } else { next = next.min(stop) }
            }
            if let Some(write) = flow.next_write(now) {
                next = next.min(write);
            }
            self.set_interest(number, now).map_err(TestbedError::failed("watched a socket"))?;
        }
        Ok(next)
    }

    fn set_interest(&mut self, number: usize, now: Time) -> Result<(), Errno> {
        let (flow, token) = (&self.flows[number], token(number, End::Sender));
        let is_over = matches!(flow.stage, Stage::Complete | Stage::Broken(_));
        let wanted = (!is_over).then(|| flow.interest(now));
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

    /// Looks at all flows that have started. A flow that is complete is looked at once more.
    fn sample(&mut self, now: Time, samples: &mut Samples) {
        let t = now.as_secs_f64();
        for flow in self.flows.iter_mut() {
            if !flow.shows(now) {
                continue;
            }
            let (row, parts) = flow.observe(t);
            samples.series.push(row);
            let first = self.first_parts[flow.number as usize];
            for (part, row) in parts {
                let flow = first + part;
                samples.part_series.push(dumbbell_sim::SeriesRow { flow, ..row });
            }
        }
        for program in self.programs.iter_mut().filter(|program| program.start() <= now) {
            samples.series.push(program.observe(t));
        }
        for flow in self.udt.iter_mut() {
            flow.sample(now, &mut samples.series, samples.internals.as_mut());
        }
    }
}
