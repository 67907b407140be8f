//! An emulated path: two of the simulator's links, driven by the clock, in a relay between peers.

use super::Outcome;
use dumbbell_net::{Limit, Link, LinkConfig, Packet};
use dumbbell_units::{Span, Time};
use quinn_udp::{RecvMeta, UdpSocketState};
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What the path is.
pub struct Course {
    pub mbits: u64,
    pub rtt_ms: u64,
}

/// Bytes on a link.
struct Bytes(Vec<u8>);

impl Packet for Bytes {
    fn size(&self) -> u32 {
        self.0.len() as u32 + 28
    }
}

/// When packets with data came to a relay, by the kernel's clock; those that came as one piece came
/// together.
pub type Arrivals = Arc<Mutex<Vec<Duration>>>;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Two links between a server and whoever talks to the relay.
pub struct Relay {
    pub port: u16,
    over: Arc<AtomicBool>,
    /// Bytes that reached the server.
    pub crossed: Arc<AtomicU64>,
    pub arrivals: Arrivals,
}

impl Relay {
    pub fn start(server: SocketAddr, course: &Course, loss: f64) -> Outcome<Relay> {
        let bind = || -> Outcome<UdpSocket> {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket2::SockRef::from(&socket).set_recv_buffer_size(8 << 20)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let (outside, inside) = (Arc::new(bind()?), Arc::new(bind()?));
        let port = outside.local_addr()?.port();
        let (over, crossed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (client, arrivals) = (Arc::new(Mutex::new(None)), Arrivals::default());
        let config = |seed, loss| LinkConfig {
            rate: NonZeroU64::new(course.mbits * 1_000_000),
            delay: Span::from_micros(course.rtt_ms * 500),
            queue: Limit::Bytes(course.mbits * course.rtt_ms * 125),
            loss,
            seed,
            ..LinkConfig::default()
        };
        for inwards in [true, false] {
            let (from, to) = if inwards { (&outside, &inside) } else { (&inside, &outside) };
            let mut way = Way {
                state: UdpSocketState::new((&**from).into())?,
                from: from.clone(),
                to: to.clone(),
                link: Link::new(&config(7 + u64::from(inwards), if inwards { loss } else { 0.0 })),
                began: Instant::now(),
                fixed: inwards.then_some(server),
                client: client.clone(),
                crossed: crossed.clone(),
                arrivals: arrivals.clone(),
            };
            let over = over.clone();
            thread::spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                while !over.load(Ordering::Relaxed) {
                    way.turn(&mut buffer);
                }
            });
        }
        Ok(Relay { port, over, crossed, arrivals })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// One direction.
struct Way {
    state: UdpSocketState,
    from: Arc<UdpSocket>,
    to: Arc<UdpSocket>,
    link: Link<Bytes>,
    began: Instant,
    /// The server, on the way to it.
    fixed: Option<SocketAddr>,
    /// Who talked to the relay last.
    client: Arc<Mutex<Option<SocketAddr>>>,
    crossed: Arc<AtomicU64>,
    arrivals: Arrivals,
}

impl Way {
    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn turn(&mut self, buffer: &mut [u8]) {
        let mut idle = true;
        let mut meta = [RecvMeta::default()];
        let (from, inwards) = (&*self.from, self.fixed.is_some());
        while self.state.recv(from.into(), &mut [IoSliceMut::new(buffer)], &mut meta).is_ok() {
            idle = false;
            let [meta] = &meta;
            if inwards {
                *lock(&self.client) = Some(meta.addr);
            }
            for bytes in buffer[..meta.len].chunks(meta.stride.max(1)) {
                if inwards && bytes[0] & 0x80 == 0 {
                    lock(&self.arrivals).extend(meta.timestamp);
                }
                // What is dropped is dropped.
                let _ = self.link.push(self.now(), Bytes(bytes.to_vec()));
            }
        }
        let to = self.fixed.or_else(|| *lock(&self.client));
        while let (Some(to), Some(Bytes(bytes))) = (to, self.link.pop(self.now())) {
            idle = false;
            if self.to.send_to(&bytes, to).is_ok() && self.fixed.is_some() {
                self.crossed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
        }
        if idle {
            thread::sleep(Duration::from_micros(50));
        }
    }
}
