//! The receive window of Linux 6.18, packets, with an application that reads everything at once.
//!
//! The receive buffer grows by what was read in a round trip (dynamic right-sizing:
//! `tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`), the advertised window by two packets per packet that
//! arrived (`tcp_grow_window`). Packets out of order occupy the buffer (`__tcp_select_window`), those
//! that waited for a retransmission also in the acknowledgement of it: it precedes the read.
//! A packet's overhead (`scaling_ratio`) is constant, so both are counted in packets.

use crate::Stack;
use crate::segment::since_tsval;
use crate::stack::{TCP_INIT_CWND, packets};
use dumbbell_units::{Span, Time};

/// Bytes of the initial buffer (`tcp_rmem[1]`). Half of it is for overhead until data arrives
/// (`TCP_DEFAULT_SCALING_RATIO`).
pub(crate) const INITIAL_BUFFER: u32 = 128 << 10;
/// The `scale` of a window that is not limited.
const UNLIMITED_SCALE: u8 = 40;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    /// Window that the whole buffer has room for (`window_clamp`).
    window_clamp: u32,
    /// Window to advertise if the buffer has room for it (`rcv_ssthresh`).
    rcv_ssthresh: u32,
    /// Maximum that was read in a round trip (`rcvq_space.space`).
    space: u32,
    /// `rcv_nxt` when the current round trip began (`rcvq_space.seq`).
    round_start: u32,
    round_start_time: Time,
    /// Smoothed round-trip time by timestamps, microseconds times 8 (`rcv_rtt_est.rtt_us`).
    rtt_us: u32,
    /// Echo of the last sample (`rcv_rtt_last_tsecr`).
    last_tsecr: u16,
    /// Packets in the buffer, which are those out of order.
    queued: u32,
    /// End of the window that was advertised.
    end: u32,
    /// The largest window that can be advertised is 65,535 bytes times two to this power.
    scale: u8,
}

impl ReceiveWindow {
    /// The window at the start: all of it without autotuning; a buffer whose size is set
    /// (`SO_RCVBUF`) does not grow.
    pub(crate) fn new(stack: &Stack) -> ReceiveWindow {
        let (window_clamp, rcv_ssthresh) = if !stack.autotuning {
            (u32::MAX, stack.receive_window)
        } else if stack.receive_window_is_set() {
            (clamp_of_buffer(stack), half_of_buffer(stack.receive_window, stack))
        } else {
            (packets(INITIAL_BUFFER, stack.received_size()), initial_window(stack))
        };
        ReceiveWindow {
            window_clamp,
            rcv_ssthresh,
            space: TCP_INIT_CWND.min(rcv_ssthresh),
            round_start: 0,
            round_start_time: Time::ZERO,
            rtt_us: 0,
            last_tsecr: 0,
            queued: 0,
            end: 0,
            scale: if stack.autotuning { stack.window_scale() as u8 } else { UNLIMITED_SCALE },
        }
    }

    /// Segments to acknowledge one by one at the start: at most half of a window
    /// (`tcp_incr_quickack`).
    pub(crate) fn quick_acks(&self, stack: &Stack) -> u16 {
        let quick_acks = stack.quick_acks.min((self.rcv_ssthresh / 2).max(2));
        u16::try_from(quick_acks).unwrap_or(u16::MAX)
    }

    /// Advertises the window beyond `rcv_nxt`. Its end never moves back (`tcp_select_window`).
    #[inline]
    pub(crate) fn advertise(&mut self, rcv_nxt: u32, stack: &Stack) -> u32 {
        self.end = self.end.max(rcv_nxt.saturating_add(self.window(stack)));
        self.end - rcv_nxt
    }

    /// The window of a SYN-ACK, at most 64 kB: it is not scaled (RFC 7323, section 2.2).
    pub(crate) fn of_syn_ack(&self, stack: &Stack) -> u32 {
        let window = self.window(stack);
        if stack.autotuning { window.min(initial_window(stack)) } else { window }
    }

    /// The window to advertise if the buffer has room for it (`rcv_ssthresh`).
    pub(crate) fn rcv_ssthresh(&self) -> u32 {
        self.rcv_ssthresh
    }

    /// Whether packets out of order occupy more than half of the buffer: no acknowledgement is quick then
    /// (`__tcp_select_window`).
    #[inline]
    pub(crate) fn is_half_full(&self) -> bool {
        self.queued > 0 && self.free_space() < self.window_clamp / 2
    }

    fn window(&self, stack: &Stack) -> u32 {
        if self.free_space() < self.window_clamp / 16 {
            return 0; // `__tcp_select_window`
        }
        let window = self.rcv_ssthresh.min(self.free_space());
        let (mss, most) = (u64::from(stack.mss), u64::from(u16::MAX) << self.scale);
        if u64::from(window) * mss > most { (most / mss) as u32 } else { window }
    }

    /// Data arrived that echoes a timestamp of this end. Smaller samples are taken as they are
    /// (`tcp_rcv_rtt_measure_ts`, `tcp_rcv_rtt_update`).
    #[inline]
    pub(crate) fn measure_rtt(&mut self, now: Time, tsecr: u16) {
        if tsecr == self.last_tsecr && self.rtt_us > 0 {
            return;
        }
        self.last_tsecr = tsecr;
        let sample = since_tsval(now, tsecr).as_micros() as u32;
        if self.rtt_us == 0 {
            self.round_start_time = now;
        }
        let smoothed = self.rtt_us - (self.rtt_us >> 3) + sample;
        let is_less = self.rtt_us == 0 || 8 * sample < self.rtt_us;
        self.rtt_us = if is_less { 8 * sample } else { smoothed };
    }

    /// The smoothed round-trip time, microseconds times 8.
    pub(crate) fn rtt_us(&self) -> u32 {
        self.rtt_us
    }

    /// The application reads `read` packets up to `rcv_nxt`, of which one has just arrived.
    ///
    /// Linux measures at the first packet that is read and subtracts those not read yet
    /// (`inq`), so that packets which waited for a retransmission count in the next round trip. Returns
    /// what was read in the last round trip if that was more than ever before.
    #[inline]
    pub(crate) fn on_read(
        &mut self,
        now: Time,
        rcv_nxt: u32,
        read: u32,
        stack: &Stack,
        span: u32,
    ) -> Option<u32> {
        let waited = read - 1;
        self.queued -= waited;
        if now.since(self.round_start_time) >= smoothed(self.rtt_us) {
            let copied_seq = rcv_nxt - waited;
            let copied = (copied_seq - self.round_start).saturating_sub(waited);
            (self.round_start, self.round_start_time) = (copied_seq, now);
            return self.follow(stack, copied, span).then_some(copied);
        }
        None
    }

    /// `copied` packets were read in a round trip, on a subflow by its connection
    /// (`mptcp_rcv_space_adjust`): the buffer grows if that was more than ever before. Returns whether it was.
    /// Packets out of order beyond the next one span `span`.
    pub(crate) fn follow(&mut self, stack: &Stack, copied: u32, span: u32) -> bool {
        let is_most = copied > self.space;
        if is_most {
            self.grow_buffer(stack, copied, span);
        }
        is_most
    }

    /// Whether the window beyond `rcv_nxt` is at least twice what was advertised, which is at most
    /// half of the buffer.
    pub(crate) fn has_doubled(&self, rcv_nxt: u32, stack: &Stack) -> bool {
        let twice = 2 * (self.end - rcv_nxt);
        twice <= self.window_clamp && self.window(stack) >= twice
    }

    /// A packet arrived out of order; the packets beyond the next one span `span`. Returns whether
    /// the window grew.
    pub(crate) fn on_queued(&mut self, stack: &Stack, span: u32) -> bool {
        let grew = self.grow();
        self.queued += 1;
        self.grow_buffer(stack, self.space, span);
        grew
    }

    /// A packet arrived: the window grows if the buffer has room beside this packet, which the
    /// application has not read yet. Returns whether it grew.
    pub(crate) fn grow(&mut self) -> bool {
        let room = self.free_space().saturating_sub(self.rcv_ssthresh + 1);
        self.rcv_ssthresh += room.min(2);
        room > 0
    }

    fn free_space(&self) -> u32 {
        self.window_clamp.saturating_sub(self.queued)
    }

    /// The buffer has room for twice what was read, as it was read a round trip ago; in slow start
    /// for what the sender will send next; and for what is out of order.
    fn grow_buffer(&mut self, stack: &Stack, copied: u32, span: u32) {
        let (new, old) = (u64::from(copied), u64::from(self.space));
        self.space = copied;
        if !stack.receive_window_is_set() {
            let window = grown_buffer(new, old).saturating_add(u64::from(span));
            let max = stack.receive_window.min(stack.max_received());
            let window = u32::try_from(window).unwrap_or(u32::MAX).min(max);
            self.window_clamp = self.window_clamp.max(window);
        }
    }
}

/// A smoothed round-trip time that is in microseconds times 8.
pub(crate) fn smoothed(rtt_us: u32) -> Span {
    Span::from_micros(u64::from(rtt_us >> 3))
}

/// What the buffer has room for after `new` was read in a round trip, `old` the most before: twice of
/// it, and in slow start what the sender will send next (`tcp_rcvbuf_grow`).
pub(crate) fn grown_buffer(new: u64, old: u64) -> u64 {
    let ahead = 4 * u128::from(new) * u128::from(new - old) / u128::from(old);
    u64::try_from(2 * u128::from(new) + ahead).unwrap_or(u64::MAX)
}

/// Packets in half of the initial buffer (`tcp_select_initial_window`).
fn initial_window(stack: &Stack) -> u32 {
    packets(INITIAL_BUFFER / 2, stack.mss.into())
}

/// Packets that a buffer of a set size has room for. Without window scaling the window is rounded down to
/// whole packets (`__tcp_select_window`), so that one packet fewer fits.
fn clamp_of_buffer(stack: &Stack) -> u32 {
    (stack.receive_window - u32::from(stack.window_scale() == 0)).max(1)
}

/// Packets in half of a buffer that has room for `packets` of them: the other half is for overhead until
/// data arrives (`TCP_DEFAULT_SCALING_RATIO`).
fn half_of_buffer(packets: u32, stack: &Stack) -> u32 {
    (u64::from(packets) * stack.received_size() / 2 / u64::from(stack.mss)).max(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::tsval;

    const ROUND_TRIP: Span = Span::from_millis(100);

    /// What is advertised after `packets` in order in each of some round trips.
    fn advertised_after(stack: &Stack, rounds: &[u32]) -> Vec<u32> {
        let (mut window, mut sent_at, mut rcv_nxt) = (ReceiveWindow::new(stack), Time::ZERO, 0);
        let round = |&packets: &u32| {
            let now = sent_at + ROUND_TRIP;
            window.measure_rtt(now, tsval(sent_at));
            for _ in 0..packets {
                rcv_nxt += 1;
                window.grow();
                window.on_read(now, rcv_nxt, 1, stack, 0);
            }
            sent_at = now;
            window.window(stack)
        };
        rounds.iter().map(round).collect()
    }

    #[test]
    fn the_window_is_ahead_of_slow_start() {
        let windows = advertised_after(&Stack::linux(), &[10, 20, 40, 80, 160]);
        assert_eq!(windows, [55, 55, 104, 239, 479]);
        assert!(windows.iter().zip([20, 40, 80, 160, 320]).all(|(&window, next)| window > next));
    }

    #[test]
    fn the_window_grows_by_two_per_packet_to_the_buffer() {
        let windows = advertised_after(&Stack::linux(), &[100; 25]);
        // 2 * 101, and 4 * 101 * (101 - 10) / 10, as the first round trip read 10 times the initial
        // space, and ends with the first packet of the next; less the packet that arrived.
        assert_eq!(windows[24], 3_877);
        assert_eq!(windows[3] - windows[2], 200);
    }

    #[test]
    fn packets_out_of_order_occupy_the_buffer() {
        let stack = Stack { receive_window: 100, ..Stack::linux() };
        let mut window = ReceiveWindow::new(&stack);
        while window.grow() {}
        let grew = (1..=15).map(|span| window.on_queued(&stack, span));
        assert!(!grew.fold(false, |any, one| any | one), "the buffer is full");
        assert_eq!(window.advertise(0, &stack), 85);
        // The first one arrives, and the application has not read yet.
        assert_eq!(window.advertise(16, &stack), 85);
        window.on_read(Time::ZERO, 16, 16, &stack, 0);
        assert_eq!(window.window(&stack), 90);
    }

    #[test]
    fn a_buffer_whose_size_is_set_does_not_grow() {
        let stack = Stack { receive_window: 300, ..Stack::linux() };
        // 300 * 2304 / 2 / 1448, and two packets more for each that arrived.
        assert_eq!(advertised_after(&stack, &[10, 1_000, 4_000]), [258, 299, 299]);
        let fixed = Stack { autotuning: false, ..stack };
        assert_eq!(ReceiveWindow::new(&fixed).window(&fixed), 300);
    }

    /// Packets in flight with Linux 6.18 at 200 Mbit/s and 50 ms.
    #[test]
    fn small_buffers_give_the_windows_of_linux() {
        let linux = [(5, 3), (8, 6), (10, 8), (20, 18), (33, 31), (45, 43), (46, 44), (50, 45)];
        for (receive_window, most) in linux.into_iter().chain([(56, 45), (57, 56), (62, 61)]) {
            let stack = Stack { receive_window, ..Stack::linux() };
            assert_eq!(advertised_after(&stack, &[10; 5])[4], most, "{receive_window} packets");
        }
    }

    /// A capture of Linux 6.18: 65,535 bytes times 4, though the buffer has room for 199 packets.
    #[test]
    fn a_window_has_16_bits_and_a_scale() {
        let stack = Stack { receive_window: 200, ..Stack::linux() };
        assert_eq!(advertised_after(&stack, &[100; 5])[4], 181);
    }

    #[test]
    fn a_small_window_has_fewer_quick_acks() {
        let quick_acks = |receive_window| {
            let stack = Stack { receive_window, ..Stack::linux() };
            ReceiveWindow::new(&stack).quick_acks(&stack)
        };
        assert_eq!([2, 20, 40, 41, 1000].map(quick_acks), [2, 7, 15, 16, 16]);
    }
}
