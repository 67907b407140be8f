//! A relay between a client and a server that treats packets badly.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What happens to packets: probabilities, and how late one may be.
#[derive(Clone, Copy, Default)]
pub struct Harm {
    pub loss: f64,
    pub twice: f64,
    pub late: f64,
    pub corruption: f64,
}

/// Sees every packet: which way it goes (`true` to the server), its bytes; what it gives goes there
/// as well.
pub type Intruder = Box<dyn FnMut(bool, &[u8]) -> Vec<Vec<u8>> + Send>;

/// A relay; it stops with this.
pub struct Relay {
    address: SocketAddr,
    swallows: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Traffic {
    inside: UdpSocket,
    outside: UdpSocket,
    server: SocketAddr,
    client: Option<SocketAddr>,
    harm: Harm,
    random: u64,
    intruder: Intruder,
    /// The next packet with data for the server is lost.
    swallows: Arc<AtomicBool>,
    /// Packets to be sent later.
    late: Vec<(Instant, bool, Vec<u8>)>,
}

impl Relay {
    pub fn start(server: SocketAddr, harm: Harm, seed: u64, intruder: Intruder) -> Relay {
        let bind = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
            let patience = Some(Duration::from_millis(1));
            socket.set_read_timeout(patience).expect("it is not zero");
            socket
        };
        let (inside, outside) = (bind(), bind());
        let address = outside.local_addr().expect("it is bound");
        let over = Arc::new(AtomicBool::new(false));
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let (client, late) = (None, Vec::new());
        let swallows = Arc::new(AtomicBool::new(false));
        let mut traffic = Traffic {
            inside,
            outside,
            server,
            client,
            harm,
            random,
            intruder,
            swallows: swallows.clone(),
            late,
        };
        let stop = over.clone();
        let thread = Some(thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                traffic.turn();
            }
        }));
        Relay { address, swallows, over, thread }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Loses the next packet with data for the server.
    pub fn swallow_one(&self) {
        self.swallows.store(true, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

impl Traffic {
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
            for extra in (self.intruder)(inwards, &buffer[..length]) {
                self.forward(inwards, &extra);
            }
            self.treat(inwards, &buffer[..length]);
        }
        let now = Instant::now();
        let (due, late) = std::mem::take(&mut self.late).into_iter().partition(|one| one.0 <= now);
        self.late = late;
        let due: Vec<_> = due;
        due.iter().for_each(|(_, inwards, bytes)| self.forward(*inwards, bytes));
    }

    fn treat(&mut self, inwards: bool, bytes: &[u8]) {
        let is_data = inwards && bytes[0] & 0x80 == 0;
        if is_data && self.swallows.swap(false, Ordering::Relaxed) {
            return;
        }
        let copies = 1 + usize::from(self.draw() < self.harm.twice);
        for _ in 0..copies {
            if self.draw() < self.harm.loss {
                continue;
            }
            let mut bytes = bytes.to_vec();
            if self.draw() < self.harm.corruption {
                let at = (self.draw() * bytes.len() as f64) as usize;
                bytes[at] ^= 1 << (self.draw() * 8.0) as u32;
            }
            if self.draw() < self.harm.late {
                let when = Instant::now() + Duration::from_micros((self.draw() * 5e3) as u64);
                self.late.push((when, inwards, bytes));
            } else {
                self.forward(inwards, &bytes);
            }
        }
    }

    fn forward(&self, inwards: bool, bytes: &[u8]) {
        // What cannot be sent is lost, as may happen to anything here.
        let _ = match (inwards, self.client) {
            (true, _) => self.inside.send_to(bytes, self.server),
            (false, Some(client)) => self.outside.send_to(bytes, client),
            (false, None) => Ok(0),
        };
    }
}
