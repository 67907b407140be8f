//! QUIC flows: the stacks, their own algorithms, and their options, as experiment files have them.
//!
//! The stacks themselves are in the crate `dumbbell-quic`, which a program may have or not.

use crate::algorithm::ALGORITHM_FORM;
use crate::diagnostic::{KeyPath, Problem};
use crate::model::{Flow, Options};
use crate::options::OptionValues::{Bool, OneOf, Time, Whole};
use crate::options::{OptionErrors, TransportOption, option, option_problems, overlay, written};
use crate::quantity::{ValueError, fail};
use crate::suggest::did_you_mean;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A QUIC implementation.
#[derive(Debug)]
pub struct QuicStack {
    /// Its name in files.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its own algorithms: name, and what it is.
    pub algorithms: &'static [(&'static str, &'static str)],
}

/// The stacks; the first is the default.
pub static QUIC_STACKS: &[QuicStack] = &[
    QuicStack {
        name: "quinn",
        about: "quinn-proto 0.11",
        algorithms: &[
            ("cubic", "quinn's CUBIC"),
            ("reno", "quinn's NewReno (RFC 9002, section 7)"),
            ("bbr", "quinn's BBR, BBRv1 after Google's QUIC; quinn paces by the window"),
        ],
    },
    QuicStack {
        name: "noq",
        about: "noq-proto 1.4, n0's variant of quinn-proto",
        algorithms: &[
            ("cubic", "noq's CUBIC"),
            ("reno", "noq's NewReno (RFC 9002, section 7)"),
            ("bbr3", "noq's BBRv3 (draft-ietf-ccwg-bbr-05)"),
        ],
    },
];

/// Maximum UDP payload that the stacks probe for, bytes.
const MAX_MTU: u16 = 1452;
/// Minimum UDP payload that a path must carry (RFC 9000, section 14), bytes.
const MIN_MTU: u16 = 1200;
/// Bytes of the headers of IPv4 and UDP.
const IP_UDP: u16 = 28;
/// Bytes of a full packet beside its data: headers of the packet and of the STREAM frame, and the
/// tag.
const OVERHEAD: u16 = 33;
/// Bytes of a datagram of media, and what a packet has beside it: its headers, those of the frame,
/// and the tag.
const DATAGRAM: u16 = 1150;
const DATAGRAM_OVERHEAD: u16 = 30;

/// The options of QUIC flows.
pub static QUIC_OPTIONS: &[TransportOption] = &[
    option(
        "crypto",
        OneOf(&["null", "rustls"]),
        "how packets are protected: not at all, with packets of the same sizes as with TLS, or by \
         TLS 1.3",
    ),
    option(
        "initial_mtu",
        Whole(MIN_MTU as u64, MAX_MTU as u64),
        "maximum UDP payload at first, bytes",
    ),
    option(
        "mtu_discovery",
        Bool,
        "whether the path is probed for larger packets, up to 1452 bytes of UDP payload",
    ),
    option(
        "ack_eliciting_threshold",
        Whole(0, 1000),
        "packets that the receiver may leave unacknowledged (draft-ietf-quic-ack-frequency); 0 for \
         the stack's own rule",
    ),
    option(
        "idle_timeout",
        Time(0),
        "how long the connection may be idle before the stack closes it (RFC 9000, section 10.1); 0 \
         for no limit",
    ),
    option(
        "datagrams",
        Bool,
        "whether data is sent in datagrams of 1150 bytes (RFC 9221), which are not repeated; with \
         app_rate",
    ),
];

/// The values of those options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuicOptions {
    crypto: String,
    initial_mtu: u16,
    mtu_discovery: bool,
    ack_eliciting_threshold: u32,
    idle_timeout_ns: u64,
    pub(crate) datagrams: bool,
}

impl Default for QuicOptions {
    fn default() -> QuicOptions {
        QuicOptions {
            crypto: "null".to_owned(),
            initial_mtu: MIN_MTU,
            mtu_discovery: true,
            ack_eliciting_threshold: 0,
            idle_timeout_ns: 0,
            datagrams: false,
        }
    }
}

impl QuicOptions {
    /// UDP payload of a full packet, bytes.
    fn mtu(&self) -> u16 {
        if self.mtu_discovery { MAX_MTU } else { self.initial_mtu }
    }

    /// Data of a full packet, bytes.
    pub(crate) fn payload(&self) -> u16 {
        if self.datagrams { DATAGRAM } else { self.mtu() - OVERHEAD }
    }

    /// A full packet with the headers of IP and UDP, bytes.
    pub(crate) fn packet(&self) -> u16 {
        let payload = if self.datagrams { DATAGRAM + DATAGRAM_OVERHEAD } else { self.mtu() };
        payload + IP_UDP
    }
}

/// The options of QUIC with the defaults.
///
/// # Errors
/// Every option that QUIC does not have, or whose value is not valid.
pub fn overlay_quic(options: &Options) -> Result<QuicOptions, OptionErrors> {
    overlay("option of QUIC", QUIC_OPTIONS, &QuicOptions::default(), options)
}

/// All options of QUIC, as a file has them.
pub fn quic_options(options: &QuicOptions) -> Options {
    written(QUIC_OPTIONS, options)
}

/// All options of QUIC, as a scenario has them.
pub fn quic_fields(options: &QuicOptions) -> BTreeMap<String, Value> {
    let fields = serde_json::to_value(options).expect("plain numbers and texts");
    fields
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The options of a QUIC flow at `at`.
pub(crate) fn flow_quic(flow: &Flow, at: &KeyPath) -> Result<QuicOptions, Vec<Problem>> {
    overlay_quic(&flow.transport_options)
        .map_err(|errors| option_problems(&at.then("transport_options"), errors))
}

/// The stack of this name.
pub(crate) fn quic_stack(name: &str) -> Option<&'static QuicStack> {
    QUIC_STACKS.iter().find(|stack| stack.name == name)
}

/// The names of all stacks.
pub(crate) fn stack_names() -> Vec<&'static str> {
    QUIC_STACKS.iter().map(|stack| stack.name).collect()
}

/// A stack's own algorithm, written `quinn:cubic`: the stack and the text after the colon. `None` if
/// the text before the colon names no stack.
pub(crate) fn native(cc: &str) -> Option<(&'static QuicStack, &str)> {
    let (stack, name) = cc.trim().split_once(':')?;
    Some((quic_stack(stack)?, name))
}

/// Checks the name of a stack's own algorithm.
pub(crate) fn check_native(stack: &QuicStack, name: &str) -> Result<(), ValueError> {
    let known = stack.algorithms.iter().map(|(name, _)| *name);
    if known.clone().any(|known| known == name) {
        return Ok(());
    }
    let stack = stack.name;
    let hint = did_you_mean(name, known.clone());
    let all: Vec<_> = known.map(|name| format!("{stack}:{name}")).collect();
    fail!(
        "\"{stack}:{name}\" is not an algorithm of {stack}{hint}; choose from {}, which have no \
         options, or {ALGORITHM_FORM}",
        all.join(", ")
    )
}

impl Flow {
    /// The stack of a QUIC flow: as given, that of its algorithm, or the default.
    pub(crate) fn quic_stack(&self) -> &str {
        let of_algorithm = native(&self.cc).map(|(stack, _)| stack.name);
        self.stack.as_deref().or(of_algorithm).unwrap_or(QUIC_STACKS[0].name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_options_are_read_and_written_as_they_are_given() {
        let given = json!({"crypto": "rustls", "mtu_discovery": false, "initial_mtu": 1400});
        let given: Options = given.as_object().expect("a table").clone().into_iter().collect();
        let options = overlay_quic(&given).expect("valid options");
        assert_eq!((options.packet(), options.payload()), (1428, 1367));
        assert_eq!(overlay_quic(&quic_options(&options)), Ok(options));
        assert_eq!(quic_options(&QuicOptions::default()).len(), QUIC_OPTIONS.len());
    }

    #[test]
    fn a_wrong_option_is_named_with_what_is_valid() {
        let error = |options: serde_json::Value| {
            let options = options.as_object().expect("a table").clone().into_iter().collect();
            overlay_quic(&options).expect_err("not valid")[0].1.0.clone()
        };
        assert!(error(json!({"crypto": "tls"})).contains("none of null, rustls"));
        assert!(error(json!({"initial_mtu": 900})).contains("from 1200 to 1,452"));
        assert!(error(json!({"mtu": 1})).contains("no option of QUIC is called \"mtu\""));
    }
}
