//! The receive window of a multipath connection, bytes, with an application that reads everything at
//! once (Linux 6.18: `mptcp_space`, `mptcp_set_rwin`, `mptcp_rcv_space_adjust`).
//!
//! All subflows advertise it, each at most as far as its own window has grown. A packet takes its
//! payload and a constant overhead of the buffer, scaled by `scaling_ratio`, which is rounded down. So a
//! full packet takes a little less of the window than it carries, and the window seldom ends with a
//! packet.

use crate::receive_window::{INITIAL_BUFFER, ReceiveWindow, grown_buffer, smoothed};
use crate::stack::TCP_INIT_CWND;
use crate::{Flags, Stack};
use dumbbell_units::Time;

/// `TCP_RMEM_TO_WIN_SCALE`: ratios are in units of 2^-8.
const SCALE: u32 = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionWindow {
    mss: u64,
    /// Bytes of the buffer that a packet takes beside its payload.
    overhead: u64,
    /// `scaling_ratio`.
    ratio: u64,
    /// The window that the whole buffer has room for (`window_clamp`).
    window_clamp: u64,
    /// Window scale (RFC 7323, section 2): the window is rounded up to a multiple of two to this power.
    /// Without scaling it is rounded down to full packets.
    window_scale: u32,
    /// The largest window that can be advertised.
    max_window: u64,
    /// Whether packets take room of the window ([`Stack::autotuning`]).
    autotuning: bool,
    /// Maximum that was read in a round trip (`rcvq_space.space`).
    space: u64,
    /// What had been read when the current round trip began.
    round_start: u64,
    /// `None` before the first data.
    round_start_time: Option<Time>,
    /// The longest smoothed round-trip time of the subflows, microseconds times 8.
    rtt_us: u32,
    /// What the packets out of order take of the window.
    queued: u64,
    /// The least that a packet has taken. A subflow's window grows at most to the clamp less this, as the
    /// packet that arrives occupies the buffer (`tcp_grow_window`).
    least_taken: Option<u64>,
    /// End of the window that was advertised.
    end: u64,
    /// Whether half of the buffer is for overhead, as a subflow has not received data yet.
    is_half_overhead: bool,
}

impl ConnectionWindow {
    pub(super) fn new(stack: &Stack) -> ConnectionWindow {
        let (mss, received_size) = (u64::from(stack.mss), stack.received_size());
        let (is_set, packets) = (stack.receive_window_is_set(), u64::from(stack.receive_window));
        let mut window = ConnectionWindow {
            mss,
            overhead: received_size - mss,
            ratio: ((mss << SCALE) / received_size).max(1),
            window_clamp: packets * mss,
            window_scale: 0,
            max_window: u64::MAX,
            autotuning: stack.autotuning,
            space: u64::from(TCP_INIT_CWND) * mss,
            round_start: 0,
            round_start_time: None,
            rtt_us: 0,
            queued: 0,
            least_taken: None,
            end: 0,
            is_half_overhead: false,
        };
        if stack.autotuning {
            let buffer = if is_set { packets * received_size } else { INITIAL_BUFFER.into() };
            window.window_clamp = window.scaled(buffer);
            window.window_scale = stack.window_scale();
            window.max_window = u64::from(u16::MAX) << window.window_scale;
        }
        window
    }

    /// The window that bytes of the buffer allow (`tcp_win_from_space`).
    fn scaled(&self, buffer: u64) -> u64 {
        (buffer * self.ratio) >> SCALE
    }

    /// What a packet with this payload takes of the window.
    pub(super) fn taken_by(&self, payload: u16) -> u64 {
        if !self.autotuning {
            return 0;
        }
        self.scaled(self.overhead + u64::from(payload))
    }

    /// A packet arrived that takes `taken` of the window.
    pub(super) fn on_arrival(&mut self, taken: u64) {
        self.least_taken = Some(self.least_taken.map_or(taken, |least| least.min(taken)));
    }

    /// A packet waits for data before it.
    pub(super) fn queue(&mut self, taken: u64) {
        self.queued += taken;
    }

    /// Advertises a window beyond `next` on a subflow, whose window has `current` left. The end of the
    /// window never moves back, neither the subflow's nor the connection's (`tcp_select_window`,
    /// `mptcp_set_rwin`). Returns the window, of which the segment carries whole units.
    #[inline]
    pub(super) fn advertise(&mut self, selected: u64, current: u64, next: u64) -> u64 {
        let window = selected.max(current.next_multiple_of(1 << self.window_scale));
        self.end = self.end.max(next + window);
        self.end - next
    }

    /// The window of a subflow with `unread` data on the way to the application, bytes of the window
    /// (`__tcp_select_window` with `mptcp_space`). `subflow` is the subflow's own window, and `rcv_wnd` what
    /// it advertised last.
    #[inline]
    pub(super) fn select(&self, subflow: &ReceiveWindow, unread: u64, rcv_wnd: u64) -> u64 {
        let free = self.window_clamp.saturating_sub(self.queued);
        // The subflow counts in packets, and leaves room for a full one.
        let grown = u64::from(subflow.rcv_ssthresh()).saturating_add(u64::from(self.autotuning));
        let least_taken = self.least_taken.unwrap_or(0);
        let grown = (grown * self.mss).min(self.window_clamp.saturating_sub(least_taken));
        let mut window = free.saturating_sub(unread).min(grown);
        if self.is_half_overhead {
            window = window.min((free << SCALE).div_ceil(self.ratio) / 2);
        }
        match self.window_scale {
            0 if !self.autotuning => window,
            0 if rcv_wnd <= window && window < rcv_wnd + self.mss => rcv_wnd,
            0 => (window / self.mss * self.mss).max(self.mss),
            scale => window.next_multiple_of(1 << scale),
        }
    }

    /// Whether more than half of the buffer is taken: no acknowledgement is quick then.
    #[inline]
    pub(super) fn is_half_full(&self, unread: u64) -> bool {
        self.autotuning && 2 * (self.queued + unread) > self.window_clamp
    }

    /// The largest window that a segment with these flags can carry: that of a SYN-ACK is not scaled.
    pub(super) fn max_window(&self, flags: Flags) -> u64 {
        let is_unscaled = self.autotuning && flags.contains(Flags::SYN);
        if is_unscaled { u16::MAX.into() } else { self.max_window }
    }

    /// Packets that waited are in order now, and had taken this much of the window.
    pub(super) fn unqueue(&mut self, freed: u64) {
        self.queued -= freed;
    }

    /// The application has read all up to `next`. Unlike those of TCP, packets that waited count in the
    /// round trip in which they are read. Returns the packets that were read in the last round trip if
    /// that was more than ever before: the buffer and the subflows' follow.
    ///
    /// Once in a round trip the connection takes the longest round-trip time of its subflows, and as much of
    /// its buffer for overhead as the one that takes the most: half of it until data arrives there
    /// (`TCP_DEFAULT_SCALING_RATIO`). `of_subflows` returns that time, microseconds times 8, and whether
    /// one has not received data.
    #[inline]
    pub(super) fn on_read(
        &mut self,
        now: Time,
        next: u64,
        stack: &Stack,
        of_subflows: impl FnOnce() -> (u32, bool),
    ) -> Option<u32> {
        if !self.autotuning {
            return None;
        }
        let elapsed = now.since(*self.round_start_time.get_or_insert(now));
        if self.rtt_us > 0 && elapsed < smoothed(self.rtt_us) {
            return None;
        }
        (self.rtt_us, self.is_half_overhead) = of_subflows();
        if self.rtt_us == 0 || elapsed < smoothed(self.rtt_us) {
            return None;
        }
        let copied = next - self.round_start;
        (self.round_start, self.round_start_time) = (next, Some(now));
        if copied <= self.space {
            return None;
        }
        let buffer = grown_buffer(copied, self.space);
        self.space = copied;
        if !stack.receive_window_is_set() {
            let max = stack.receive_window.min(stack.max_received());
            self.window_clamp = self.window_clamp.max(buffer.min(u64::from(max) * self.mss));
        }
        Some((copied / self.mss) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Span;

    /// A capture of Linux 6.18 with a buffer of 62 packets: half of the buffer until data arrives on all
    /// subflows, then all of it, less the packet that is not read yet.
    #[test]
    fn a_full_packet_takes_1422_bytes_of_the_window() {
        let stack = Stack { receive_window: 62, ..Stack::linux() }.of_subflow();
        let (mut window, mut subflow) = (ConnectionWindow::new(&stack), ReceiveWindow::new(&stack));
        (0..100).for_each(|_| _ = subflow.grow());
        assert_eq!((window.taken_by(1424), window.window_clamp), (1_422, 62 * 1_422));
        window.is_half_overhead = true;
        assert_eq!(window.select(&subflow, 0, 0), 71_424);
        window.is_half_overhead = false;
        window.on_arrival(1_422);
        let selected = window.select(&subflow, 1_422, 71_424);
        assert_eq!(window.advertise(selected, 71_424 - 1_424, 1_424), 86_742);
        // Three packets wait; the end of the window does not move back.
        (0..3).for_each(|_| window.queue(1_422));
        let selected = window.select(&subflow, 0, 86_742);
        assert_eq!((selected, window.advertise(selected, 0, 2 * 1_424)), (83_898, 86_742 - 1_424));
    }

    /// RFC 7323 and __tcp_select_window: a capture of Linux 6.18 with a buffer of at most 256 MB has a scale
    /// of 13, and windows of whole 8 kB.
    #[test]
    fn a_window_is_a_multiple_of_its_scale() {
        let stack = Stack { tcp_rmem: 256 << 20, ..Stack::linux() }.of_subflow();
        let (mut window, subflow) = (ConnectionWindow::new(&stack), ReceiveWindow::new(&stack));
        assert_eq!(stack.window_scale(), 13);
        window.on_arrival(1_422);
        assert_eq!(window.select(&subflow, 0, 0) % 8_192, 0);
        assert_eq!(window.select(&subflow, 1_422, 0) % 8_192, 0);
    }

    /// __mptcp_recvmsg_mskq: mptcp_rcv_space_adjust gets all that a read copied. In TCP the 90 packets that
    /// waited would count in the next round trip.
    #[test]
    fn what_waited_counts_in_the_round_trip_in_which_it_is_read() {
        let stack = Stack::linux().of_subflow();
        let mut window = ConnectionWindow::new(&stack);
        let mut read = |ms, packets: u64| {
            let now = Time::ZERO + Span::from_millis(ms);
            window.on_read(now, packets * 1_424, &stack, || (8 * 10_000, false))
        };
        // 92 packets at once end the first round trip, 100 packets the next one.
        assert_eq!(
            [(0, 1), (10, 92), (20, 192)].map(|(ms, to)| read(ms, to)),
            [None, Some(92), Some(100)]
        );
    }

    /// mptcp_rcv_space_adjust: the first packet that is read begins the first round trip, but no second one.
    /// In a capture of Linux 6.18 over 200 ms a first window of 10 packets, and the packet that ends it, are
    /// 11; then 20 packets grow the buffer to 2 * 20 + 4 * 20 * (20 - 11) / 11.
    #[test]
    fn the_first_packet_counts_in_the_first_round_trip() {
        let stack = Stack::linux().of_subflow();
        let mut window = ConnectionWindow::new(&stack);
        let reads = [(0, 1), (1, 10), (200, 11), (400, 31)].map(|(ms, packets)| {
            let now = Time::ZERO + Span::from_millis(ms);
            window.on_read(now, packets * 1_424, &stack, || (8 * 200_000, false))
        });
        assert_eq!(reads, [None, None, Some(11), Some(20)]);
        assert_eq!(window.window_clamp / 1_424, 105);
    }

    /// The end of the window is that of rcv_wnd_sent, not that of the units that a segment carries.
    #[test]
    fn the_end_of_a_window_does_not_creep_while_data_waits() {
        let stack = Stack { receive_window: 345, ..Stack::linux() }.of_subflow();
        let mut window = ConnectionWindow::new(&stack);
        let end = window.advertise(490_000, 0, 0);
        for next in [1_424, 2_848, 4_272] {
            assert_eq!(window.advertise(400_000, 0, next), end - next);
        }
    }

    /// __tcp_select_window: no acknowledgement is quick while more than half of the buffer is taken.
    #[test]
    fn packets_that_wait_fill_half_of_the_buffer() {
        let stack = Stack { receive_window: 20, ..Stack::linux() }.of_subflow();
        let mut window = ConnectionWindow::new(&stack);
        (0..10).for_each(|_| window.queue(1_422));
        assert!(!window.is_half_full(0) && window.is_half_full(1_422));
    }

    /// Without scaling a window within a packet of the free space is kept.
    #[test]
    fn a_window_without_a_scale_is_kept_or_whole_packets() {
        let stack = Stack { receive_window: 20, ..Stack::linux() }.of_subflow();
        let (window, mut subflow) = (ConnectionWindow::new(&stack), ReceiveWindow::new(&stack));
        (0..100).for_each(|_| _ = subflow.grow());
        let free = 19 * 1_424;
        let selected = |unread, rcv_wnd| window.select(&subflow, unread, rcv_wnd);
        assert_eq!(
            (selected(0, 0), selected(0, 26_000), selected(0, free + 1)),
            (free, 26_000, free)
        );
        assert_eq!((selected(2_844, 25_000), selected(2_844, 24_000)), (25_000, 17 * 1_424));
    }
}
