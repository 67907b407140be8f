//! The connection's data as its sender sees it: acknowledged, available, to be reinjected on another
//! subflow.

use dumbbell_net::Application;
use dumbbell_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// The data of a connection, numbered in packets.
pub(super) struct DataStream {
    /// First packet not acknowledged.
    pub(super) una: u32,
    /// Next packet to be assigned to a subflow.
    pub(super) next_seq: u32,
    /// One past the last packet assigned so far, which is beyond `next_seq` after [`rewind`](Self::rewind).
    pub(super) snd_nxt: u32,
    /// One past the last packet of the flow.
    end: u32,
    /// First packet beyond the receive window.
    pub(super) window_end: u32,
    bytes: Option<u64>,
    mss: u16,
    application: Option<Application>,
    stop: Time,
    established_at: Option<Time>,
    /// When the application will have written the next packet; `Time::MAX` if that is not the limit.
    pub(super) wake_at: Time,
    /// Packets to be reinjected, each with the subflow that has it already.
    reinject_queue: VecDeque<(u32, u8)>,
    /// Subflows that each packet from `una` on was assigned to, as bits (Linux `path_mask`).
    path_masks: VecDeque<u32>,
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
            end: bytes.map_or(u32::MAX, |bytes| bytes.div_ceil(u64::from(mss)) as u32),
            window_end: 0,
            bytes,
            mss,
            application: Application::from_rates(app_rates, mss),
            stop: stop.unwrap_or(Time::MAX),
            established_at: None,
            wake_at: Time::MAX,
            reinject_queue: VecDeque::new(),
            path_masks: VecDeque::new(),
            completed: None,
        }
    }

    /// The connection is open.
    pub(super) fn open(&mut self, now: Time, window: u32) {
        self.established_at = Some(now);
        self.window_end = window;
    }

    pub(super) fn is_open(&self) -> bool {
        self.established_at.is_some()
    }

    /// A data acknowledgement arrived.
    #[inline]
    pub(super) fn acknowledge(&mut self, now: Time, number: u32, window: u32) {
        let una = self.una.max(number.min(self.snd_nxt));
        let acked = (una - self.una) as usize;
        self.path_masks.drain(..acked.min(self.path_masks.len()));
        self.una = una;
        self.next_seq = self.next_seq.max(una);
        self.window_end = self.window_end.max(number.saturating_add(window));
        if self.una == self.end && self.completed.is_none() {
            self.completed = Some(now);
        }
    }

    /// Records that an unacknowledged packet was assigned to `subflow`.
    #[inline]
    pub(super) fn record_path(&mut self, number: u32, subflow: usize) {
        let index = (number - self.una) as usize;
        if self.path_masks.len() <= index {
            self.path_masks.resize(index + 1, 0);
        }
        self.path_masks[index] |= 1 << subflow;
    }

    /// Packets up to `number` are assigned.
    #[inline]
    pub(super) fn advance(&mut self, number: u32) {
        self.next_seq = number;
        self.snd_nxt = self.snd_nxt.max(number);
    }

    /// All unacknowledged packets are to be assigned again (`__mptcp_retransmit_pending_data`); returns
    /// their number.
    pub(super) fn rewind(&mut self) -> u32 {
        self.next_seq = self.una;
        self.snd_nxt - self.una
    }

    /// Subflows that `una` was assigned to, as bits.
    pub(super) fn path_mask_of_una(&self) -> u32 {
        self.path_masks.front().copied().unwrap_or(0)
    }

    /// New packets available, regardless of the receive window.
    #[inline]
    pub(super) fn unsent(&mut self, now: Time) -> u32 {
        self.wake_at = Time::MAX;
        let Some(opened) = self.established_at.filter(|_| now < self.stop) else { return 0 };
        let mut end = self.end;
        if let Some(application) = &self.application {
            let written = application.written(now.since(opened));
            if written < end {
                end = written;
                if self.next_seq >= written {
                    self.wake_at = opened + application.due(written + 1);
                }
            }
        }
        end.saturating_sub(self.next_seq)
    }

    /// Whether a packet ends the data.
    #[inline]
    pub(super) fn is_last(&self, number: u32) -> bool {
        number + 1 == self.end
    }

    /// Payload bytes of a packet.
    #[inline]
    pub(super) fn payload(&self, number: u32) -> u16 {
        match self.bytes {
            Some(bytes) if self.is_last(number) => {
                (bytes - u64::from(number) * u64::from(self.mss)) as u16
            }
            _ => self.mss,
        }
    }

    /// Payload bytes acknowledged.
    pub(super) fn acked_bytes(&self) -> u64 {
        let acked = u64::from(self.una) * u64::from(self.mss);
        self.bytes.map_or(acked, |bytes| acked.min(bytes))
    }

    /// Queues packets of `subflow` for reinjection on others.
    pub(super) fn reinject(&mut self, subflow: u8, numbers: impl Iterator<Item = u32>) {
        let una = self.una;
        self.reinject_queue.retain(|&(number, from)| from != subflow && number >= una);
        self.reinject_queue
            .extend(numbers.filter(|&number| number >= una).map(|number| (number, subflow)));
    }

    /// Whether packets are queued for reinjection.
    #[inline]
    pub(super) fn has_reinjections(&mut self) -> bool {
        while self.reinject_queue.front().is_some_and(|&(number, _)| number < self.una) {
            self.reinject_queue.pop_front();
        }
        !self.reinject_queue.is_empty()
    }

    /// The next packet to reinject on `subflow`. Its own packets are removed from the queue: it is
    /// available, so it retransmits them itself.
    pub(super) fn next_reinjection(&mut self, subflow: u8) -> Option<u32> {
        while let Some((number, from)) = self.reinject_queue.pop_front() {
            if number >= self.una && from != subflow {
                return Some(number);
            }
        }
        None
    }
}
