//! State shared by the driver thread and the application's threads.

use super::clock::{Clock, span};
use super::crypto::CryptoState;
use super::error::Error;
use super::settings::Settings;
use super::wakers::Wakers;
use crate::connection::{CloseReason, Connection};
use crate::receiver::ReceiverStats;
use dumbbell_cc::SenderStats;
use dumbbell_net::Endpoint;
use dumbbell_units::{Span, Time};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "tokio")]
use std::task::Waker;
use std::time::{Duration, Instant};

/// The application's handle of a driver: schedules connections and wakes the driver.
pub(super) struct DriverHandle {
    pub(super) clock: Clock,
    /// Socket ids that the driver must poll.
    dirty: Mutex<Vec<u32>>,
    /// Whether the driver sleeps, or will before it reads `dirty` again.
    asleep: AtomicBool,
    wake_tx: UnixStream,
    /// The listener was dropped.
    listener_closed: AtomicBool,
}

impl DriverHandle {
    pub(super) fn new(clock: Clock) -> io::Result<(DriverHandle, UnixStream)> {
        let (wake_tx, wake_rx) = UnixStream::pair()?;
        wake_tx.set_nonblocking(true)?;
        wake_rx.set_nonblocking(true)?;
        let (dirty, asleep, listener_closed) = Default::default();
        Ok((DriverHandle { clock, dirty, asleep, wake_tx, listener_closed }, wake_rx))
    }

    fn wake(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // If the pipe is full, the driver is woken already.
            let _ = (&self.wake_tx).write(&[1]);
        }
    }

    /// Makes the driver poll a socket.
    fn mark_dirty(&self, socket: u32) {
        lock(&self.dirty).push(socket);
        self.wake();
    }

    /// Tells the driver that the listener was dropped.
    pub(super) fn close_listener(&self) {
        self.listener_closed.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Whether the listener was dropped.
    pub(super) fn is_listener_closed(&self) -> bool {
        self.listener_closed.load(Ordering::SeqCst)
    }

    /// Moves the dirty socket ids to `into`.
    pub(super) fn take_dirty(&self, into: &mut Vec<u32>) {
        into.append(&mut lock(&self.dirty));
    }

    /// Announces that the driver will sleep; `false` if it must not.
    pub(super) fn prepare_sleep(&self, listens: bool) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let may = lock(&self.dirty).is_empty() && !(listens && self.is_listener_closed());
        if !may {
            self.set_awake();
        }
        may
    }

    /// Announces that the driver is awake.
    pub(super) fn set_awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }
}

/// A connection, shared.
pub(super) struct SharedConnection {
    pub(super) id: u32,
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
    /// Time after which closing gives up, unless the application says another.
    pub(super) linger: Duration,
    driver: std::sync::Arc<DriverHandle>,
    is_dirty: AtomicBool,
    state: Mutex<SharedState>,
    readable: Condvar,
    writable: Condvar,
}

/// The part of a shared connection behind its lock.
pub(super) struct SharedState {
    pub(super) engine: Connection,
    pub(super) crypto: CryptoState,
    /// Deadline of the Noise handshake.
    pub(super) ready_deadline: Time,
    /// A failure outside the engine.
    pub(super) failed: Option<Failure>,
    opened_at: Option<Time>,
    /// The connection is closed, and the peer knows it as far as this end can ensure.
    pub(super) parted: bool,
    /// The driver has done with the engine.
    ended: bool,
    /// No socket is left.
    unused: bool,
    /// Time of the driver's next poll.
    pub(super) next_scheduled: Time,
    readers: u32,
    /// Waiting writers, and the space that they need, bytes.
    writers: u32,
    wanted: usize,
    /// Waiting tasks: of readers, of writers, and of those that wait for the end.
    reading: Wakers,
    writing: Wakers,
    closing: Wakers,
}

/// What a task waits for.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Data to read.
    Read,
    /// An open connection, and so many bytes of free send buffer.
    Write(usize),
    /// The end of the connection.
    Close,
}

/// Failure of a connection outside the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The peer has a different key or none.
    Key,
    /// The interface to the peer carries no packet of this size, bytes.
    TooLong(u32),
}

/// Counters and current values of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Time since the connection was established.
    pub elapsed: Span,
    /// The sender's.
    pub sender: SenderStats,
    /// The receiver's.
    pub receiver: ReceiverStats,
    /// Payload of a full packet, bytes.
    pub max_payload: usize,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The state behind these locks is consistent after each statement, so poisoning is harmless.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedState {
    /// Why the connection is unusable; `None` while it is not.
    pub(super) fn error(&self) -> Option<Error> {
        match self.failed {
            Some(Failure::Key) => Some(Error::Key),
            Some(Failure::TooLong(bytes)) => Some(Error::PacketTooLong(bytes)),
            None => self.engine.close_reason().map(|ended| match (ended, self.opened_at) {
                (CloseReason::TimedOut, None) => Error::ConnectTimeout,
                _ => ended.into(),
            }),
        }
    }

    /// How closing ended: it fails if sent data is not acknowledged. `None` before its end.
    pub(super) fn closed(&self) -> Option<Result<(), Error>> {
        Some(match self.error()? {
            Error::Closed if self.engine.has_unacknowledged() => Err(Error::LingerTimeout),
            Error::PeerClosed if self.engine.has_unacknowledged() => Err(Error::PeerClosed),
            Error::Closed | Error::PeerClosed => Ok(()),
            error => Err(error),
        })
    }

    /// Whether the application may use the connection.
    pub(super) fn is_ready(&self) -> bool {
        self.engine.is_open() && self.crypto.is_ready()
    }

    /// Time at which the driver must poll the connection.
    pub(super) fn next_timeout(&self) -> Time {
        let next = self.engine.next_timeout().min(self.crypto.next_timeout());
        if self.crypto.is_ready() { next } else { next.min(self.ready_deadline) }
    }

    /// Whether the send buffer has the space that waiting writers need.
    fn has_send_space(&self) -> bool {
        self.engine.send_buffer_free() >= self.wanted.max(1)
    }

    /// Notes that the driver does not poll the engine any more.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.free_if_unused();
    }

    /// Notes that no socket is left.
    pub(super) fn abandon(&mut self) {
        self.unused = true;
        self.free_if_unused();
    }

    fn free_if_unused(&mut self) {
        if self.ended && self.unused {
            self.engine.free_buffers();
        }
    }

    pub(super) fn statistics(&self, now: Time) -> Statistics {
        Statistics {
            elapsed: self.opened_at.map_or(Span::ZERO, |opened| now.since(opened)),
            sender: self.engine.sender_stats(),
            receiver: self.engine.receiver_stats(),
            max_payload: self.engine.max_payload(),
        }
    }
}

impl SharedConnection {
    pub(super) fn new(
        (id, local, peer): (u32, SocketAddr, SocketAddr),
        driver: std::sync::Arc<DriverHandle>,
        engine: Connection,
        crypto: CryptoState,
        settings: &Settings,
    ) -> SharedConnection {
        let state = SharedState {
            engine,
            crypto,
            ready_deadline: driver.clock.now() + span(settings.connect_timeout),
            failed: None,
            opened_at: None,
            parted: false,
            ended: false,
            unused: false,
            next_scheduled: Time::ZERO,
            readers: 0,
            writers: 0,
            wanted: 0,
            reading: Wakers::default(),
            writing: Wakers::default(),
            closing: Wakers::default(),
        };
        SharedConnection {
            id,
            peer,
            local,
            linger: settings.linger,
            driver,
            is_dirty: AtomicBool::new(false),
            state: Mutex::new(state),
            readable: Condvar::new(),
            writable: Condvar::new(),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.driver.clock.now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SharedState> {
        lock(&self.state)
    }

    /// Clears the dirty flag before a poll: later events set it again.
    pub(super) fn clear_dirty(&self) {
        self.is_dirty.store(false, Ordering::SeqCst);
    }

    /// Notifies the driver after an operation of the application, if its next poll would be too late.
    pub(super) fn notify_driver(&self, state: &SharedState) {
        if state.next_timeout() < state.next_scheduled
            && !self.is_dirty.swap(true, Ordering::SeqCst)
        {
            self.driver.mark_dirty(self.id);
        }
    }

    /// Starts to close the connection, which ends after `linger` at the latest.
    pub(super) fn start_close(&self, state: &mut SharedState, linger: Duration) {
        state.engine.close_by(self.now() + span(linger));
        self.notify_driver(state);
    }

    /// Wakes waiting readers and writers after a poll by the driver.
    pub(super) fn notify_waiters(&self, state: &mut SharedState, now: Time) {
        let over = state.error().is_some();
        if state.opened_at.is_none() && state.is_ready() {
            state.opened_at = Some(now);
            self.writable.notify_all();
        }
        let reads = state.readers > 0 || !state.reading.is_empty();
        if reads && (over || state.engine.is_readable()) {
            self.readable.notify_all();
            state.reading.wake();
        }
        let writes = state.writers > 0 || !state.writing.is_empty();
        if writes && (over || state.has_send_space()) {
            self.writable.notify_all();
            state.writing.wake();
        }
        if over {
            state.closing.wake();
        }
    }

    /// Wakes those who wait until the peer knows that the connection is closed.
    pub(super) fn end_parting(&self, state: &mut SharedState) {
        state.parted = true;
        self.readable.notify_all();
    }

    /// Waits until the driver signals data to read or the end of the connection.
    ///
    /// # Errors
    /// [`Error::TimedOut`] at `deadline`.
    pub(super) fn wait_readable<'a>(
        &'a self,
        mut state: MutexGuard<'a, SharedState>,
        deadline: Option<Instant>,
    ) -> Result<MutexGuard<'a, SharedState>, Error> {
        state.readers += 1;
        let (mut state, in_time) = wait(&self.readable, state, deadline);
        state.readers -= 1;
        if in_time { Ok(state) } else { Err(Error::TimedOut) }
    }

    /// Waits until the driver signals an open connection, `wanted` bytes of free send buffer, or the
    /// end of the connection.
    ///
    /// # Errors
    /// [`Error::TimedOut`] at `deadline`.
    pub(super) fn wait_writable<'a>(
        &'a self,
        mut state: MutexGuard<'a, SharedState>,
        wanted: usize,
        deadline: Option<Instant>,
    ) -> Result<MutexGuard<'a, SharedState>, Error> {
        state.writers += 1;
        state.wanted = wanted;
        let (mut state, in_time) = wait(&self.writable, state, deadline);
        state.writers -= 1;
        if in_time { Ok(state) } else { Err(Error::TimedOut) }
    }

    /// Registers a task to be woken by an event or the end of the connection.
    #[cfg(feature = "tokio")]
    pub(super) fn register(state: &mut SharedState, waker: &Waker, event: Wait) {
        match event {
            Wait::Read => state.reading.add(waker),
            Wait::Write(wanted) => {
                state.wanted = wanted;
                state.writing.add(waker);
            }
            Wait::Close => state.closing.add(waker),
        }
    }
}

/// Waits for a notification; `false` if the deadline passes first.
pub(super) fn wait<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    deadline: Option<Instant>,
) -> (MutexGuard<'a, T>, bool) {
    let Some(deadline) = deadline else {
        return (condition.wait(guard).unwrap_or_else(PoisonError::into_inner), true);
    };
    let left = deadline.saturating_duration_since(Instant::now());
    let (guard, timeout) =
        condition.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
    (guard, !timeout.timed_out())
}
