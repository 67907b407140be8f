//! Transfers over sockets: data over UDP, control messages over TCP. Each end has a thread.

use crate::engine::{Channel, Engine, Stats};
use dumbbell_units::{Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;

/// Datagrams that are received or sent before the other direction has its turn.
const BATCH: usize = 64;
/// A wait shorter than this is spent polling: it is about how late a sleeping thread wakes up.
const SPIN: Span = Span::from_micros(100);
/// Maximum bytes of control messages that the peer has not read.
const MAX_UNWRITTEN: usize = 1 << 26;
/// Maximum time between two looks at whether the transfer is to stop.
const STOP_INTERVAL: Span = Span::from_millis(20);

/// One end of a transfer, on a thread of its own. Dropping it ends the thread.
#[derive(Debug)]
pub struct Transfer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread shows to others.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    is_stopped: AtomicBool,
}

/// The state of an end at its last iteration.
#[derive(Clone, Debug, Default)]
struct State {
    stats: Stats,
    internals: Vec<(&'static str, f64)>,
    failure: Option<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the state")
    }
}

impl Transfer {
    /// Starts an end, whose time begins now. `data` is connected to the peer's UDP socket; `control`
    /// makes the connection for control messages, on the thread: the receiver connects, the sender
    /// accepts. It is called with a function that says whether to give up.
    ///
    /// # Errors
    /// If the socket cannot be prepared or there is no thread.
    pub fn start(
        engine: impl Engine + 'static,
        data: UdpSocket,
        control: impl FnOnce(&dyn Fn() -> bool) -> Result<TcpStream> + Send + 'static,
    ) -> Result<Transfer> {
        data.set_nonblocking(true)?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let clock = Instant::now();
        let thread = std::thread::Builder::new().name("bulk".to_owned()).spawn(move || {
            let gives_up = || of_thread.is_stopped.load(Ordering::Relaxed);
            let ended = control(&gives_up).and_then(|control| {
                control.set_nonblocking(true)?;
                control.set_nodelay(true)?;
                End { engine, data, control, clock, shared: &of_thread }.run()
            });
            let mut state = of_thread.state();
            // A complete transfer has not failed, even if the peer resets the connection.
            if state.stats.completed.is_none() {
                state.failure = ended.err().map(|error| error.to_string());
            }
        })?;
        Ok(Transfer { shared, thread: Some(thread) })
    }

    /// Counters and current values; times are since the start.
    pub fn stats(&self) -> Stats {
        self.shared.state().stats
    }

    /// Internal variables: name and value.
    pub fn internals(&self) -> Vec<(&'static str, f64)> {
        self.shared.state().internals.clone()
    }

    /// Why the transfer ended early; `None` if it did not.
    pub fn failure(&self) -> Option<String> {
        self.shared.state().failure.clone()
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's side of an end.
struct End<'a, E> {
    engine: E,
    data: UdpSocket,
    control: TcpStream,
    clock: Instant,
    shared: &'a Shared,
}

impl<E: Engine> End<'_, E> {
    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Runs until the peer has closed the connection, or it is stopped. Once the transfer is complete, it
    /// only ends the stream: a socket that is closed may reset the connection, and the peer miss the end.
    fn run(mut self) -> Result<()> {
        let (mut buffer, mut out, mut unwritten) = (vec![0; 1 << 16], Vec::new(), Vec::new());
        while !self.shared.is_stopped.load(Ordering::Relaxed) {
            let is_open = self.receive(&mut buffer)?;
            self.send(&mut out, &mut unwritten)?;
            self.show();
            if !is_open {
                return Ok(());
            }
            if self.engine.stats().completed.is_some() && unwritten.is_empty() {
                self.control.shutdown(Shutdown::Write)?;
            }
            self.wait(!unwritten.is_empty());
        }
        Ok(())
    }

    /// Passes on what has arrived; returns whether the connection is open.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool> {
        let now = self.now();
        for _ in 0..BATCH {
            match self.data.recv(buffer) {
                Ok(length) => self.pass(now, Channel::Data, &buffer[..length])?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The peer's socket is not there yet, or no longer.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
        match self.control.read(buffer) {
            Ok(0) => return Ok(false),
            Ok(length) => self.pass(now, Channel::Control, &buffer[..length])?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    fn pass(&mut self, now: Time, channel: Channel, bytes: &[u8]) -> Result<()> {
        let handled = self.engine.handle(now, channel, bytes);
        handled.map_err(|error| Error::new(ErrorKind::InvalidData, error))
    }

    fn send(&mut self, out: &mut Vec<u8>, unwritten: &mut Vec<u8>) -> Result<()> {
        for _ in 0..BATCH {
            out.clear();
            match self.engine.poll(self.now(), out) {
                None => break,
                Some(Channel::Control) => unwritten.append(out),
                // A datagram that the socket does not take is lost, as in the network.
                Some(Channel::Data) => drop(self.data.send(out)),
            }
        }
        if unwritten.len() > MAX_UNWRITTEN {
            return Err(Error::new(ErrorKind::TimedOut, "the peer does not read control messages"));
        }
        while !unwritten.is_empty() {
            match self.control.write(unwritten) {
                Ok(length) => drop(unwritten.drain(..length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn show(&mut self) {
        let mut state = self.shared.state();
        state.stats = self.engine.stats();
        state.internals.clear();
        self.engine.inspect(&mut |name, value| state.internals.push((name, value)));
    }

    /// Waits for a packet, or until shortly before the next timeout.
    fn wait(&self, writes: bool) {
        let left = self.engine.next_timeout().since(self.now());
        if left < SPIN {
            return std::thread::yield_now();
        }
        let left = left.saturating_sub(SPIN).min(STOP_INTERVAL).as_nanos();
        let timeout = Timespec { tv_sec: 0, tv_nsec: left as i64 };
        let writable = if writes { PollFlags::OUT } else { PollFlags::empty() };
        let mut sockets = [
            PollFd::new(&self.data, PollFlags::IN),
            PollFd::new(&self.control, PollFlags::IN | writable),
        ];
        // An error, such as an interrupt, is a short wait.
        let _ = rustix::event::poll(&mut sockets, Some(&timeout));
    }
}
