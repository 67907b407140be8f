//! The emulator: packets from TUN devices cross the links of the scenario in real time.
//!
//! The simulator's engine runs the links. It is always brought up to the present before anything
//! else happens, so what happens on links happens at the very time that they say, however late
//! the machine wakes us; only handing over and taking in packets are late, and that is measured.

use crate::error::TestbedError;
use crate::frame::{Frame, Head, VNET};
use crate::health::Health;
use crate::host::Side;
use crate::pool::{Pool, Wire};
use crate::sys::become_realtime;
use dumbbell_net::{DropReason, Endpoint, LinkId, Packet};
use dumbbell_sim::{
    EndpointId, Engine, Histogram, Links, Network, Observer, SimEndpoint, link_row,
};
use dumbbell_units::{Span, Time};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Packets that come out of links within so long are handed over together. By as much they are
/// late, and counted so.
const LEAST_TICK: Span = Span::from_micros(50);
/// Where more than a few come together.
const SOME_TICK: Span = Span::from_micros(70);
const FEW: usize = 2;
/// Where many do, within a thousandth of the shortest round trip, up to this: at high rates that
/// saves most of the work.
const MOST_TICK: Span = Span::from_micros(200);
const MANY: usize = 7;
/// Frames that are taken from one device before others have their turn.
const MOST_FRAMES: usize = 32;
/// Packets that are handed over as one, at most (as in Linux's GRO, which ends at 64 kB).
const MOST_PIECES: usize = 44;
/// The longest sleep: how soon the emulator notices that it is to stop.
const LONGEST_SLEEP: Span = Span::from_millis(100);

/// The time of a run, on the machine's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// A clock that shows 0 after so long.
    pub(crate) fn starting_in(delay: Span) -> Clock {
        Clock(Instant::now() + std::time::Duration::from_nanos(delay.as_nanos()))
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(Instant::now().saturating_duration_since(self.0).as_nanos() as u64)
    }

    /// How long until then, as system calls take it.
    pub(crate) fn until(self, time: Time) -> Timespec {
        let target = self.0 + std::time::Duration::from_nanos(time.as_nanos());
        let left = target.saturating_duration_since(Instant::now());
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
    }
}

/// One end of a path: what it sends and receives is in a TUN device.
pub(crate) struct Port;

impl SimEndpoint for Port {}

impl Endpoint for Port {
    type Packet = Wire;

    fn handle(&mut self, _now: Time, _packet: &Wire) {}

    fn poll(&mut self, _now: Time) -> Option<Wire> {
        None
    }

    fn next_timeout(&self) -> Time {
        Time::MAX
    }
}

/// What the emulator saw of a path's data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// How much longer than on empty links packets with payload were under way.
    pub(crate) delays: Histogram,
    /// How long that is, one way.
    base: Span,
    pub(crate) sent_packets: u64,
    /// Payload that came out, bytes.
    pub(crate) delivered: u64,
}

/// Packets that have come out of links, and those that are gone.
#[derive(Default)]
pub(crate) struct Ledger {
    pool: Pool,
    arrived: Vec<(Time, EndpointId, Wire)>,
    seen: Vec<Seen>,
}

impl Observer<Wire> for Ledger {
    fn on_sent(&mut self, _now: Time, _from: EndpointId, _packet: &Wire) {}

    fn on_delivered(&mut self, now: Time, to: EndpointId, packet: &Wire) {
        self.arrived.push((now, to, *packet));
        if side_of(to) == Side::Receiver && packet.payload > 0 {
            let seen = &mut self.seen[to.pair() as usize];
            seen.delays.record(now.since(packet.sent).saturating_sub(seen.base));
            seen.delivered += u64::from(packet.payload);
        }
    }

    fn on_dropped(&mut self, _: Time, _: EndpointId, _: LinkId, _: DropReason, packet: &Wire) {
        self.pool.release(*packet);
    }
}

/// Of two ports that talk to each other the sender's comes first.
fn side_of(port: EndpointId) -> Side {
    if port.0 & 1 == 0 { Side::Sender } else { Side::Receiver }
}

/// A TUN device, of senders or receivers.
pub(crate) struct Device<'a> {
    pub(crate) side: Side,
    pub(crate) file: &'a File,
}

/// Everything that the emulator measured.
pub(crate) struct Measured {
    pub(crate) links: Links,
    /// By path.
    pub(crate) seen: Vec<Seen>,
    pub(crate) health: Health,
    pub(crate) events: u64,
}

pub(crate) struct Emulator<'a> {
    engine: Engine<Port, Ledger>,
    devices: Vec<Device<'a>>,
    /// By port: whose packets come out there.
    device_of: Vec<usize>,
    /// The scenario's links, which are sampled.
    links: u32,
    clock: Clock,
    /// For how long packets are collected where many come together.
    tick: Span,
    buffer: Option<Box<[u8]>>,
    health: Health,
}

impl<'a> Emulator<'a> {
    /// `device_of` says by port whose packets come out there; `links` are sampled.
    pub(crate) fn new(
        network: Network<Wire>,
        devices: Vec<Device<'a>>,
        device_of: Vec<usize>,
        links: u32,
        clock: Clock,
    ) -> Emulator<'a> {
        let ports = (0..network.routes_of.len()).map(|_| Port).collect();
        let mut seen = vec![Seen::default(); network.routes_of.len() / 2];
        let mut tick = MOST_TICK;
        for plan in &network.flows {
            for (part, path) in plan.paths.iter().enumerate() {
                seen[plan.pair as usize + part].base = path.delay;
                tick = tick.min(path.rtt.mul_f64(0.001)).max(LEAST_TICK);
            }
        }
        let ledger = Ledger { seen, ..Ledger::default() };
        let Network { links: all, routes, routes_of, .. } = network;
        let engine = Engine::with_ports(all, routes, ports, &routes_of, ledger);
        Emulator {
            engine,
            devices,
            device_of,
            links,
            clock,
            tick,
            buffer: None,
            health: Health::default(),
        }
    }

    /// Runs for so long, or until told to stop, and samples links at the interval.
    pub(crate) fn run(
        mut self,
        duration: Time,
        sample: Span,
        stop: &AtomicBool,
    ) -> Result<Measured, TestbedError> {
        self.health.realtime = become_realtime(2).is_ok();
        // A sleep may end 50 us late unless a thread says that this matters. Without the right to
        // say so nothing is lost but exactness, which is measured.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let epoll = self.poll_devices().map_err(TestbedError::failed("watched devices"))?;
        let mut events = Vec::with_capacity(64);
        let mut links = Links::default();
        let mut next_sample = Time::ZERO;
        let mut next_turn = Time::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let woken = self.clock.now();
            while next_sample <= woken {
                self.engine.run_until(next_sample);
                self.sample(&mut links, next_sample);
                if next_sample == duration {
                    let processed = self.engine.events();
                    self.health.busy = processor_time() / duration.as_secs_f64();
                    let seen = std::mem::take(&mut self.engine.observer_mut().seen);
                    return Ok(Measured { links, seen, health: self.health, events: processed });
                }
                next_sample = (next_sample + sample).min(duration);
            }
            self.engine.run_until(woken);
            for event in &events {
                let event: &epoll::Event = event;
                self.read(event.data.u64() as usize);
            }
            if !self.engine.observer().arrived.is_empty() {
                let tick = match self.hand_over() {
                    count if count <= FEW => LEAST_TICK,
                    count if count < MANY => SOME_TICK.min(self.tick),
                    _ => self.tick,
                };
                next_turn = self.clock.now() + tick;
            }
            let next = self.engine.next_event().unwrap_or(Time::MAX).max(next_turn);
            let wake = next.min(next_sample).min(woken + LONGEST_SLEEP);
            events.clear();
            let timeout = self.clock.until(wake);
            match epoll::wait(&epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(TestbedError::failed("waited for packets")(error)),
            }
        }
        Err(TestbedError::Stopped)
    }

    fn poll_devices(&self) -> Result<std::os::fd::OwnedFd, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, device) in self.devices.iter().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, device.file, data, epoll::EventFlags::IN)?;
        }
        Ok(epoll)
    }

    fn sample(&mut self, table: &mut Links, now: Time) {
        for link in 0..self.links {
            table.push(link_row(&mut self.engine, link, now.as_secs_f64()));
        }
    }

    /// Takes what a device has, and puts it onto links.
    fn read(&mut self, number: usize) {
        for _ in 0..MOST_FRAMES {
            let device = &self.devices[number];
            let mut buffer =
                self.buffer.take().unwrap_or_else(|| self.engine.observer_mut().pool.buffer());
            let len = match rustix::io::read(device.file, &mut buffer[..]) {
                Ok(len) => len,
                Err(_) => {
                    self.buffer = Some(buffer);
                    return;
                }
            };
            let side = device.side;
            let now = self.clock.now();
            self.engine.run_until(now);
            let Some((frame, port)) = self.port(side, &buffer[..len]) else {
                self.buffer = Some(buffer);
                continue;
            };
            let pool = &mut self.engine.observer_mut().pool;
            let (buffer, wires) = pool.keep(now, frame, buffer, len);
            self.buffer = Some(buffer);
            for wire in wires {
                if side == Side::Sender && wire.payload > 0 {
                    self.engine.observer_mut().seen[port.pair() as usize].sent_packets += 1;
                }
                self.engine.send(port, wire);
            }
        }
    }

    /// The port by which a frame leaves; `None` if it is none of a flow's.
    fn port(&self, side: Side, bytes: &[u8]) -> Option<(Frame, EndpointId)> {
        let frame = Frame::parse(bytes)?;
        let sender = if side == Side::Sender { frame.source() } else { frame.destination() };
        let path = Side::Sender.path(sender)?;
        let port = EndpointId(path * 2 + side as u32);
        ((port.0 as usize) < self.device_of.len()).then_some((frame, port))
    }

    /// Hands over what has come out of links, and says how many packets that were.
    fn hand_over(&mut self) -> usize {
        let mut arrived = std::mem::take(&mut self.engine.observer_mut().arrived);
        // What one end receives stays in order, and can be put together.
        arrived.sort_by_key(|&(_, to, _)| to);
        let mut rest = &arrived[..];
        while let Some(&(_, to, _)) = rest.first() {
            let count = self.together(rest);
            let (some, others) = rest.split_at(count);
            self.write(to, some);
            rest = others;
        }
        let now = self.clock.now();
        for &(due, _, wire) in &arrived {
            let late = now.since(due);
            self.health.lateness.record(late);
            if late > self.health.latest {
                (self.health.latest, self.health.latest_at) = (late, due);
            }
            self.engine.observer_mut().pool.release(wire);
        }
        let count = arrived.len();
        arrived.clear();
        self.engine.observer_mut().arrived = arrived;
        count
    }

    /// How many of the first packets can be handed over as one.
    fn together(&self, arrived: &[(Time, EndpointId, Wire)]) -> usize {
        let pool = &self.engine.observer().pool;
        let mut size = arrived[0].2.size();
        let pairs = arrived.windows(2).take(MOST_PIECES - 1);
        let merged = pairs.take_while(|pair| {
            let [(_, one, first), (_, other, second)] = pair else { return false };
            size += second.size();
            one == other && size <= 65_535 && pool.follows(*first, *second)
        });
        1 + merged.count()
    }

    /// Hands over packets that follow each other as one.
    fn write(&mut self, to: EndpointId, wires: &[(Time, EndpointId, Wire)]) {
        let pool = &self.engine.observer().pool;
        let (first, last) = (wires[0].2, wires[wires.len() - 1].2);
        let payload = wires.iter().map(|(_, _, wire)| u32::from(wire.payload)).sum();
        let head = Head::of(&pool.piece(first), &pool.piece(last), payload);
        debug_assert!(head.bytes().len() > VNET);
        let mut parts = [IoSlice::new(&[]); MOST_PIECES + 1];
        parts[0] = IoSlice::new(head.bytes());
        let mut count = 1;
        for payload in pool.payload(wires.iter().map(|(_, _, wire)| *wire)) {
            parts[count] = IoSlice::new(payload);
            count += 1;
        }
        let file = self.devices[self.device_of[to.0 as usize]].file;
        if rustix::io::writev(file, &parts[..count]).is_err() {
            self.health.refused += wires.len() as u64;
        }
    }
}

/// The processor time that the calling thread has used, s.
fn processor_time() -> f64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 * 1e-9
}
