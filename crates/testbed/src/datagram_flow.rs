//! A flow whose endpoints another crate provides, such as those of QUIC stacks, over UDP sockets of
//! its hosts. In the simulator the same endpoints run in virtual time.
//!
//! Each end runs on its own thread, as those of UDT do.

use crate::emulator::Clock;
use crate::host::Side;
use crate::tcp_flow::{FlowSockets, RECEIVER_PORT, address};
use dumbbell_sim::{
    DatagramEndpoint, DatagramEnds, EcnCodepoint, FlowPlan, FlowRow, Internals, Series, SeriesRow,
};
use dumbbell_units::{Span, Time};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

/// Datagrams that a system call reads at most.
const BATCH: usize = 16;
/// How long an end may not notice that the run is over.
const NOTICE: Span = Span::from_millis(100);

type SharedEndpoint = Arc<Mutex<Box<dyn DatagramEndpoint>>>;

/// Both ends of a flow.
pub(crate) struct DatagramFlow {
    pub(crate) number: u32,
    plan: FlowPlan,
    ends: [SharedEndpoint; 2],
    /// Until the flow starts.
    sockets: Option<[UdpSocket; 2]>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    is_stopped: Arc<AtomicBool>,
    /// The error with which a socket failed.
    error: Option<io::Error>,
    /// Whether the flow was sampled after its completion.
    completion_sampled: bool,
}

fn lock(endpoint: &SharedEndpoint) -> MutexGuard<'_, Box<dyn DatagramEndpoint>> {
    endpoint.lock().expect("no code panics while it holds an endpoint")
}

impl DatagramFlow {
    /// A flow of these endpoints over the two sockets.
    pub(crate) fn new(
        number: u32,
        plan: FlowPlan,
        ends: DatagramEnds,
        sockets: FlowSockets,
    ) -> DatagramFlow {
        DatagramFlow {
            number,
            plan,
            ends: ends.map(|end| Arc::new(Mutex::new(end))),
            sockets: Some([sockets.sender, sockets.listener].map(UdpSocket::from)),
            threads: Vec::new(),
            is_stopped: Arc::default(),
            error: None,
            completion_sampled: false,
        }
    }

    /// Starts the ends when due; returns the next due time.
    pub(crate) fn poll(&mut self, now: Time, clock: Clock) -> Time {
        if self.sockets.is_some() && now < self.plan.start {
            return self.plan.start;
        }
        if let Some(sockets) = self.sockets.take()
            && let Err(error) = self.start(sockets, clock)
        {
            self.error = Some(error);
        }
        Time::MAX
    }

    fn start(&mut self, [sender, receiver]: [UdpSocket; 2], clock: Clock) -> io::Result<()> {
        let client = sender.local_addr()?;
        let server = address(Side::Receiver, self.plan.pair, RECEIVER_PORT).into();
        let [of_sender, of_receiver] = &self.ends;
        for (endpoint, socket, peer) in
            [(of_receiver, receiver, client), (of_sender, sender, server)]
        {
            let state = UdpSocketState::new((&socket).into())?;
            let end = DatagramEnd {
                socket,
                state,
                peer,
                clock,
                is_stopped: Arc::clone(&self.is_stopped),
            };
            let endpoint = Arc::clone(endpoint);
            self.threads.push(thread::Builder::new().spawn(move || end.run(&endpoint))?);
        }
        Ok(())
    }

    /// Appends a sample, from the flow's start until once after its completion.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        series: &mut Series,
        internals: Option<&mut Internals>,
    ) {
        if now < self.plan.start || self.completion_sampled {
            return;
        }
        let (flow, t) = (self.number, now.as_secs_f64());
        let mut row = SeriesRow { flow, t, ..SeriesRow::default() };
        let sender = lock(&self.ends[0]);
        sender.sample(&mut row);
        if let Some(internals) = internals {
            sender.inspect(&mut |shown| internals.push(flow, t, shown.name, shown.value));
        }
        self.completion_sampled = sender.is_complete();
        drop(sender);
        lock(&self.ends[1]).sample(&mut row);
        series.push(row);
    }

    /// Stops both ends. Returns why the flow failed, if it did.
    pub(crate) fn stop(&mut self) -> Option<String> {
        self.is_stopped.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.error = self.error.take().or(done.err());
        }
        if let Some(error) = &self.error {
            return Some(error.to_string());
        }
        let (at, why) = lock(&self.ends[0]).failure()?;
        Some(format!("{why}, at {:.3} s", at.as_secs_f64()))
    }

    /// Totals of the flow.
    pub(crate) fn flow_row(&self) -> FlowRow {
        let start = self.plan.start.as_secs_f64();
        let mut row = FlowRow { flow: self.number, start, ..FlowRow::default() };
        self.ends.iter().for_each(|end| lock(end).finish(&mut row));
        row
    }
}

impl Drop for DatagramFlow {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// The socket of an end, and what its thread needs.
struct DatagramEnd {
    socket: UdpSocket,
    state: UdpSocketState,
    peer: SocketAddr,
    clock: Clock,
    is_stopped: Arc<AtomicBool>,
}

impl DatagramEnd {
    /// Moves datagrams between the endpoint and the socket until the run is over.
    fn run(&self, endpoint: &SharedEndpoint) -> io::Result<()> {
        let mut memory = vec![0; BATCH << 16];
        let mut payload = Vec::new();
        while !self.is_stopped.load(Ordering::Relaxed) {
            let mut endpoint = lock(endpoint);
            let has_read = self.receive(&mut memory, &mut **endpoint)?;
            let has_room = self.send(&mut payload, &mut **endpoint)?;
            let due = endpoint.next_timeout();
            drop(endpoint);
            if !has_read {
                self.wait(due, has_room);
            }
        }
        Ok(())
    }

    /// Hands a batch of datagrams to the endpoint. Returns whether there was one.
    fn receive(&self, memory: &mut [u8], endpoint: &mut dyn DatagramEndpoint) -> io::Result<bool> {
        let mut metas = [RecvMeta::default(); BATCH];
        let mut pieces = memory.chunks_exact_mut(1 << 16);
        let mut slices: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        let count = match self.state.recv((&self.socket).into(), &mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let now = self.clock.now();
        for (meta, bytes) in metas[..count].iter().zip(memory.chunks_exact(1 << 16)) {
            let ecn = EcnCodepoint::from_bits(meta.ecn.map_or(0, |ecn| ecn as u8));
            // The kernel may have coalesced several (GRO).
            for datagram in bytes[..meta.len].chunks(meta.stride.max(1)) {
                endpoint.handle(now, datagram, ecn);
            }
        }
        Ok(true)
    }

    /// Sends what the endpoint has. Returns whether the kernel took all of it; the datagram that it
    /// does not take is lost.
    fn send(&self, payload: &mut Vec<u8>, endpoint: &mut dyn DatagramEndpoint) -> io::Result<bool> {
        while let Some(ecn) = endpoint.poll(self.clock.now(), payload) {
            let ecn = quinn_udp::EcnCodepoint::from_bits(ecn.bits());
            let transmit = Transmit {
                destination: self.peer,
                ecn,
                contents: payload,
                segment_size: None,
                src_ip: None,
            };
            let sent = self.state.try_send((&self.socket).into(), &transmit);
            payload.clear();
            match sent {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Waits until there is something to read or, without room in the kernel, to write, or until
    /// `due`.
    fn wait(&self, due: Time, has_room: bool) {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, !has_room);
        let timeout = self.clock.timeout_until(due.min(self.clock.now() + NOTICE));
        // An interrupted wait is a short one.
        let _ = poll(&mut [PollFd::new(&self.socket, flags)], Some(&timeout));
    }
}
