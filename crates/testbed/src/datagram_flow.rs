//! The ends of a flow that another crate provides, such as those of QUIC stacks and of media, and
//! those of UDP at the rate of its application. In the simulator they run in virtual time.
//!
//! Each end runs on its own thread, as those of UDT do.

use crate::emulator::Clock;
use crate::host::Side;
use crate::tcp_flow::{RECEIVER_PORT, address};
use crate::udp_flow::{RunningEnds, StartEnds};
use dumbbell_sim::{
    DatagramEndpoint, DatagramEnds, EcnCodepoint, FlowPlan, FlowRow, FrameRow, SeriesRow,
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
/// Datagrams that are sent before the other direction and samples have their turn: what an
/// application writes may never end.
const MAX_SENDS: usize = 64;
/// How long an end may not notice that the run is over.
const NOTICE: Span = Span::from_millis(100);

type SharedEndpoint = Arc<Mutex<Box<dyn DatagramEndpoint>>>;

/// Both ends of a flow, and their threads.
struct DatagramThreads {
    ends: [SharedEndpoint; 2],
    threads: Vec<JoinHandle<io::Result<()>>>,
    is_stopped: Arc<AtomicBool>,
}

fn lock(endpoint: &SharedEndpoint) -> MutexGuard<'_, Box<dyn DatagramEndpoint>> {
    endpoint.lock().expect("no code panics while it holds an endpoint")
}

/// Prepares the ends of a flow over the two sockets.
pub(crate) fn prepare(
    plan: &FlowPlan,
    endpoints: DatagramEnds,
    sockets: [UdpSocket; 2],
) -> StartEnds {
    let server = address(Side::Receiver, plan.pair, RECEIVER_PORT).into();
    Box::new(move |_, clock| {
        let started = DatagramThreads::start(endpoints, sockets, server, clock);
        Ok(Box::new(started.map_err(|error| error.to_string())?))
    })
}

impl DatagramThreads {
    fn start(
        endpoints: DatagramEnds,
        [sender, receiver]: [UdpSocket; 2],
        server: SocketAddr,
        clock: Clock,
    ) -> io::Result<DatagramThreads> {
        let client = sender.local_addr()?;
        let ends = endpoints.map(|end| Arc::new(Mutex::new(end)));
        let mut started = DatagramThreads { ends, threads: Vec::new(), is_stopped: Arc::default() };
        for (number, socket, peer) in [(1, receiver, client), (0, sender, server)] {
            let state = UdpSocketState::new((&socket).into())?;
            let is_stopped = Arc::clone(&started.is_stopped);
            let end = DatagramEnd { socket, state, peer, clock, is_stopped };
            let endpoint = Arc::clone(&started.ends[number]);
            started.threads.push(thread::Builder::new().spawn(move || end.run(&endpoint))?);
        }
        Ok(started)
    }
}

impl RunningEnds for DatagramThreads {
    fn sample(&mut self, row: &mut SeriesRow) -> bool {
        self.ends.iter().for_each(|end| lock(end).sample(row));
        lock(&self.ends[0]).is_complete()
    }

    fn inspect(&mut self, show: &mut dyn FnMut(&'static str, f64)) {
        lock(&self.ends[0]).inspect(&mut |shown| show(shown.name, shown.value));
    }

    fn finish(&mut self, row: &mut FlowRow) {
        self.ends.iter().for_each(|end| lock(end).finish(row));
    }

    fn frames(&self, push: &mut dyn FnMut(FrameRow)) {
        lock(&self.ends[0]).frames(push);
    }

    /// Stops both ends, whose state no longer changes then.
    fn failure(&mut self) -> Option<String> {
        self.is_stopped.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let Err(error) = done {
                return Some(error.to_string());
            }
        }
        let (at, why) = lock(&self.ends[0]).failure()?;
        Some(format!("{why}, at {:.3} s", at.as_secs_f64()))
    }
}

impl Drop for DatagramThreads {
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
            let events = self.send(&mut payload, &mut **endpoint)?;
            let due = endpoint.next_timeout();
            drop(endpoint);
            if events.is_empty() {
                thread::yield_now();
            } else if !has_read {
                self.wait(due, events);
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

    /// Sends what the endpoint has, up to [`MAX_SENDS`] datagrams; one that the kernel does not take is
    /// lost. Returns the events to wait for: none if there may be more to send.
    fn send(
        &self,
        payload: &mut Vec<u8>,
        endpoint: &mut dyn DatagramEndpoint,
    ) -> io::Result<PollFlags> {
        for _ in 0..MAX_SENDS {
            let Some(ecn) = endpoint.poll(self.clock.now(), payload) else {
                return Ok(PollFlags::IN);
            };
            let transmit = Transmit {
                destination: self.peer,
                ecn: quinn_udp::EcnCodepoint::from_bits(ecn.bits()),
                contents: payload,
                segment_size: None,
                src_ip: None,
            };
            let sent = self.state.try_send((&self.socket).into(), &transmit);
            payload.clear();
            match sent {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(PollFlags::IN | PollFlags::OUT);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(PollFlags::empty())
    }

    /// Waits for one of these events, or until `due`.
    fn wait(&self, due: Time, events: PollFlags) {
        let timeout = self.clock.timeout_until(due.min(self.clock.now() + NOTICE));
        // An interrupted wait is a short one.
        let _ = poll(&mut [PollFd::new(&self.socket, events)], Some(&timeout));
    }
}
