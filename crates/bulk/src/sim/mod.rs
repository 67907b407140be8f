//! Flows of the simulator: the transports `sabul`, `rbudp` and `tsunami`.
//!
//! The data of a flow crosses its links as UDP datagrams, and the control channel crosses the same
//! links as TCP: a connection of `dumbbell-tcp` in each direction, with Linux's behaviour, whose
//! packets have the headers and the sizes of TCP. Both directions are opened at the flow's start, so the
//! channel takes a round-trip time, as one connection would.

mod control;
mod ends;

use crate::engine::Load;
use crate::options::Options;
use crate::{rbudp, sabul, tsunami};
use dumbbell_sim::{
    DatagramEnds, EndpointFactory, ExternalFlow, ExternalSpec, FlowSpec, InvalidKey, MakeEndpoints,
};
use dumbbell_units::Time;
use ends::End;
pub use ends::{fill_flow_row, fill_series_row};
use serde_json::Value;

/// The factories of the transports, by name.
pub fn endpoints() -> impl Iterator<Item = (String, EndpointFactory)> {
    Options::NAMES.iter().map(|&name| (name.to_owned(), EndpointFactory::new(Bulk)))
}

/// The options that a flow's specification has.
///
/// # Errors
/// If it is of another transport, or its options are not valid.
pub fn options(spec: &ExternalSpec) -> Result<Options, InvalidKey> {
    let invalid =
        |value: String, valid: String| InvalidKey { key: "transport_options", value, valid };
    let value = Value::Object(spec.options.clone().into_iter().collect());
    let read = match spec.transport.as_str() {
        "sabul" => serde_json::from_value(value).map(Options::Sabul),
        "rbudp" => serde_json::from_value(value).map(Options::Rbudp),
        "tsunami" => serde_json::from_value(value).map(Options::Tsunami),
        other => {
            let (value, valid) = (other.to_owned(), Options::NAMES.join(", "));
            return Err(InvalidKey { key: "transport", value, valid });
        }
    };
    let options = read.map_err(|error| {
        invalid(error.to_string(), format!("the options of {}", spec.transport))
    })?;
    match options.check() {
        Ok(()) => Ok(options),
        Err((field, valid)) => Err(invalid(field.to_owned(), valid)),
    }
}

/// Makes the ends of flows.
struct Bulk;

impl MakeEndpoints for Bulk {
    fn check(&self, flow: &FlowSpec, spec: &ExternalSpec) -> Result<(), InvalidKey> {
        if !flow.write_rates().is_empty() {
            let name = &spec.transport;
            let valid = format!("null: {name} sends a file at a rate of its own");
            return Err(InvalidKey { key: "app_rate_bps", value: "a rate".to_owned(), valid });
        }
        options(spec).map(drop)
    }

    fn make(&self, external: ExternalFlow<'_>) -> DatagramEnds {
        let ExternalFlow { flow, spec, start, seed } = external;
        let options = options(spec).expect("a checked flow");
        let load = Load { bytes: flow.bytes, stop: flow.stop_ns.map(Time::from_nanos) };
        match options {
            Options::Sabul(options) => [
                End::sender(sabul::Sender::new(options.clone(), load), start, seed),
                End::receiver(sabul::Receiver::new(options), start, seed),
            ],
            Options::Rbudp(options) => [
                End::sender(rbudp::Sender::new(options.clone(), load), start, seed),
                End::receiver(rbudp::Receiver::new(options), start, seed),
            ],
            Options::Tsunami(options) => [
                End::sender(tsunami::Server::new(options.clone(), load), start, seed),
                End::receiver(tsunami::Client::new(options), start, seed),
            ],
        }
    }
}
