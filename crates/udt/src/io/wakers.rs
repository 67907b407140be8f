//! The tasks that wait for one kind of event.

use std::task::Waker;

/// Maximum number of tasks that wait at once. Of more, the first are woken too early and wait again.
#[cfg(feature = "tokio")]
const MAX_WAKERS: usize = 256;

/// Waiting tasks. Those that have stopped to wait remain until the event.
#[derive(Debug, Default)]
pub(super) struct Wakers(Vec<Waker>);

impl Wakers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a task, once.
    #[cfg(feature = "tokio")]
    pub(super) fn add(&mut self, waker: &Waker) {
        if self.0.iter().any(|known| known.will_wake(waker)) {
            return;
        }
        if self.0.len() == MAX_WAKERS {
            self.0.remove(0).wake();
        }
        self.0.push(waker.clone());
    }

    /// Wakes all tasks.
    pub(super) fn wake(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}
