//! Parameters of CAKE.

use dumbbell_units::Span;

/// Parameters of CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct CakeConfig {
    /// Acceptable standing queueing delay.
    #[cfg_attr(feature = "serde", serde(rename = "target_ns"))]
    pub target: Span,
    /// About the longest round-trip time (`rtt`).
    #[cfg_attr(feature = "serde", serde(rename = "interval_ns"))]
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// The number of queues of a tin.
    pub queues: u32,
    /// Between what the rate is shared.
    #[cfg_attr(feature = "serde", serde(default))]
    pub hosts: CakeHosts,
    /// DiffServ's tins.
    #[cfg_attr(feature = "serde", serde(default))]
    pub tins: CakeTins,
    /// Whether redundant acknowledgements are dropped.
    #[cfg_attr(feature = "serde", serde(default))]
    pub ack_filter: AckFilter,
}

impl Default for CakeConfig {
    /// Linux's cake_init and CAKE_QUEUES.
    fn default() -> CakeConfig {
        CakeConfig {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: true,
            queues: 1024,
            hosts: CakeHosts::default(),
            tins: CakeTins::default(),
            ack_filter: AckFilter::default(),
        }
    }
}

/// Between what CAKE shares the rate (Linux's flow_mode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum CakeHosts {
    /// Flows.
    Flows,
    /// Sources, then the flows of each.
    DualSrchost,
    /// Destinations, then the flows of each.
    DualDsthost,
    /// Sources and destinations, then the flows of each.
    #[default]
    TripleIsolate,
}

/// DiffServ's classes in CAKE (Linux's tin_mode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum CakeTins {
    /// One tin.
    Besteffort,
    /// Best effort, bulk and voice.
    #[default]
    Diffserv3,
    /// Best effort, bulk, video and voice.
    Diffserv4,
}

/// CAKE's ACK filter (Linux's ack_filter).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum AckFilter {
    /// Off.
    #[default]
    Off,
    /// At least two acknowledgements of a flow stay.
    On,
    /// At least one stays.
    Aggressive,
}

/// What the IP header says of a flow's packets in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKeys {
    /// Source and destination, numbered from 0; `None` for a host without another flow.
    pub hosts: [Option<u32>; 2],
    /// The DiffServ code point.
    pub dscp: u8,
}

impl CakeHosts {
    /// The hosts of a flow that count.
    pub(super) fn of(self, keys: FlowKeys) -> [Option<u32>; 2] {
        let [source, destination] = keys.hosts;
        match self {
            CakeHosts::Flows => [None, None],
            CakeHosts::DualSrchost => [source, None],
            CakeHosts::DualDsthost => [None, destination],
            CakeHosts::TripleIsolate => keys.hosts,
        }
    }
}

impl CakeTins {
    /// For each tin, by which power of two its share of the rate is below the whole (cake_config_diffserv4).
    pub(super) fn shifts(self) -> &'static [u32] {
        match self {
            CakeTins::Besteffort => &[0],
            CakeTins::Diffserv3 => &[0, 4, 2],
            CakeTins::Diffserv4 => &[0, 4, 1, 2],
        }
    }

    /// The tin of a DSCP: LE and CS1 are bulk; CS2, CS3, AF2x to AF4x and TOS4 are video with four tins;
    /// VA, EF, CS6 and CS7 are voice, with four tins CS4 and CS5 too, with three TOS4 (Linux's diffserv3
    /// and diffserv4).
    pub(super) fn tin_of(self, dscp: u8) -> usize {
        match (self, dscp) {
            (CakeTins::Besteffort, _) => 0,
            (_, 1 | 8) => 1,
            (CakeTins::Diffserv3, 4 | 44 | 46 | 48 | 56) => 2,
            (CakeTins::Diffserv4, 32 | 40 | 44 | 46 | 48 | 56) => 3,
            (CakeTins::Diffserv4, 4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38) => 2,
            _ => 0,
        }
    }
}
