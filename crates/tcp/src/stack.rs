//! Named sets of TCP behaviours.

use dumbbell_units::Span;
use serde::{Deserialize, Serialize};

/// How a TCP stack behaves beside its congestion control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stack {
    /// Payload bytes of a full segment.
    pub mss: u16,
    /// Bytes of IP and TCP headers on a data segment.
    pub header: u16,
    /// Initial window, packets (RFC 6928).
    pub initial_window: u32,
    /// Least retransmission timeout, nanoseconds.
    pub min_rto_ns: u64,
    /// How the retransmission timeout is counted.
    pub rto: RtoRule,
    /// Whether the transport paces algorithms that set no rate of their own, at 200 % of
    /// cwnd/srtt in slow start and 120 % after it, as Linux does under fq.
    pub pacing: bool,
    /// Whether segments leave in bursts sized as Linux's TSO autosizing does.
    pub tso: bool,
    /// Whether windows grow by packets acknowledged (RFC 3465) rather than by acknowledgements.
    pub byte_counting: bool,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// Whether a tail loss probe is sent (RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// Whether spurious reductions are undone (RFC 4015, D-SACK).
    pub undo: bool,
    /// Whether acknowledgements of full segments are delayed at all.
    pub delayed_ack: bool,
    /// How long an acknowledgement is held back for a second segment, nanoseconds.
    pub delayed_ack_ns: u64,
    /// Segments acknowledged one by one at the start (Linux's quick ACKs).
    pub quick_acks: u32,
    /// Whether what ends a write or a burst is acknowledged at once: it has PSH, and the application
    /// has read all (__tcp_cleanup_rbuf, tcp_measure_rcv_mss; since 6.6 for full segments too).
    pub push: bool,
    /// Whether the receive window grows with what arrives: while it does, every packet is
    /// acknowledged (tcp_grow_window).
    pub autotuning: bool,
    /// Whether acknowledgements of out-of-order segments are thinned as in Linux since 4.18.
    pub sack_compression: bool,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Receive window, packets.
    pub receive_window: u32,
    /// Whether the window is cut when the application was idle for longer than a retransmission
    /// timeout (RFC 5681 section 4.1, RFC 2861).
    pub slow_start_after_idle: bool,
    /// Tick of the clock that coarse times are read from, nanoseconds; 0 is for none. Linux's
    /// jiffies, of which a second has 100 to 1000 as the kernel was built.
    pub tick_ns: u64,
    /// Packets by which the window may exceed what is in flight when a recovery ends; it then
    /// grows back to ssthresh as in slow start. 0 is without limit. Kernels before PRR kept the
    /// window at the flight size (tcp_cwnd_down), so that no burst followed a recovery.
    pub max_burst: u32,
}

/// How the retransmission timeout is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RtoRule {
    /// srtt and, whichever is longer, four deviations or the least timeout; anew when the oldest
    /// packet is sent again.
    Linux,
    /// srtt and four deviations, but no less than the least timeout; sending again leaves a timer
    /// that runs as it is (RFC 6298, 2.4 and 5.1).
    Rfc6298,
}

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// By time: RACK (RFC 8985).
    Rack,
    /// By counting: three packets delivered above it (RFC 6675).
    DupThresh,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ecn {
    /// Packets are not ECN-capable.
    Off,
    /// RFC 3168: one reduction a round trip.
    Classic,
    /// Every mark is told to the algorithm (DCTCP's and AccECN's feedback).
    Accurate,
}

impl Stack {
    /// The names that [`Stack::named`] knows.
    pub const NAMES: &[&str] = &["linux", "linux-2.6.18", "ns-3"];

    /// Linux of today, default settings, sender without the fq qdisc.
    pub fn linux() -> Stack {
        Stack {
            mss: 1448,
            header: 52,
            initial_window: 10,
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
            receive_window: 1 << 20,
            slow_start_after_idle: true,
            tick_ns: Span::from_millis(4).as_nanos(),
            max_burst: 0,
        }
    }

    /// Whether segments carry timestamps (RFC 7323).
    pub fn timestamps(&self) -> bool {
        self.header > 40
    }

    /// Bytes on the wire of a SYN or SYN-ACK: IPv4, TCP, and options of 20 bytes.
    pub fn control_size(&self) -> u16 {
        60
    }

    /// Bytes on the wire of an acknowledgement with so many SACK blocks: 8 bytes each, and 4 for
    /// the option's kind, length and padding (RFC 2018).
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
            // found losses by SACK counting and began with 3 segments (RFC 3390).
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
            // The defaults of ns-3.44 (`src/internet/model/tcp-socket.cc`, `tcp-socket-base.cc`) but for
            // the MSS, 536 there, and the buffers, 131,072 bytes, which papers raise. The first
            // segment is acknowledged at once (`ProcessSynRcvd`). Growth by packets acknowledged is
            // `TcpLinuxReno`'s and `TcpCubic`'s; `TcpNewReno` counts acknowledgements.
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
