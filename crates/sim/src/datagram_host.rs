//! Flows whose endpoints another crate provides: protocols over UDP such as QUIC.

use crate::datagram::{Datagram, EcnCodepoint, Payloads};
use crate::sample::Sampled;
use crate::scenario::FlowSpec;
use crate::sim_endpoint::SimEndpoint;
use crate::tables::{FlowRow, FrameRow, SeriesRow};
use dumbbell_cc::{Algorithm, ConnectionConfig, Metric};
use dumbbell_net::Endpoint;
use dumbbell_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

/// One end of a flow of UDP datagrams: a protocol engine without I/O.
///
/// The simulator calls [`handle`](Self::handle) for every datagram that arrives, then
/// [`poll`](Self::poll) until it returns `None`, and polls again at
/// [`next_timeout`](Self::next_timeout). Sender and receiver of a flow fill in the same rows; an
/// endpoint that has nothing to show needs none of those methods.
pub trait DatagramEndpoint: Send {
    /// Processes a datagram that arrived at `now` with this ECN field.
    fn handle(&mut self, now: Time, payload: &[u8], ecn: EcnCodepoint);

    /// Runs the timers that are due and appends the next datagram to send at `now` to `payload`,
    /// which is empty. Returns its ECN field, or `None` if there is nothing to send.
    fn poll(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint>;

    /// When to poll next if no datagram arrives; [`Time::MAX`] if no timer is set.
    fn next_timeout(&self) -> Time;

    /// Fills in the current state.
    fn sample(&self, _row: &mut SeriesRow) {}

    /// Fills in the state at the end of the run.
    fn finish(&self, _row: &mut FlowRow) {}

    /// Shows the algorithm's internals.
    fn inspect(&self, _show: &mut dyn FnMut(Metric)) {}

    /// Whether the flow is complete, so that its state no longer changes.
    fn is_complete(&self) -> bool {
        false
    }

    /// Gives a row for each frame of media that was captured; its flow is filled in.
    fn frames(&self, _push: &mut dyn FnMut(FrameRow)) {}

    /// When and why the connection ended before its time, if it did.
    fn failure(&self) -> Option<(Time, String)> {
        None
    }

    /// Its own log, if the flow is logged and it has one.
    fn log(&self) -> Option<Arc<dyn EndpointLog>> {
        None
    }
}

/// What an endpoint has written into a log of its own, such as qlog.
pub trait EndpointLog: fmt::Debug + Send + Sync {
    /// Writes all of it to `out`.
    ///
    /// # Errors
    /// If it could not be kept, or cannot be written.
    fn copy_to(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// The sender and the receiver of a flow.
pub type DatagramEnds = [Box<dyn DatagramEndpoint>; 2];

/// Which endpoints of another crate a flow has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalSpec {
    /// The protocol, by which the factory is found, such as `quic`.
    pub transport: String,
    /// The implementation of the protocol, such as `quinn`.
    pub stack: String,
    /// Its options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, serde_json::Value>,
}

/// A flow for which endpoints are made.
#[derive(Clone, Copy, Debug)]
pub struct ExternalFlow<'a> {
    /// The flow as the scenario has it.
    pub flow: &'a FlowSpec,
    /// Which endpoints it has.
    pub spec: &'a ExternalSpec,
    /// Its start, jitter included.
    pub start: Time,
    /// Seed of all random numbers of both ends.
    pub seed: u64,
}

impl ExternalFlow<'_> {
    /// What makes the algorithm of the flow's `cc`, a built-in or a user-defined one.
    ///
    /// # Panics
    /// The result, if there is no such algorithm.
    pub fn algorithm(
        &self,
    ) -> impl Fn(&ConnectionConfig) -> Algorithm + Clone + Send + Sync + use<> {
        let (cc, factory) = (self.flow.cc.clone(), self.flow.algorithm_factory.clone());
        move |config| match &factory {
            Some(factory) => factory.make(config),
            None => Algorithm::parse(&cc, config).expect("a checked algorithm"),
        }
    }
}

/// A key of a flow that the endpoints of another crate do not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidKey {
    /// The key.
    pub key: &'static str,
    /// The value that was given.
    pub value: String,
    /// The values that the key takes.
    pub valid: String,
}

/// Makes the endpoints of flows.
pub trait MakeEndpoints: Send + Sync {
    /// Checks a flow.
    ///
    /// # Errors
    /// The first key that is not valid.
    fn check(&self, flow: &FlowSpec, spec: &ExternalSpec) -> Result<(), InvalidKey>;

    /// Makes the ends of a checked flow.
    fn make(&self, flow: ExternalFlow<'_>) -> DatagramEnds;
}

/// Makes the endpoints of flows; see [`MakeEndpoints`].
#[derive(Clone)]
pub struct EndpointFactory(Arc<dyn MakeEndpoints>);

impl EndpointFactory {
    /// A factory that is shared by all flows of a protocol.
    pub fn new(make: impl MakeEndpoints + 'static) -> EndpointFactory {
        EndpointFactory(Arc::new(make))
    }

    pub(crate) fn check(&self, flow: &FlowSpec, spec: &ExternalSpec) -> Result<(), InvalidKey> {
        self.0.check(flow, spec)
    }

    pub(crate) fn make(&self, flow: ExternalFlow<'_>) -> DatagramEnds {
        self.0.make(flow)
    }
}

impl fmt::Debug for EndpointFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndpointFactory")
    }
}

/// Factories are equal if they are clones of one another.
impl PartialEq for EndpointFactory {
    fn eq(&self, other: &EndpointFactory) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// One end of a flow of datagrams in the simulator.
pub(crate) struct DatagramHost {
    endpoint: Box<dyn DatagramEndpoint>,
    payloads: Payloads,
    /// Memory for one payload.
    buffer: Vec<u8>,
    sent: u32,
    is_sender: bool,
}

impl DatagramHost {
    /// Both ends of a flow, and the payloads on their way between them.
    pub(crate) fn pair(ends: DatagramEnds) -> ([DatagramHost; 2], Payloads) {
        let payloads = Payloads::default();
        let [sender, receiver] = ends;
        let host = |endpoint, is_sender| DatagramHost {
            endpoint,
            payloads: payloads.clone(),
            buffer: Vec::new(),
            sent: 0,
            is_sender,
        };
        ([host(sender, true), host(receiver, false)], payloads.clone())
    }
}

impl Endpoint for DatagramHost {
    type Packet = Datagram;

    fn handle(&mut self, now: Time, datagram: &Datagram) {
        self.payloads.take(datagram.payload, &mut self.buffer);
        self.endpoint.handle(now, &self.buffer, datagram.ecn);
        self.buffer.clear();
    }

    fn poll(&mut self, now: Time) -> Option<Datagram> {
        let ecn = self.endpoint.poll(now, &mut self.buffer)?;
        let size = self.buffer.len();
        let place = self.payloads.store(&mut self.buffer);
        let datagram = Datagram::new(now, self.sent, place, size);
        self.sent = self.sent.wrapping_add(1);
        Some(Datagram { ecn, by_sender: self.is_sender, ..datagram })
    }

    fn next_timeout(&self) -> Time {
        self.endpoint.next_timeout()
    }
}

impl SimEndpoint for DatagramHost {}

impl Sampled for DatagramHost {
    fn sample(&self, row: &mut SeriesRow) {
        self.endpoint.sample(row);
    }

    fn finish(&self, row: &mut FlowRow) {
        self.endpoint.finish(row);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.endpoint.inspect(show);
    }

    fn is_complete(&self) -> bool {
        self.endpoint.is_complete()
    }

    fn frames(&self, push: &mut dyn FnMut(FrameRow)) {
        self.endpoint.frames(push);
    }

    fn failure(&self) -> Option<(Time, String)> {
        self.endpoint.failure()
    }

    fn log(&self) -> Option<Arc<dyn EndpointLog>> {
        self.endpoint.log()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::build;
    use crate::engine::EndpointId;
    use crate::host::AnyHost;
    use crate::observer::Observer;
    use crate::pdu::{Pdu, SimPacket};
    use crate::scenario::{Factories, Scenario};
    use dumbbell_net::{DropReason, LinkId};

    /// Sends a datagram every 100 us, and takes what arrives.
    struct OneEnd(Time);

    impl DatagramEndpoint for OneEnd {
        fn handle(&mut self, _now: Time, payload: &[u8], _ecn: EcnCodepoint) {
            assert_eq!(payload, [7; 100]);
        }

        fn poll(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
            (now >= self.0).then(|| {
                payload.resize(100, 7);
                self.0 = Time::from_nanos(self.0.as_nanos() + 100_000);
                EcnCodepoint::NotEct
            })
        }

        fn next_timeout(&self) -> Time {
            self.0
        }
    }

    struct BothEnds;

    impl MakeEndpoints for BothEnds {
        fn check(&self, _flow: &FlowSpec, _spec: &ExternalSpec) -> Result<(), InvalidKey> {
            Ok(())
        }

        fn make(&self, flow: ExternalFlow<'_>) -> DatagramEnds {
            [Box::new(OneEnd(flow.start)), Box::new(OneEnd(Time::MAX))]
        }
    }

    /// Frees the payloads of dropped datagrams, as a run does, and counts the drops.
    struct Release(Payloads, u32);

    impl Observer<Pdu> for Release {
        fn on_dropped(
            &mut self,
            _now: Time,
            _from: EndpointId,
            _at: LinkId,
            _why: DropReason,
            packet: &Pdu,
        ) {
            self.0.release(packet.datagram().expect("a datagram").payload);
            self.1 += 1;
        }
    }

    #[test]
    fn payloads_take_memory_only_while_their_datagram_is_on_its_way() {
        // Drops on arrival, in the queue (CoDel) and at random.
        let json = r#"{"duration_ns": 1, "sample_ns": 1, "links": [{"name": "l", "rate_bps": 5e6,
            "delay_ns": 10000000, "loss": 0.1, "queue": {"packets": 20}, "aqm": {"codel":
            {"target_ns": 1000000, "interval_ns": 10000000, "ecn": false, "ce_threshold_ns": null}}}],
            "flows": [{"name": "f", "cc": "", "path": ["l"],
            "external": {"transport": "x", "stack": ""}}]}"#;
        let endpoints = BTreeMap::from([("x".to_owned(), EndpointFactory::new(BothEnds))]);
        let factories = Factories { endpoints, ..Factories::default() };
        let scenario = Scenario::from_json_with(json, &factories).expect("a valid scenario");
        let simulation = build::<AnyHost>(&scenario).expect("a valid scenario");
        let payloads = simulation.payloads()[&0].clone();
        let (mut engine, _) = simulation.engine(Release(payloads.clone(), 0));
        for seconds in 1..=5 {
            engine.run_until(Time::from_nanos(seconds * 1_000_000_000));
            engine.link_statistics(LinkId(0));
            assert_eq!(payloads.len(), engine.in_transit());
        }
        assert!(engine.observer().1 > 10_000);
    }
}
