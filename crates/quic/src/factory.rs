//! Makes the endpoints of QUIC flows.

use crate::ends::{Load, Receiver, Sender};
use crate::noq::{self, Noq};
use crate::observed::Shared;
use crate::options::QuicOptions;
use crate::quinn::{self, Quinn};
use crate::stack::{Clock, CongestionControl, Settings, Stack};
use dumbbell_quinn::Config;
use dumbbell_sim::{
    DatagramEnds, EndpointFactory, ExternalFlow, ExternalSpec, FlowSpec, InvalidKey, MakeEndpoints,
};
use dumbbell_units::Time;

/// The stacks, and the names of their own algorithms.
pub const STACKS: &[(&str, &[&str])] = &[("quinn", quinn::NAMES), ("noq", noq::NAMES)];

/// The factory of the transport `quic`.
pub fn endpoints() -> EndpointFactory {
    EndpointFactory::new(Quic)
}

struct Quic;

fn invalid(key: &'static str, value: impl ToString, valid: impl ToString) -> InvalidKey {
    InvalidKey { key, value: value.to_string(), valid: valid.to_string() }
}

/// The stack's own algorithm of a flow, such as `cubic` of `quinn:cubic`; `None` if it has another.
fn native(stack: &str, cc: &str) -> Result<Option<&'static str>, InvalidKey> {
    let Some((owner, name)) = cc.split_once(':') else { return Ok(None) };
    let Some((_, names)) = STACKS.iter().find(|(known, _)| *known == owner) else {
        return Ok(None);
    };
    let known = names.iter().find(|known| **known == name);
    match known {
        Some(name) if owner == stack => Ok(Some(name)),
        Some(_) => Err(invalid("cc", cc, format!("an algorithm of the flow's stack, {stack}"))),
        None => Err(invalid("cc", cc, format!("{owner}: and one of {}", names.join(", ")))),
    }
}

impl MakeEndpoints for Quic {
    fn check(&self, flow: &FlowSpec, spec: &ExternalSpec) -> Result<(), InvalidKey> {
        let stacks: Vec<_> = STACKS.iter().map(|(name, _)| *name).collect();
        if !stacks.contains(&spec.stack.as_str()) {
            return Err(invalid("stack", &spec.stack, format!("one of {}", stacks.join(", "))));
        }
        let options = QuicOptions::parse(&spec.options)
            .map_err(|(value, valid)| invalid("transport_options", value, valid))?;
        if options.datagrams && flow.write_rates().is_empty() {
            let valid = "datagrams with app_rate_bps or app_rates, as nothing else limits them";
            return Err(invalid("transport_options", "datagrams", valid));
        }
        if native(&spec.stack, &flow.cc)?.is_some() || flow.algorithm_factory.is_some() {
            return Ok(());
        }
        let checked = Config::new(&flow.cc).map(drop);
        checked.map_err(|error| invalid("cc", &flow.cc, format!("another algorithm: {error}")))
    }

    fn make(&self, flow: ExternalFlow<'_>) -> DatagramEnds {
        match flow.spec.stack.as_str() {
            "quinn" => ends::<Quinn>(flow),
            "noq" => ends::<Noq>(flow),
            stack => unreachable!("{stack} was checked to be a stack"),
        }
    }
}

fn ends<S: Stack>(external: ExternalFlow<'_>) -> DatagramEnds {
    let ExternalFlow { flow, spec, start, seed } = external;
    let congestion_control = match native(&spec.stack, &flow.cc).expect("a checked flow") {
        Some(name) => CongestionControl::Native(name),
        None => CongestionControl::Ours(Config::with(external.algorithm()).with_seed(seed)),
    };
    let client = Settings {
        is_client: true,
        seed,
        options: QuicOptions::parse(&spec.options).expect("checked options"),
        congestion_control,
        observed: Shared::default(),
        clock: Clock::new(),
        #[cfg(feature = "qlog")]
        log: flow.log.then(crate::log::Log::new),
    };
    let server = Settings {
        is_client: false,
        observed: Shared::default(),
        #[cfg(feature = "qlog")]
        log: None,
        ..client.clone()
    };
    let load = Load {
        start,
        stop: flow.stop_ns.map(Time::from_nanos),
        bytes: flow.bytes,
        rates: flow.write_rates(),
    };
    [Box::new(Sender::<S>::new(client, load)), Box::new(Receiver::<S>::new(&server))]
}
