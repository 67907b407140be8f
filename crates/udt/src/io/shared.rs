//! A connection as its driver and the program's threads share it.

use super::clock::Clock;
use super::crypto::CryptoState;
use super::error::Error;
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
use std::task::Waker;
use std::time::Instant;

/// What programs tell a driver.
pub(super) struct DriverHandle {
    pub(super) clock: Clock,
    /// Sockets that want to be looked at.
    dirty: Mutex<Vec<u32>>,
    /// Whether the driver waits for the network, or will before it looks here again.
    asleep: AtomicBool,
    wake_tx: UnixStream,
    /// The listener has gone.
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
            // A bell that is full rings already.
            let _ = (&self.wake_tx).write(&[1]);
        }
    }

    /// Has the driver look at a socket.
    fn mark_dirty(&self, socket: u32) {
        lock(&self.dirty).push(socket);
        self.wake();
    }

    /// The listener is not needed any more.
    pub(super) fn close_listener(&self) {
        self.listener_closed.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Whether the listener is not needed any more.
    pub(super) fn is_listener_closed(&self) -> bool {
        self.listener_closed.load(Ordering::SeqCst)
    }

    /// The sockets to look at.
    pub(super) fn take_dirty(&self, into: &mut Vec<u32>) {
        into.append(&mut lock(&self.dirty));
    }

    /// The driver is about to sleep; `false` if there is something new.
    pub(super) fn prepare_sleep(&self, listens: bool) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let may = lock(&self.dirty).is_empty() && !(listens && self.is_listener_closed());
        if !may {
            self.set_awake();
        }
        may
    }

    /// The driver is awake.
    pub(super) fn set_awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }
}

/// A connection.
pub(super) struct SharedConnection {
    pub(super) id: u32,
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
    driver: std::sync::Arc<DriverHandle>,
    is_dirty: AtomicBool,
    state: Mutex<SharedState>,
    readable: Condvar,
    writable: Condvar,
}

/// What is behind the lock.
pub(super) struct SharedState {
    pub(super) engine: Connection,
    pub(super) crypto: CryptoState,
    /// When it is given up if it is not ready; it may be asked for later.
    pub(super) ready_deadline: Time,
    /// Why it has ended, if the engine does not know.
    pub(super) failed: Option<Failure>,
    opened_at: Option<Time>,
    /// When the driver will look at it next.
    pub(super) next_scheduled: Time,
    readers: u32,
    /// Writers that wait, and for how many bytes at least.
    writers: u32,
    wanted: usize,
    read_waker: Option<Waker>,
    write_waker: Option<Waker>,
}

/// Why a connection has failed beside the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The peer has another key, or none.
    Key,
}

/// What is known of a connection: counters and present values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Since the connection was open.
    pub elapsed: Span,
    /// Of what is sent.
    pub sender: SenderStats,
    /// Of what arrives.
    pub receiver: ReceiverStats,
    /// Payload of a full packet, bytes.
    pub max_payload: usize,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedState {
    /// Why nothing more comes of it, if that is so.
    pub(super) fn error(&self) -> Option<Error> {
        match self.failed {
            Some(Failure::Key) => Some(Error::Key),
            None => self.engine.close_reason().map(|ended| match (ended, self.opened_at) {
                (CloseReason::TimedOut, None) => Error::ConnectTimeout,
                _ => ended.into(),
            }),
        }
    }

    /// Whether the application may use it.
    pub(super) fn is_ready(&self) -> bool {
        self.engine.is_open() && self.crypto.is_ready()
    }

    /// When the driver has to look at it.
    pub(super) fn next_timeout(&self) -> Time {
        let next = self.engine.next_timeout().min(self.crypto.next_timeout());
        if self.crypto.is_ready() { next } else { next.min(self.ready_deadline) }
    }

    /// Bytes that a writer is woken for: what it wants, or a quarter of the buffer.
    fn has_send_space(&self) -> bool {
        self.engine.send_buffer_free() >= self.wanted.max(1)
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
        ready_deadline: Time,
    ) -> SharedConnection {
        let state = SharedState {
            engine,
            crypto,
            ready_deadline: ready_deadline,
            failed: None,
            opened_at: None,
            next_scheduled: Time::ZERO,
            readers: 0,
            writers: 0,
            wanted: 0,
            read_waker: None,
            write_waker: None,
        };
        SharedConnection {
            id,
            peer,
            local,
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

    /// The driver looks at it now, whatever is asked for from here on it is poked for.
    pub(super) fn clear_dirty(&self) {
        self.is_dirty.store(false, Ordering::SeqCst);
    }

    /// The program has done something: has the driver look if it would too late.
    pub(super) fn notify_driver(&self, state: &SharedState) {
        if state.next_timeout() < state.next_scheduled
            && !self.is_dirty.swap(true, Ordering::SeqCst)
        {
            self.driver.mark_dirty(self.id);
        }
    }

    /// The driver has done something: wakes whom it concerns.
    pub(super) fn notify_waiters(&self, state: &mut SharedState, now: Time) {
        let over = state.error().is_some();
        if state.opened_at.is_none() && state.is_ready() {
            state.opened_at = Some(now);
            self.writable.notify_all();
        }
        if (state.readers > 0 || state.read_waker.is_some()) && (over || state.engine.is_readable())
        {
            self.readable.notify_all();
            state.read_waker.take().into_iter().for_each(Waker::wake);
        }
        let waits = state.writers > 0 || state.write_waker.is_some();
        if waits && (over || state.has_send_space()) {
            self.writable.notify_all();
            state.write_waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Waits until there is something to read, or `deadline`.
    pub(super) fn wait_readable<'a>(
        &'a self,
        mut state: MutexGuard<'a, SharedState>,
        deadline: Option<Instant>,
    ) -> Result<MutexGuard<'a, SharedState>, Error> {
        state.readers += 1;
        let (mut state, timely) = wait(&self.readable, state, deadline);
        state.readers -= 1;
        if timely { Ok(state) } else { Err(Error::TimedOut) }
    }

    /// Waits until the connection is open, there is room for `wanted` bytes, or it has ended.
    pub(super) fn wait_writable<'a>(
        &'a self,
        mut state: MutexGuard<'a, SharedState>,
        wanted: usize,
        deadline: Option<Instant>,
    ) -> Result<MutexGuard<'a, SharedState>, Error> {
        state.writers += 1;
        state.wanted = wanted;
        let (mut state, timely) = wait(&self.writable, state, deadline);
        state.writers -= 1;
        if timely { Ok(state) } else { Err(Error::TimedOut) }
    }

    /// Has the task of an asynchronous program woken when there is something to read, or room for
    /// `wanted` bytes.
    #[cfg(feature = "tokio")]
    pub(super) fn register(state: &mut SharedState, waker: &Waker, wanted: Option<usize>) {
        let slot = match wanted {
            None => &mut state.read_waker,
            Some(wanted) => {
                state.wanted = wanted;
                &mut state.write_waker
            }
        };
        *slot = Some(waker.clone());
    }
}

/// Waits until something is announced; `false` if the deadline comes first.
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
