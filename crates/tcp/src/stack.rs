//! Named sets of TCP behaviours.

use crate::Flags;
use dumbbell_units::{Span, Time};

/// Receive window that limits no experiment, packets.
const LARGE_WINDOW: u32 = 1 << 20;

/// Buffer that limits no experiment, bytes: the maximum of Linux's settings.
const LARGE_BUFFER: u32 = i32::MAX as u32;

/// TCP behaviours other than congestion control.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Stack {
    /// Payload bytes of a full segment.
    pub mss: u16,
    /// Bytes of IP and TCP headers on a data segment: with IPv4 52, 40 without timestamps.
    pub header: u16,
    /// Initial window, packets (RFC 6928).
    pub initial_window: u32,
    /// Minimum retransmission timeout, nanoseconds.
    pub min_rto_ns: u64,
    /// How the retransmission timeout is computed.
    pub rto: RtoRule,
    /// Whether the transport paces algorithms that set no rate of their own, at 200 % of
    /// cwnd/srtt in slow start and 120 % after it, as Linux does under fq.
    pub pacing: bool,
    /// Whether segments leave in bursts sized as Linux's TSO autosizing does.
    pub tso: bool,
    /// Whether windows grow by packets acknowledged (RFC 3465) rather than by acknowledgements.
    pub byte_counting: bool,
    /// How losses are detected.
    pub loss_detection: LossDetection,
    /// Whether tail loss probes are sent (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// Whether spurious reductions are undone (RFC 4015, D-SACK).
    pub undo: bool,
    /// Whether acknowledgements of full segments are delayed at all.
    pub delayed_ack: bool,
    /// How long an acknowledgement waits for a second segment, nanoseconds.
    pub delayed_ack_ns: u64,
    /// Segments acknowledged individually at the start (Linux's quick ACKs).
    pub quick_acks: u32,
    /// Whether a segment with PSH is acknowledged immediately, as the application has read all: the
    /// end of a write or a burst (`__tcp_cleanup_rbuf`, `tcp_measure_rcv_mss`; since Linux 6.6 for full
    /// segments too).
    pub push: bool,
    /// Whether the receive window grows with arriving packets, up to `receive_window`, as the receive
    /// buffer of Linux does. While it grows, every packet is acknowledged (`tcp_grow_window`).
    pub autotuning: bool,
    /// Whether acknowledgements of out-of-order segments are compressed, as in Linux since 4.18.
    pub sack_compression: bool,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Receive window, packets.
    pub receive_window: u32,
    /// Maximum of the receive buffer, bytes with overhead (`tcp_rmem[2]`: 33,554,432 on a fresh Linux).
    pub tcp_rmem: u32,
    /// Maximum of the send buffer, bytes with overhead (`tcp_wmem[2]`: 4,194,304 on a fresh Linux).
    pub tcp_wmem: u32,
    /// Whether the window is cut when the application was idle for longer than a retransmission
    /// timeout (RFC 5681 section 4.1, RFC 2861).
    pub slow_start_after_idle: bool,
    /// Tick of the coarse clock, nanoseconds; 0 for an exact clock. Linux's jiffies: 100 to 1000 per
    /// second, depending on the kernel's configuration.
    pub tick_ns: u64,
    /// Packets by which the window may exceed the flight size when a recovery ends (ns-2's
    /// `maxburst_`, Linux's `tcp_max_burst`); 0 for no limit. The window then grows back to ssthresh as
    /// in slow start. Kernels before PRR kept the window at the flight size (`tcp_cwnd_down`), so that
    /// no burst followed a recovery.
    pub max_burst: u32,
}

/// How the retransmission timeout is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum RtoRule {
    /// SRTT + max(4 RTTVAR, minimum). Restarted when the oldest packet is retransmitted.
    Linux,
    /// max(SRTT + 4 RTTVAR, minimum). A retransmission does not restart a running timer (RFC 6298, 2.4
    /// and 5.1).
    Rfc6298,
}

/// How losses are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum LossDetection {
    /// By time: RACK (RFC 8985).
    Rack,
    /// By counting: three packets above are SACKed (RFC 6675).
    DupThresh,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Ecn {
    /// Packets are not ECN-capable.
    Off,
    /// RFC 3168: one reduction per round trip.
    Classic,
    /// The algorithm receives every mark; the receiver acknowledges at every change (DCTCP; RFC 8257).
    Accurate,
    /// L4S: every packet, acknowledgements and retransmissions included, is ECT(1) (RFC 9331), and
    /// the feedback is Accurate ECN (RFC 9768).
    L4s,
}

/// `SKB_TRUESIZE(0)`, of a fast clone.
pub(crate) const SKB_OVERHEAD: u64 = 1_280;

/// Bytes beside a packet that a TUN device delivers (`tun_alloc_skb`): 64 before it, and `skb_shared_info`.
const RECEIVED_OVERHEAD: u64 = 64 + 320;

/// The initial window of Linux, packets (RFC 6928).
pub(crate) const TCP_INIT_CWND: u32 = 10;

/// `TCP_MAX_WSCALE`.
const MAX_WINDOW_SCALE: u32 = 14;

/// How many packets a buffer has room for, at least one.
pub(crate) fn packets(buffer: u32, each: u64) -> u32 {
    (u64::from(buffer) / each.max(1)).max(1) as u32
}

impl Stack {
    /// The names that [`Stack::named`] knows.
    pub const NAMES: &[&str] = &["linux", "linux-2.6.18", "ns-3"];

    /// Linux 6.18, default settings, without the fq qdisc.
    pub fn linux() -> Stack {
        Stack {
            mss: 1448,
            header: 52,
            initial_window: TCP_INIT_CWND,
            min_rto_ns: Span::from_millis(200).as_nanos(),
            rto: RtoRule::Linux,
            pacing: false,
            tso: true,
            byte_counting: true,
            loss_detection: LossDetection::Rack,
            tail_loss_probe: true,
            undo: true,
            delayed_ack: true,
            delayed_ack_ns: Span::from_millis(40).as_nanos(),
            quick_acks: 16,
            push: true,
            autotuning: true,
            sack_compression: true,
            ecn: Ecn::Off,
            receive_window: LARGE_WINDOW,
            tcp_rmem: LARGE_BUFFER,
            tcp_wmem: LARGE_BUFFER,
            slow_start_after_idle: true,
            tick_ns: Span::from_millis(4).as_nanos(),
            max_burst: 0,
        }
    }

    /// Whether the application sets the size of the receive buffer (`SO_RCVBUF`), so that it does
    /// not grow: `receive_window` is below its default.
    pub fn receive_window_is_set(&self) -> bool {
        self.receive_window < LARGE_WINDOW
    }

    /// The window scale of the receiver (RFC 7323, section 2; `tcp_select_initial_window`).
    pub fn window_scale(&self) -> u32 {
        let set = u64::from(self.receive_window) * self.received_size() / 2;
        let most = if self.receive_window_is_set() { set } else { self.tcp_rmem.into() };
        (most.max(1).ilog2() + 1).saturating_sub(u16::BITS).min(MAX_WINDOW_SCALE)
    }

    /// The unit of the window of a connection over several paths, bytes.
    pub(crate) fn window_unit(&self) -> u64 {
        if self.autotuning { 1 << self.window_scale() } else { self.mss.into() }
    }

    /// Packets that the receive buffer has room for at its maximum.
    pub(crate) fn max_received(&self) -> u32 {
        packets(self.tcp_rmem, self.received_size())
    }

    /// Bytes of the receive buffer that a packet takes: 2304 for one of 1500 bytes (`scaling_ratio`).
    ///
    /// A packet and its overhead are in memory of a power of two, beside the `sk_buff`. Those above a
    /// page are in parts: one of 9000 bytes was measured to take about 13,056. For an MSS of at most 536
    /// (`TCP_MSS_DEFAULT`), which the receiver assumes, half of the buffer remains for overhead.
    pub fn received_size(&self) -> u64 {
        let (mss, size) = (u64::from(self.mss), u64::from(self.mss) + u64::from(self.header));
        let in_memory = RECEIVED_OVERHEAD + size;
        match in_memory {
            _ if mss <= 536 => 2 * mss,
            0..=4_096 => in_memory.next_power_of_two() + 256,
            _ => size * 13_056 / 9_000,
        }
    }

    /// Bytes that a packet of the window is worth in a send buffer (`tcp_sndbuf_expand`): the MSS without
    /// options, `MAX_TCP_HEADER` and `skb_shared_info` in memory of a power of two, and the `sk_buff`.
    pub(crate) fn per_mss(&self) -> u64 {
        let mss = u64::from(self.mss) + u64::from(self.header) - 40;
        (mss + 640).next_power_of_two() + 256
    }

    /// Packets that the send buffer has room for at its maximum: 64 KiB share one `sk_buff` and its
    /// overhead, without TSO each packet has its own.
    pub(crate) fn max_written(&self) -> u32 {
        let of_skb = if self.tso { 44 } else { 1 };
        packets(self.tcp_wmem, u64::from(self.mss) + SKB_OVERHEAD / of_skb)
    }

    /// Whether segments carry timestamps (RFC 7323).
    pub fn timestamps(&self) -> bool {
        self.header > 40
    }

    /// Bytes on the wire of a SYN or SYN-ACK: IPv4, TCP, and options of 20 bytes, of which timestamps
    /// take 8.
    pub fn control_size(&self) -> u16 {
        if self.timestamps() { 60 } else { 52 }
    }

    /// When a timer of `delay` expires that is set at `now`. Linux counts jiffies, rounded up, and the
    /// jiffy that has begun does not count. From 63 jiffies on a timer waits for a multiple of 8 jiffies,
    /// from 504 on for one of 64, and so on (`calc_wheel_index`).
    #[inline]
    pub(crate) fn expiry(&self, now: Time, delay: Span) -> Time {
        let jiffy = self.tick_ns;
        if jiffy == 0 {
            return now + delay;
        }
        let jiffies = delay.as_nanos().div_ceil(jiffy);
        let mut level = 0;
        while jiffies >= 63 << level {
            level += 3;
        }
        let expires = now.as_nanos() / jiffy + jiffies;
        Time::from_nanos((((expires >> level) + 1) << level) * jiffy)
    }

    /// The ECN field of a SYN and of acknowledgements: they are ECN-capable with L4S (RFC 9331) and with
    /// DCTCP (Linux's `tcp_ca_needs_ecn`), not otherwise (RFC 3168, section 6.1.1).
    pub(crate) fn control_ect(&self) -> Flags {
        match self.ecn {
            Ecn::Off | Ecn::Classic => Flags::default(),
            Ecn::Accurate => Flags::ECT_0,
            Ecn::L4s => Flags::ECT_1,
        }
    }

    /// Bytes on the wire of an acknowledgement with `blocks` SACK blocks: 8 per block, and 4 for the
    /// option's kind, length and padding (RFC 2018).
    pub fn ack_size(&self, blocks: usize) -> u16 {
        let sack = if blocks > 0 { 4 + 8 * blocks as u16 } else { 0 };
        self.header + sack
    }

    /// The stack of that name, if there is one.
    pub fn named(name: &str) -> Option<Stack> {
        let linux = Stack::linux();
        match name {
            "linux" => Some(linux),
            // 2.6.18 (2006) counted acknowledgements (tcp_abc was off by default since 2.6.18),
            // detected losses by DupThresh and began with 3 segments (RFC 3390).
            "linux-2.6.18" => Some(Stack {
                initial_window: 3,
                tso: false,
                byte_counting: false,
                loss_detection: LossDetection::DupThresh,
                tail_loss_probe: false,
                push: false,
                autotuning: false,
                sack_compression: false,
                max_burst: 1,
                ..linux
            }),
            // The defaults of ns-3.44 (`src/internet/model/tcp-socket.cc`, `tcp-socket-base.cc`), except
            // the MSS (536 there) and the buffers (131,072 bytes), which papers raise. The first segment
            // is acknowledged immediately (`ProcessSynRcvd`). `TcpLinuxReno` and `TcpCubic` grow by
            // packets acknowledged, `TcpNewReno` by acknowledgements.
            "ns-3" => Some(Stack {
                min_rto_ns: Span::from_secs(1).as_nanos(),
                rto: RtoRule::Rfc6298, // `TcpSocketBase::EstimateRtt`, `SendDataPacket`
                tso: false,
                loss_detection: LossDetection::DupThresh,
                tail_loss_probe: false,
                undo: false,
                delayed_ack_ns: Span::from_millis(200).as_nanos(),
                quick_acks: 1,
                push: false,
                autotuning: false,
                sack_compression: false,
                slow_start_after_idle: false,
                tick_ns: 0,
                ..linux
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of Linux 6.18 with buffers of 100 packets; see `RECEIVED_OVERHEAD`.
    #[test]
    fn a_received_packet_takes_memory_of_a_power_of_two() {
        let taken = |mss| Stack { mss, ..Stack::linux() }.received_size();
        assert_eq!(
            [1_448, 1_000, 600, 536, 8_948].map(taken),
            [2_304, 2_304, 2_304, 1_072, 13_056]
        );
    }

    /// tcp_sndbuf_expand.
    #[test]
    fn a_send_buffer_grows_by_the_memory_of_a_packet() {
        let per_mss = |mss| Stack { mss, ..Stack::linux() }.per_mss();
        assert_eq!([1_448, 536, 8_948].map(per_mss), [4_352, 2_304, 16_640]);
    }
}
