//! An emulated path: a relay that runs two of the simulator's links in real time.

use super::BenchResult;
use dumbbell_net::{Limit, Link, LinkConfig, Packet, Reordering};
use dumbbell_units::{Span, Time};
use quinn_udp::{RecvMeta, UdpSocketState};
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long before a delivery the relay does not sleep.
const SPIN: Span = Span::from_micros(200);

/// Parameters of the path.
pub struct PathParameters {
    pub mbits: u64,
    pub rtt_ms: u64,
    /// Share of the packets that arrive 3 ms late.
    pub late: f64,
}

/// A UDP payload on a link.
#[derive(Clone)]
struct UdpPayload(Vec<u8>);

impl Packet for UdpPayload {
    fn size(&self) -> u32 {
        self.0.len() as u32 + 28
    }
}

/// Kernel timestamps of data packets at the relay. Packets of a GRO batch have the same one.
pub type Arrivals = Arc<Mutex<Vec<Duration>>>;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Two links between a server and the relay's last client.
pub struct Relay {
    pub port: u16,
    stopped: Arc<AtomicBool>,
    /// Bytes delivered to the server.
    pub delivered: Arc<AtomicU64>,
    pub arrivals: Arrivals,
}

impl Relay {
    pub fn start(
        server: SocketAddr,
        path: &PathParameters,
        loss: f64,
        seed: u64,
    ) -> BenchResult<Relay> {
        let bind = || -> BenchResult<UdpSocket> {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket2::SockRef::from(&socket).set_recv_buffer_size(8 << 20)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let (outside, inside) = (Arc::new(bind()?), Arc::new(bind()?));
        let port = outside.local_addr()?.port();
        let (stopped, delivered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (client, arrivals) = (Arc::new(Mutex::new(None)), Arrivals::default());
        let config = |seed| LinkConfig {
            rate: NonZeroU64::new(path.mbits * 1_000_000),
            delay: Span::from_micros(path.rtt_ms * 500),
            queue: Limit::Bytes(path.mbits * path.rtt_ms * 125),
            loss,
            reordering: Reordering { share: path.late, delay: Span::from_millis(3) },
            seed,
            ..LinkConfig::default()
        };
        for inwards in [true, false] {
            let (from, to) = if inwards { (&outside, &inside) } else { (&inside, &outside) };
            let mut direction = Direction {
                state: UdpSocketState::new((&**from).into())?,
                from: from.clone(),
                to: to.clone(),
                link: Link::new(&config(2 * seed + u64::from(inwards))),
                started: Instant::now(),
                fixed: inwards.then_some(server),
                client: client.clone(),
                delivered: delivered.clone(),
                arrivals: arrivals.clone(),
            };
            let stopped = stopped.clone();
            thread::spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                while !stopped.load(Ordering::Relaxed) {
                    direction.turn(&mut buffer);
                }
            });
        }
        Ok(Relay { port, stopped, delivered, arrivals })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// One direction.
struct Direction {
    state: UdpSocketState,
    from: Arc<UdpSocket>,
    to: Arc<UdpSocket>,
    link: Link<UdpPayload>,
    started: Instant,
    /// The destination towards the server; `None` for the opposite direction.
    fixed: Option<SocketAddr>,
    /// Source address of the last packet from a client.
    client: Arc<Mutex<Option<SocketAddr>>>,
    delivered: Arc<AtomicU64>,
    arrivals: Arrivals,
}

impl Direction {
    fn now(&self) -> Time {
        Time::from_nanos(self.started.elapsed().as_nanos() as u64)
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
                // The link may drop it.
                let _ = self.link.push(self.now(), UdpPayload(bytes.to_vec()));
            }
        }
        let to = self.fixed.or_else(|| *lock(&self.client));
        while let (Some(to), Some(UdpPayload(bytes))) = (to, self.link.pop(self.now())) {
            idle = false;
            if self.to.send_to(&bytes, to).is_ok() && self.fixed.is_some() {
                self.delivered.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
        }
        // Sleeping would deliver packets in batches, of which the receiver estimates a wrong capacity.
        let wait = self.link.next_arrival().since(self.now());
        if idle && wait > SPIN {
            thread::sleep(Duration::from_micros(50));
        } else if idle {
            thread::yield_now();
        }
    }
}
