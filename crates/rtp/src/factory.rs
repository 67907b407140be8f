//! Makes the ends of media flows.

use crate::control::MediaControl;
use crate::frames::Frames;
use crate::gcc::Gcc;
use crate::options::{MediaEcn, RtpOptions};
use crate::receiver::MediaReceiver;
use crate::scream::Scream;
use crate::sender::{Load, MediaSender};
use dumbbell_sim::{
    DatagramEnds, EndpointFactory, ExternalFlow, ExternalSpec, FlowSpec, InvalidKey, MakeEndpoints,
};
use dumbbell_units::{Span, Time};

/// The congestion controls of media: name, and what it is.
pub static ALGORITHMS: &[(&str, &str)] = &[
    (
        "scream",
        "SCReAMv2, draft-johansson-ccwg-rfc8298bis-screamv2: a window by delay, loss and marks; \
         with L4S by the share of marked packets",
    ),
    (
        "gcc",
        "Google Congestion Control, draft-ietf-rmcat-gcc-02 with the trendline estimator of \
         libwebrtc: a rate by the gradient of the delay, and by losses",
    ),
];

/// The factory of the transport `rtp`.
pub fn endpoints() -> EndpointFactory {
    EndpointFactory::new(Media)
}

struct Media;

fn invalid(key: &'static str, value: impl ToString, valid: impl ToString) -> InvalidKey {
    InvalidKey { key, value: value.to_string(), valid: valid.to_string() }
}

impl MakeEndpoints for Media {
    fn check(&self, flow: &FlowSpec, spec: &ExternalSpec) -> Result<(), InvalidKey> {
        let names: Vec<_> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
        if !names.contains(&flow.cc.as_str()) {
            return Err(invalid("cc", &flow.cc, format!("one of {}", names.join(", "))));
        }
        let options = RtpOptions::parse(&spec.options)
            .map_err(|(value, valid)| invalid("transport_options", value, valid))?;
        if flow.cc == "gcc" && options.ecn != MediaEcn::Off {
            return Err(invalid("ecn", "given", "off, as gcc does not react to marks"));
        }
        if flow.write_rates().is_empty() || flow.bytes.is_some() || flow.log {
            let valid = "a maximum rate of the media, without bytes and log";
            return Err(invalid("app_rate_bps", "given", valid));
        }
        Ok(())
    }

    fn make(&self, external: ExternalFlow<'_>) -> DatagramEnds {
        let ExternalFlow { flow, spec, start, seed } = external;
        let options = RtpOptions::parse(&spec.options).expect("checked options");
        let control: Box<dyn MediaControl> = match flow.cc.as_str() {
            "gcc" => Box::new(Gcc::new(&options)),
            _ => Box::new(Scream::new(&options)),
        };
        let load = Load {
            start,
            stop: flow.stop_ns.map_or(Time::MAX, Time::from_nanos),
            max_rates: flow.write_rates(),
        };
        let frames = Frames::default();
        let interval = Span::from_nanos(options.feedback_interval_ns);
        let receiver = MediaReceiver::new(frames.clone(), interval);
        let sender = MediaSender::new(control, &options, load, frames, seed);
        [Box::new(sender), Box::new(receiver)]
    }
}
