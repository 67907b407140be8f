//! The emulator: carries packets from TUN devices across the scenario's links in real time.
//!
//! The simulator's engine runs the links. It is advanced to the current time before every other
//! action, so events on links occur at their exact times even if the thread wakes late. A packet
//! enters the links when it is read from a device, and arrives when it is written to one. How late
//! it is written is measured. How late it is read is not, as devices do not say when a packet came:
//! `stalls` measures how long processors stopped.

use crate::capture::Captures;
use crate::error::TestbedError;
use crate::frame::{Frame, Headers, VNET_HEADER};
use crate::health::Health;
use crate::host::Side;
use crate::pool::{FramePool, PacketRef};
use crate::sys::set_realtime_priority;
use crate::waiting::Waiting;
use dumbbell_net::{DropReason, Endpoint, LinkId, Packet};
use dumbbell_sim::{
    EndpointId, Engine, Histogram, Links, Network, Observer, SampleTime, SampleTimes, SimEndpoint,
    Transfer, link_row,
};
use dumbbell_units::{Span, Time};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::fs::File;
use std::io::IoSlice;
use std::iter::Peekable;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Minimum time between two deliveries of a sleeping emulator. Packets that leave links in between
/// are delivered in one batch; the wait counts as lateness.
const BATCH_INTERVAL_MIN: Span = Span::from_micros(50);
/// Time to the next delivery after a batch of more than [`BATCH_SMALL`] packets.
const BATCH_INTERVAL_MEDIUM: Span = Span::from_micros(70);
/// Maximum size of a batch after which [`BATCH_INTERVAL_MIN`] applies, packets.
const BATCH_SMALL: usize = 2;
/// Maximum time to the next delivery after a batch of [`BATCH_LARGE`] packets or more; 1/1000 of
/// the shortest round-trip time if that is less. Large batches save most of the work at high rates.
const BATCH_INTERVAL_MAX: Span = Span::from_micros(200);
/// Minimum size of a batch after which [`BATCH_INTERVAL_MAX`] applies, packets.
const BATCH_LARGE: usize = 7;
/// Maximum number of frames read from a device before the next device is served.
const MAX_FRAMES_PER_READ: usize = 32;
/// Maximum number of coalesced packets: 44 full segments fill the 64 kB limit of Linux's GRO.
const MAX_COALESCED: usize = 44;
/// Maximum sleep, which bounds the delay until a stop request is seen.
const MAX_SLEEP: Span = Span::from_millis(100);

/// The time since the start of a run, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// A clock that reads 0 until `delay` from now.
    pub(crate) fn starting_in(delay: Span) -> Clock {
        Clock(Instant::now() + std::time::Duration::from_nanos(delay.as_nanos()))
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(Instant::now().saturating_duration_since(self.0).as_nanos() as u64)
    }

    /// Sleeps until time 0.
    pub(crate) fn wait_for_start(self) {
        std::thread::sleep(self.0.saturating_duration_since(Instant::now()));
    }

    /// Timeout for a system call that is to return at `time`; 0 if that has passed.
    pub(crate) fn timeout_until(self, time: Time) -> Timespec {
        let target = self.0 + std::time::Duration::from_nanos(time.as_nanos());
        let left = target.saturating_duration_since(Instant::now());
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
    }
}

/// An endpoint of the engine for one end of a path. It does nothing: the kernel behind a TUN device
/// sends and receives.
pub(crate) struct TunPort;

impl SimEndpoint for TunPort {}

impl Endpoint for TunPort {
    type Packet = PacketRef;

    fn handle(&mut self, _now: Time, _packet: &PacketRef) {}

    fn poll(&mut self, _now: Time) -> Option<PacketRef> {
        None
    }

    fn next_timeout(&self) -> Time {
        Time::MAX
    }
}

/// Statistics of the data packets of a path, from sender to receiver.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathStats {
    /// Queueing delay: one-way delay less that of empty links.
    pub(crate) queue_delays: Histogram,
    /// One-way delay of empty links.
    base_delay: Span,
    /// Of the whole run.
    carried: Carried,
    /// By the end of the warm-up.
    carried_in_warmup: Carried,
    /// Packets with payload that arrived with an ECN mark.
    pub(crate) marked: u64,
}

impl PathStats {
    /// What the path carried since the end of the warm-up.
    pub(crate) fn carried(&self) -> Carried {
        let earlier = self.carried_in_warmup;
        Carried {
            sent_packets: self.carried.sent_packets - earlier.sent_packets,
            delivered_bytes: self.carried.delivered_bytes - earlier.delivered_bytes,
        }
    }
}

/// Counters of the data packets of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) sent_packets: u64,
    /// Payload delivered, bytes; retransmitted data counts again.
    pub(crate) delivered_bytes: u64,
}

/// What the path of a program had carried when the run was sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramSample {
    pub(crate) flow: u32,
    /// Time, s.
    pub(crate) t: f64,
    pub(crate) carried: Carried,
}

/// Packets that left the links, until they are written to a device. Frees dropped packets.
#[derive(Default)]
pub(crate) struct DeliveryLog {
    pool: FramePool,
    delivered: Vec<(Time, EndpointId, PacketRef)>,
    path_stats: Vec<PathStats>,
    /// Index in `path_stats` by pair of ports: transfers count for the path of their flow.
    stats_of: Vec<u32>,
}

impl DeliveryLog {
    fn stats_mut(&mut self, port: EndpointId) -> &mut PathStats {
        &mut self.path_stats[self.stats_of[port.pair() as usize] as usize]
    }

    /// Begins the statistics of all paths anew, at the end of the warm-up.
    fn reset(&mut self) {
        for stats in &mut self.path_stats {
            let PathStats { base_delay, carried, .. } = *stats;
            let carried_in_warmup = carried;
            *stats = PathStats { base_delay, carried, carried_in_warmup, ..PathStats::default() };
        }
    }
}

impl Observer<PacketRef> for DeliveryLog {
    fn on_sent(&mut self, _now: Time, _from: EndpointId, _packet: &PacketRef) {}

    fn on_delivered(&mut self, now: Time, to: EndpointId, packet: &PacketRef) {
        self.delivered.push((now, to, *packet));
        if side_of(to) == Side::Receiver && packet.payload > 0 {
            let stats = self.stats_mut(to);
            stats.queue_delays.record(now.since(packet.entered).saturating_sub(stats.base_delay));
            stats.carried.delivered_bytes += u64::from(packet.payload);
            stats.marked += u64::from(packet.is_marked());
        }
    }

    fn on_dropped(&mut self, _: Time, _: EndpointId, _: LinkId, _: DropReason, packet: &PacketRef) {
        self.pool.release(*packet);
    }
}

/// The side of a port: ports come in pairs, the sender's first.
fn side_of(port: EndpointId) -> Side {
    if port.0 & 1 == 0 { Side::Sender } else { Side::Receiver }
}

/// A TUN device with the side of its host.
pub(crate) struct Device<'a> {
    pub(crate) side: Side,
    pub(crate) file: &'a File,
}

/// Results of a run of the emulator.
pub(crate) struct Measurements {
    pub(crate) links: Links,
    /// Since the end of the warm-up, by path; those of transfers are their flow's.
    pub(crate) path_stats: Vec<PathStats>,
    /// Data packets of the whole run.
    pub(crate) data_packets: u64,
    pub(crate) program_samples: Vec<ProgramSample>,
    pub(crate) health: Health,
    pub(crate) events: u64,
    pub(crate) captures: Option<Captures>,
}

/// Moves packets between devices and the engine's links, on one thread.
pub(crate) struct Emulator<'a> {
    engine: Engine<TunPort, DeliveryLog>,
    devices: Vec<Device<'a>>,
    /// Index in `devices` of each port's device.
    port_devices: Vec<usize>,
    /// Number of links to sample; these are the first ones of the network.
    sampled_links: u32,
    /// Each flow of a program with its path.
    programs: Vec<(u32, u32)>,
    program_samples: Vec<ProgramSample>,
    clock: Clock,
    /// Time to the next delivery after a large batch.
    batch_interval_max: Span,
    waiting: Waiting,
    /// Time spent on packets.
    worked: Span,
    spare_buffer: Option<Box<[u8]>>,
    health: Health,
    captures: Option<Captures>,
}

impl<'a> Emulator<'a> {
    /// An emulator that delivers the packets of each port to the device with the index
    /// `port_devices[port]`, samples the first `sampled_links` links and fills `captures`.
    ///
    /// `waiting` says how it waits for packets.
    pub(crate) fn new(
        network: Network<PacketRef>,
        devices: Vec<Device<'a>>,
        port_devices: Vec<usize>,
        sampled_links: u32,
        clock: Clock,
        waiting: Waiting,
        captures: Option<Captures>,
    ) -> Emulator<'a> {
        let ports = (0..network.routes_of.len()).map(|_| TunPort).collect();
        let paths = network.routes_of.len() / 2 - network.transfers.len();
        let mut stats = vec![PathStats::default(); paths];
        let path_of = |transfer: &Transfer| network.flows[transfer.flow as usize].pair;
        let stats_of = (0..paths as u32).chain(network.transfers.iter().map(path_of)).collect();
        let mut batch_interval_max = BATCH_INTERVAL_MAX;
        for plan in &network.flows {
            for (subflow, path) in plan.paths.iter().enumerate() {
                stats[plan.pair as usize + subflow].base_delay = path.delay;
                batch_interval_max =
                    batch_interval_max.min(path.rtt.mul_f64(0.001)).max(BATCH_INTERVAL_MIN);
            }
        }
        let log = DeliveryLog { path_stats: stats, stats_of, ..DeliveryLog::default() };
        let Network { links, routes, routes_of, ties, .. } = network;
        let engine = Engine::with_ports(links, routes, ports, &routes_of, log).with_ties(ties);
        Emulator {
            engine,
            devices,
            port_devices,
            sampled_links,
            programs: Vec::new(),
            program_samples: Vec::new(),
            clock,
            batch_interval_max,
            waiting,
            worked: Span::ZERO,
            spare_buffer: None,
            health: Health::default(),
            captures,
        }
    }

    /// Also samples these flows of programs, each given with its path.
    pub(crate) fn with_programs(self, programs: Vec<(u32, u32)>) -> Emulator<'a> {
        Emulator { programs, ..self }
    }

    /// Runs until the last of `times`, at which links are sampled.
    ///
    /// # Errors
    /// [`TestbedError::Stopped`] if `stop` is set; if epoll fails.
    pub(crate) fn run(
        mut self,
        mut times: Peekable<SampleTimes>,
        stop: &AtomicBool,
    ) -> Result<Measurements, TestbedError> {
        self.health.realtime = set_realtime_priority(2).is_ok();
        // The default timer slack of 50 us would delay every wakeup. If this fails, packets are
        // later, which is measured.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let epoll = self.epoll_devices().map_err(TestbedError::failed("watched devices"))?;
        let mut events = Vec::with_capacity(64);
        let mut links = Links::default();
        let mut next_delivery = Time::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            while let Some(SampleTime { at, ends_warmup }) = times.next_if(|due| due.at <= now) {
                self.engine.run_until(at);
                self.sample(&mut links, at);
                if ends_warmup {
                    self.engine.observer_mut().reset();
                }
                if times.peek().is_none() {
                    return Ok(self.measurements(links, at));
                }
            }
            self.engine.run_until(now);
            for event in &events {
                let event: &epoll::Event = event;
                self.read_device(event.data.u64() as usize);
            }
            let delivers = !self.engine.observer().delivered.is_empty();
            if delivers {
                next_delivery = self.deliver_batch();
            }
            let after = self.clock.now();
            if delivers || !events.is_empty() {
                self.worked = self.worked + after.since(now);
            }
            let next_sample = times.peek().map_or(Time::MAX, |due| due.at);
            let next = self.engine.next_event().unwrap_or(Time::MAX).min(next_sample);
            let wake = next.max(next_delivery).min(next_sample).min(now + MAX_SLEEP);
            let wake = self.waiting.wake_time(after, next, wake);
            events.clear();
            let timeout = self.clock.timeout_until(wake);
            match epoll::wait(&epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(TestbedError::failed("waited for packets")(error)),
            }
        }
        Err(TestbedError::Stopped)
    }

    fn measurements(mut self, links: Links, end: Time) -> Measurements {
        self.health.emulator_busy = self.worked.as_secs_f64() / end.as_secs_f64();
        let path_stats = std::mem::take(&mut self.engine.observer_mut().path_stats);
        Measurements {
            links,
            data_packets: path_stats.iter().map(|stats| stats.carried.sent_packets).sum(),
            path_stats,
            program_samples: self.program_samples,
            health: self.health,
            events: self.engine.events(),
            captures: self.captures,
        }
    }

    fn epoll_devices(&self) -> Result<std::os::fd::OwnedFd, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, device) in self.devices.iter().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, device.file, data, epoll::EventFlags::IN)?;
        }
        Ok(epoll)
    }

    fn sample(&mut self, table: &mut Links, now: Time) {
        let t = now.as_secs_f64();
        for link in 0..self.sampled_links {
            table.push(link_row(&mut self.engine, link, t));
        }
        let stats = &self.engine.observer().path_stats;
        self.program_samples.extend(self.programs.iter().map(|&(flow, path)| ProgramSample {
            flow,
            t,
            carried: stats[path as usize].carried,
        }));
    }

    /// Reads up to [`MAX_FRAMES_PER_READ`] frames of a device and sends their segments onto links.
    fn read_device(&mut self, number: usize) {
        for _ in 0..MAX_FRAMES_PER_READ {
            let device = &self.devices[number];
            let mut buffer = self
                .spare_buffer
                .take()
                .unwrap_or_else(|| self.engine.observer_mut().pool.buffer());
            let len = match rustix::io::read(device.file, &mut buffer[..]) {
                Ok(len) => len,
                Err(_) => {
                    self.spare_buffer = Some(buffer);
                    return;
                }
            };
            let side = device.side;
            let now = self.clock.now();
            self.engine.run_until(now);
            let Some((frame, port)) = self.classify(side, &buffer[..len]) else {
                self.spare_buffer = Some(buffer);
                continue;
            };
            let pool = &mut self.engine.observer_mut().pool;
            let (buffer, packets) = pool.insert(now, frame, buffer, len);
            self.spare_buffer = Some(buffer);
            for packet in packets {
                self.capture(now, port, packet);
                if side == Side::Sender && packet.payload > 0 {
                    self.engine.observer_mut().stats_mut(port).carried.sent_packets += 1;
                }
                self.engine.send(port, packet);
            }
        }
    }

    /// Keeps a packet that a port sends or receives, if its flow is logged.
    fn capture(&mut self, now: Time, port: EndpointId, packet: PacketRef) {
        if let Some(captures) = &mut self.captures {
            let segment = self.engine.observer().pool.segment(packet);
            captures.record(now, port.pair(), side_of(port), &segment);
        }
    }

    /// The parsed frame and the port that sends it; `None` for packets that belong to no flow.
    fn classify(&self, side: Side, bytes: &[u8]) -> Option<(Frame, EndpointId)> {
        let frame = Frame::parse(bytes)?;
        let sender = if side == Side::Sender { frame.source() } else { frame.destination() };
        let path = Side::Sender.path(sender)?;
        let port = EndpointId(path * 2 + side as u32);
        ((port.0 as usize) < self.port_devices.len()).then_some((frame, port))
    }

    /// Writes the packets that left the links to their devices; returns when the next are delivered, if
    /// the emulator sleeps.
    fn deliver_batch(&mut self) -> Time {
        let mut delivered = std::mem::take(&mut self.engine.observer_mut().delivered);
        // Stable: the packets of a port stay in order, and become neighbours that can be coalesced.
        delivered.sort_by_key(|&(_, to, _)| to);
        let mut rest = &delivered[..];
        while let Some(&(_, to, _)) = rest.first() {
            let count = self.coalescible(rest);
            let (some, others) = rest.split_at(count);
            self.write_coalesced(to, some);
            rest = others;
        }
        let now = self.clock.now();
        for &(due, to, packet) in &delivered {
            self.capture(now, to, packet);
            let late = now.since(due);
            self.health.lateness.record(late);
            if late > self.health.max_lateness {
                (self.health.max_lateness, self.health.max_lateness_at) = (late, due);
            }
            self.engine.observer_mut().pool.release(packet);
        }
        let count = delivered.len();
        delivered.clear();
        self.engine.observer_mut().delivered = delivered;
        let interval = match count {
            count if count <= BATCH_SMALL => BATCH_INTERVAL_MIN,
            count if count < BATCH_LARGE => BATCH_INTERVAL_MEDIUM.min(self.batch_interval_max),
            _ => self.batch_interval_max,
        };
        self.clock.now() + interval
    }

    /// Number of leading packets that can be coalesced into one; at least 1.
    fn coalescible(&self, packets: &[(Time, EndpointId, PacketRef)]) -> usize {
        let pool = &self.engine.observer().pool;
        let mut size = packets[0].2.size();
        let pairs = packets.windows(2).take(MAX_COALESCED - 1);
        let merged = pairs.take_while(|pair| {
            let [(_, one, first), (_, other, second)] = pair else { return false };
            size += second.size();
            one == other && size <= 65_535 && pool.coalesces(*first, *second)
        });
        1 + merged.count()
    }

    /// Writes consecutive packets of a port as one packet.
    fn write_coalesced(&mut self, to: EndpointId, packets: &[(Time, EndpointId, PacketRef)]) {
        let pool = &self.engine.observer().pool;
        let (first, last) = (packets[0].2, packets[packets.len() - 1].2);
        let payload = packets.iter().map(|(_, _, packet)| u32::from(packet.payload)).sum();
        let headers = Headers::new(&pool.segment(first), &pool.segment(last), payload);
        debug_assert!(headers.bytes().len() > VNET_HEADER);
        let mut slices = [IoSlice::new(&[]); MAX_COALESCED + 1];
        slices[0] = IoSlice::new(headers.bytes());
        let mut count = 1;
        for payload in pool.payload(packets.iter().map(|(_, _, packet)| *packet)) {
            slices[count] = IoSlice::new(payload);
            count += 1;
        }
        let file = self.devices[self.port_devices[to.0 as usize]].file;
        if rustix::io::writev(file, &slices[..count]).is_err() {
            self.health.write_errors += packets.len() as u64;
        }
    }
}
