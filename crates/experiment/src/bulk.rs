//! Flows of SABUL, RBUDP and Tsunami, and their options, as experiment files have them.
//!
//! Their engines are in the crate `dumbbell-bulk`.

use crate::diagnostic::{KeyPath, Problem};
use crate::model::{Flow, Options};
use crate::options::OptionValues::{RateFrom, Whole};
use crate::options::{OptionErrors, TransportOption, option, option_problems, overlay, written};
use crate::quantity::ValueError;
use serde_json::Value;
use std::collections::BTreeMap;

/// A protocol that sends data over UDP and control messages over TCP.
#[derive(Debug)]
pub struct BulkTransport {
    /// The name of the transport in files.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its options.
    pub options: &'static [TransportOption],
}

const GBPS: u64 = 1_000_000_000;
const MBPS: u64 = 1_000_000;
/// A packet with headers fits an IP packet.
const PACKET_SIZE: crate::options::OptionValues = Whole(16, 65_500);
const FACTOR: crate::options::OptionValues = Whole(1, 65_535);

/// The protocols.
pub static BULK_TRANSPORTS: &[BulkTransport] = &[
    BulkTransport {
        name: "sabul",
        about: "SABUL (Gu and Grossman; the source of March 2003): a rate that grows additively every \
                10 ms and falls by a ninth with a loss",
        options: &[
            option(
                "initial_rate",
                RateFrom(MBPS, 100 * GBPS),
                "rate at first, of packets of 1500 bytes (setRate)",
            ),
            option("min_rate", RateFrom(MBPS, 100 * GBPS), "minimum rate (setRate)"),
            option("max_rate", RateFrom(MBPS, 100 * GBPS), "maximum rate (setRate)"),
            option(
                "packet_size",
                PACKET_SIZE,
                "UDP payload of a full packet, bytes; with RBUDP without its header",
            ),
            option(
                "flag_size",
                Whole(64, 1 << 24),
                "maximum packets from the first missing one on (FlagSize)",
            ),
        ],
    },
    BulkTransport {
        name: "rbudp",
        about: "RBUDP (He, Leigh, Yu and DeFanti, 2002; QUANTA's source): blasts at a fixed rate, and a \
                bitmap of what is missing",
        options: &[
            option(
                "rate",
                RateFrom(MBPS, 100 * GBPS),
                "rate of the blasts, of data without headers",
            ),
            option(
                "packet_size",
                PACKET_SIZE,
                "UDP payload of a full packet, bytes; with RBUDP without its header",
            ),
            option(
                "buffer",
                Whole(1024, i32::MAX as u64),
                "bytes of a block of a flow without bytes; one with bytes is a single block",
            ),
        ],
    },
    BulkTransport {
        name: "tsunami",
        about: "Tsunami (Meiss; Wagner's tsunami-udp): blocks at a delay that follows the error rate, \
                and requests for what is missing every 350 ms",
        options: &[
            option(
                "target_rate",
                RateFrom(MBPS, u32::MAX as u64),
                "maximum rate, of data without headers",
            ),
            option("block_size", PACKET_SIZE, "data of a block, bytes"),
            option(
                "error_rate",
                Whole(0, 99_999),
                "threshold of the error rate, thousandths of a percent",
            ),
            option("slower_num", FACTOR, "numerator of the delay's factor above the threshold"),
            option("slower_den", FACTOR, "its denominator"),
            option("faster_num", FACTOR, "numerator of the delay's factor up to the threshold"),
            option("faster_den", FACTOR, "its denominator"),
            option("history", Whole(0, 99), "weight of the history in the error rate, percent"),
        ],
    },
];

/// The protocol of this name.
pub(crate) fn bulk_transport(name: &str) -> Option<&'static BulkTransport> {
    BULK_TRANSPORTS.iter().find(|transport| transport.name == name)
}

/// The options of a protocol with the defaults.
///
/// # Errors
/// Every option that it does not have, or whose value is not valid.
///
/// # Panics
/// If there is no protocol of this name.
pub fn overlay_bulk(name: &str, given: &Options) -> Result<dumbbell_bulk::Options, OptionErrors> {
    use dumbbell_bulk::Options::{Rbudp, Sabul, Tsunami};
    let known = bulk_transport(name).expect("a transport of this module").options;
    let defaults = dumbbell_bulk::Options::named(name).expect("a transport of that crate");
    let kind = format!("option of {name}");
    let options = match &defaults {
        Sabul(sabul) => Sabul(overlay(&kind, known, sabul, given)?),
        Rbudp(rbudp) => Rbudp(overlay(&kind, known, rbudp, given)?),
        Tsunami(tsunami) => Tsunami(overlay(&kind, known, tsunami, given)?),
    };
    match options.check() {
        Ok(()) => Ok(options),
        Err((field, valid)) => {
            let values = bulk_options(name, &options);
            let text = format!("{} is not valid; write {valid}", values[field]);
            Err(vec![(field.to_owned(), ValueError(text))])
        }
    }
}

/// All options of a protocol, as a file has them.
///
/// # Panics
/// If there is no protocol of this name.
pub fn bulk_options(name: &str, options: &dumbbell_bulk::Options) -> Options {
    written(bulk_transport(name).expect("a transport of this module").options, options)
}

/// All options, as a scenario has them.
pub(crate) fn scenario_options(options: &dumbbell_bulk::Options) -> BTreeMap<String, Value> {
    crate::options::fields(options).into_iter().collect()
}

/// The options of a flow at `at`.
pub(crate) fn flow_bulk(flow: &Flow, at: &KeyPath) -> Result<dumbbell_bulk::Options, Vec<Problem>> {
    overlay_bulk(&flow.transport, &flow.transport_options)
        .map_err(|errors| option_problems(&at.then("transport_options"), errors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Options {
        value.as_object().expect("a table").clone().into_iter().collect()
    }

    #[test]
    fn every_field_of_a_protocol_is_an_option() {
        for transport in BULK_TRANSPORTS {
            let defaults = dumbbell_bulk::Options::named(transport.name).expect("a protocol");
            assert_eq!(scenario_options(&defaults).len(), transport.options.len());
            let written = bulk_options(transport.name, &defaults);
            assert_eq!(overlay_bulk(transport.name, &written), Ok(defaults));
        }
        assert_eq!(BULK_TRANSPORTS.len(), dumbbell_bulk::Options::NAMES.len());
    }

    #[test]
    fn rates_are_texts_with_a_unit() {
        let given = map(json!({"rate": "0.95 Gbit/s"}));
        let options = overlay_bulk("rbudp", &given).expect("valid options");
        assert_eq!(scenario_options(&options)["rate_bps"], json!(950_000_000));
        assert_eq!(bulk_options("rbudp", &options)["rate"], json!("950 Mbit/s"));
    }

    #[test]
    fn a_wrong_option_is_named_with_what_is_valid() {
        for (name, given, part) in [
            ("sabul", json!({"initial_rate": "2 Gbit/s"}), "write from min_rate to max_rate"),
            ("sabul", json!({"rate": "1 Gbit/s"}), "no option of sabul is called \"rate\""),
            ("rbudp", json!({"rate": 600}), "600 lacks a unit"),
            ("rbudp", json!({"rate": "1 kbit/s"}), "from 1 Mbit/s to 100 Gbit/s"),
            ("tsunami", json!({"slower_num": 20}), "write more than slower_den"),
        ] {
            let error = overlay_bulk(name, &map(given)).expect_err("not valid")[0].1.0.clone();
            assert!(error.contains(part), "{error}");
        }
    }
}
