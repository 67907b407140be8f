//! A path as a test fixture: two endpoints of any protocol over UDP on a simulated link.

use crate::datagram_host::{
    DatagramEnds, EndpointFactory, ExternalFlow, ExternalSpec, InvalidKey, MakeEndpoints,
};
use crate::run::RunOutput;
use crate::scenario::{FlowSpec, LinkSpec, Scenario, ScenarioError};
use dumbbell_units::Span;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Runs two endpoints over `link`, which carries what the first one sends; what the second one sends
/// arrives after `return_delay`. The first one's datagrams are the data whose delays are measured.
/// The same endpoints, link and duration give the same result.
///
/// # Errors
/// If the link is not valid.
///
/// ```no_run
/// # fn ends() -> dumbbell_sim::DatagramEnds { unimplemented!() }
/// use dumbbell_sim::{LinkSpec, run_ends};
/// use dumbbell_units::Span;
///
/// let link = LinkSpec { rate_bps: Some(10e6), delay_ns: 10_000_000, ..LinkSpec::default() };
/// let output = run_ends(link, Span::from_millis(10), ends(), Span::from_secs(20))?;
/// println!("{} packets were dropped", output.links.dropped.last().unwrap_or(&0));
/// # Ok::<(), dumbbell_sim::ScenarioError>(())
/// ```
pub fn run_ends(
    link: LinkSpec,
    return_delay: Span,
    ends: DatagramEnds,
    duration: Span,
) -> Result<RunOutput, ScenarioError> {
    let link = LinkSpec { name: "link".to_owned(), ..link };
    let external = ExternalSpec {
        transport: "fixture".to_owned(),
        stack: String::new(),
        options: BTreeMap::new(),
    };
    let flow = FlowSpec {
        path: vec![link.name.clone()],
        return_delay_ns: return_delay.as_nanos(),
        external: Some(external),
        endpoint_factory: Some(EndpointFactory::new(Given(Mutex::new(Some(ends))))),
        ..FlowSpec::new("flow", "none")
    };
    let scenario = Scenario {
        seed: 1,
        duration_ns: duration.as_nanos(),
        sample_ns: 100_000_000,
        warmup_ns: 0,
        start_jitter_ns: 0,
        internals: true,
        sources: BTreeMap::new(),
        links: vec![link],
        flows: vec![flow],
    };
    scenario.run()
}

/// Endpoints for one run.
struct Given(Mutex<Option<DatagramEnds>>);

impl MakeEndpoints for Given {
    fn check(&self, _flow: &FlowSpec, _spec: &ExternalSpec) -> Result<(), InvalidKey> {
        Ok(())
    }

    fn make(&self, _flow: ExternalFlow<'_>) -> DatagramEnds {
        let ends = self.0.lock().expect("no code panics while it holds the ends").take();
        ends.expect("a run makes its endpoints once")
    }
}
