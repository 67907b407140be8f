//! The connection's data as its sender sees it: acknowledged, available, to be reinjected on another
//! subflow.

use dumbbell_net::Application;
use dumbbell_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// Data that a packet of a subflow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    /// Data sequence number of its first byte.
    pub(super) dsn: u64,
    /// Bytes.
    pub(super) len: u16,
    /// Whether it ends a write (PSH).
    pub(super) is_pushed: bool,
}

impl Payload {
    /// The first byte after it.
    pub(super) fn end(self) -> u64 {
        self.dsn + u64::from(self.len)
    }
}

/// The data of a connection, numbered in bytes.
pub(super) struct DataStream {
    /// First byte not acknowledged.
    pub(super) una: u64,
    /// Next byte to be assigned to a subflow.
    pub(super) next_seq: u64,
    /// End of what was assigned so far, which is beyond `next_seq` after [`rewind`](Self::rewind).
    pub(super) snd_nxt: u64,
    /// End of the flow.
    end: u64,
    /// First byte beyond the receive window.
    pub(super) window_end: u64,
    mss: u16,
    application: Option<Application>,
    stop: Time,
    established_at: Option<Time>,
    /// When the application will have written the next packet; `Time::MAX` if that is not the limit.
    pub(super) wake_at: Time,
    /// Payloads to be reinjected, each with the subflow that has it already.
    reinject_queue: VecDeque<(Payload, u8)>,
    /// Payloads from `una` on in order, each with the subflows that it was assigned to, as bits (Linux
    /// `path_mask`).
    assigned: VecDeque<(Payload, u32)>,
    /// When all data was acknowledged.
    pub(super) completed: Option<Time>,
}

impl DataStream {
    pub(super) fn new(
        bytes: Option<u64>,
        app_rates: &[(Span, Rate)],
        stop: Option<Time>,
        mss: u16,
    ) -> DataStream {
        DataStream {
            una: 0,
            next_seq: 0,
            snd_nxt: 0,
            end: bytes.unwrap_or(u64::MAX),
            window_end: 0,
            mss,
            application: Application::from_rates(app_rates, mss),
            stop: stop.unwrap_or(Time::MAX),
            established_at: None,
            wake_at: Time::MAX,
            reinject_queue: VecDeque::new(),
            assigned: VecDeque::new(),
            completed: None,
        }
    }

    /// The connection is open, with a receive window up to `window_end`.
    pub(super) fn open(&mut self, now: Time, window_end: u64) {
        self.established_at = Some(now);
        self.window_end = window_end;
    }

    pub(super) fn is_open(&self) -> bool {
        self.established_at.is_some()
    }

    /// A data acknowledgement arrived, with the `window` beyond it. One of data that was never sent does
    /// not count (`ack_update_msk`).
    #[inline]
    pub(super) fn acknowledge(&mut self, now: Time, next: u64, window: u64) {
        let next = if next > self.snd_nxt { self.una } else { next };
        self.una = self.una.max(next);
        while self.assigned.front().is_some_and(|(payload, _)| payload.end() <= self.una) {
            self.assigned.pop_front();
        }
        self.next_seq = self.next_seq.max(self.una);
        self.window_end = self.window_end.max(next + window);
        if self.una == self.end && self.completed.is_none() {
            self.completed = Some(now);
        }
    }

    /// Records that an unacknowledged payload was assigned to `subflow`.
    #[inline]
    pub(super) fn record_path(&mut self, payload: Payload, subflow: usize) {
        let at = match self.assigned.back() {
            Some((last, _)) if payload.dsn <= last.dsn => {
                self.assigned.partition_point(|(other, _)| other.dsn < payload.dsn)
            }
            _ => self.assigned.len(),
        };
        match self.assigned.get_mut(at) {
            Some((other, paths)) if other.dsn == payload.dsn => {
                other.len = other.len.max(payload.len);
                *paths |= 1 << subflow;
            }
            _ => self.assigned.insert(at, (payload, 1 << subflow)),
        }
    }

    /// Data up to `number` is assigned.
    #[inline]
    pub(super) fn advance(&mut self, number: u64) {
        self.next_seq = number;
        self.snd_nxt = self.snd_nxt.max(number);
    }

    /// All unacknowledged data is to be assigned again (`__mptcp_retransmit_pending_data`); returns how
    /// many packets.
    pub(super) fn rewind(&mut self) -> u64 {
        self.next_seq = self.una;
        (self.snd_nxt - self.una).div_ceil(u64::from(self.mss))
    }

    /// The first payload that is not acknowledged, and the subflows that it was assigned to, as bits.
    pub(super) fn first_assigned(&self) -> Option<(Payload, u32)> {
        self.assigned.front().copied()
    }

    /// New data available, regardless of the receive window, bytes.
    #[inline]
    pub(super) fn unsent(&mut self, now: Time) -> u64 {
        self.wake_at = Time::MAX;
        let Some(opened) = self.established_at.filter(|_| now < self.stop) else { return 0 };
        let mut end = self.end;
        if let Some(application) = &self.application {
            let packets = application.written(now.since(opened));
            let written = u64::from(packets) * u64::from(self.mss);
            if written < end {
                end = written;
                if self.next_seq >= written {
                    self.wake_at = opened + application.due(packets + 1);
                }
            }
        }
        end.saturating_sub(self.next_seq)
    }

    /// Whether a payload ends the data.
    #[inline]
    pub(super) fn is_last(&self, payload: Payload) -> bool {
        payload.end() == self.end
    }

    /// Queues payloads of `subflow` for reinjection on others.
    pub(super) fn reinject(&mut self, subflow: u8, payloads: impl Iterator<Item = Payload>) {
        let una = self.una;
        let is_waiting = |payload: Payload| payload.end() > una;
        self.reinject_queue.retain(|&(payload, from)| from != subflow && is_waiting(payload));
        self.reinject_queue.extend(
            payloads.filter(|&payload| is_waiting(payload)).map(|payload| (payload, subflow)),
        );
    }

    /// Whether payloads are queued for reinjection.
    #[inline]
    pub(super) fn has_reinjections(&mut self) -> bool {
        while self.reinject_queue.front().is_some_and(|(payload, _)| payload.end() <= self.una) {
            self.reinject_queue.pop_front();
        }
        !self.reinject_queue.is_empty()
    }

    /// The next payload to reinject on `subflow`. Its own payloads are removed from the queue: it is
    /// available, so it retransmits them itself.
    pub(super) fn next_reinjection(&mut self, subflow: u8) -> Option<Payload> {
        while let Some((payload, from)) = self.reinject_queue.pop_front() {
            if payload.end() > self.una && from != subflow {
                return Some(payload);
            }
        }
        None
    }
}
