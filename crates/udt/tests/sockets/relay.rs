//! A relay between client and server that impairs packets.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Impairments: probabilities per packet, and the latency of all.
#[derive(Clone, Copy, Default)]
pub struct Impairments {
    pub loss: f64,
    pub duplication: f64,
    pub delay: f64,
    pub corruption: f64,
    /// Delay of every packet.
    pub latency: Duration,
}

/// Called for each packet with its direction (`true`: to the server) and bytes. The returned packets
/// are sent in the same direction.
pub type Injector = Box<dyn FnMut(bool, &[u8]) -> Vec<Vec<u8>> + Send>;

/// A relay, stopped on drop.
pub struct Relay {
    address: SocketAddr,
    drops_next_data: Arc<AtomicBool>,
    drops_shutdowns: Arc<AtomicU32>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Forwarder {
    inside: UdpSocket,
    outside: UdpSocket,
    server: SocketAddr,
    client: Option<SocketAddr>,
    impairments: Impairments,
    random: u64,
    injector: Injector,
    /// Drop the next data packet to the server.
    drops_next_data: Arc<AtomicBool>,
    /// Number of shutdowns to the server to drop.
    drops_shutdowns: Arc<AtomicU32>,
    /// Delayed packets: (time, direction, bytes).
    delayed: Vec<(Instant, bool, Vec<u8>)>,
}

impl Relay {
    pub fn start(
        server: SocketAddr,
        impairments: Impairments,
        seed: u64,
        injector: Injector,
    ) -> Relay {
        let bind = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
            let patience = Some(Duration::from_millis(1));
            socket.set_read_timeout(patience).expect("it is not zero");
            socket
        };
        let (inside, outside) = (bind(), bind());
        let address = outside.local_addr().expect("it is bound");
        let stopped = Arc::new(AtomicBool::new(false));
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let (client, delayed) = (None, Vec::new());
        let drops_next_data = Arc::new(AtomicBool::new(false));
        let drops_shutdowns = Arc::new(AtomicU32::new(0));
        let mut forwarder = Forwarder {
            inside,
            outside,
            server,
            client,
            impairments,
            random,
            injector,
            drops_next_data: drops_next_data.clone(),
            drops_shutdowns: drops_shutdowns.clone(),
            delayed,
        };
        let stop = stopped.clone();
        let thread = Some(thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                forwarder.turn();
            }
        }));
        Relay { address, drops_next_data, drops_shutdowns, stopped, thread }
    }

    /// The address to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Drops the next shutdowns to the server.
    pub fn drop_shutdowns(&self, number: u32) {
        self.drops_shutdowns.store(number, Ordering::Relaxed);
    }

    /// Drops the next data packet to the server.
    pub fn drop_next_data(&self) {
        self.drops_next_data.store(true, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

impl Forwarder {
    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    fn turn(&mut self) {
        let mut buffer = [0; 2048];
        for inwards in [true, false] {
            let socket = if inwards { &self.outside } else { &self.inside };
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            if inwards {
                self.client = Some(from);
            }
            for extra in (self.injector)(inwards, &buffer[..length]) {
                self.forward(inwards, &extra);
            }
            self.treat(inwards, &buffer[..length]);
        }
        let now = Instant::now();
        let (due, delayed) =
            std::mem::take(&mut self.delayed).into_iter().partition(|one| one.0 <= now);
        self.delayed = delayed;
        let due: Vec<_> = due;
        due.iter().for_each(|(_, inwards, bytes)| self.forward(*inwards, bytes));
    }

    fn treat(&mut self, inwards: bool, bytes: &[u8]) {
        let is_data = inwards && bytes[0] & 0x80 == 0;
        if is_data && self.drops_next_data.swap(false, Ordering::Relaxed) {
            return;
        }
        let is_shutdown = inwards && bytes[..2] == [0x80, 5];
        let count = |left: u32| left.checked_sub(1);
        if is_shutdown
            && self
                .drops_shutdowns
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, count)
                .is_ok()
        {
            return;
        }
        let copies = 1 + usize::from(self.draw() < self.impairments.duplication);
        for _ in 0..copies {
            if self.draw() < self.impairments.loss {
                continue;
            }
            let mut bytes = bytes.to_vec();
            if self.draw() < self.impairments.corruption {
                let at = (self.draw() * bytes.len() as f64) as usize;
                bytes[at] ^= 1 << (self.draw() * 8.0) as u32;
            }
            let mut delay = self.impairments.latency;
            if self.draw() < self.impairments.delay {
                delay += Duration::from_micros((self.draw() * 5e3) as u64);
            }
            if delay.is_zero() {
                self.forward(inwards, &bytes);
            } else {
                self.delayed.push((Instant::now() + delay, inwards, bytes));
            }
        }
    }

    fn forward(&self, inwards: bool, bytes: &[u8]) {
        // A packet that cannot be sent counts as lost.
        let _ = match (inwards, self.client) {
            (true, _) => self.inside.send_to(bytes, self.server),
            (false, Some(client)) => self.outside.send_to(bytes, client),
            (false, None) => Ok(0),
        };
    }
}
